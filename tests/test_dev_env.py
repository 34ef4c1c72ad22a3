"""docs/dev_env.md: its commands exist, something reads its variables, and something says its messages."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from kernelgate.ci.commands import cli

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "dev_env.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in TEXT.split("\n## ")}
COMMANDS = sorted(set(re.findall(r"kernelgate ((?:doctor|build|bench)(?: --[a-z-]+ [A-Z][\w~]+)?)", TEXT)))


def tracked(*patterns: str) -> str:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split("\0") if name)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one_that_the_command_line_takes(command: str) -> None:
    verb, *words = shlex.split(command)
    found = cli.cli.get_command(click.Context(cli.cli), verb)
    assert found is not None
    found.make_context(verb, words)


@pytest.mark.parametrize("variable", re.findall(r"^\| `([A-Z_]+)` \|", SECTIONS["Variables"], re.MULTILINE))
def test_each_variable_is_known(variable: str) -> None:
    assert f'"{variable}"' in tracked("bench/*.py")


@pytest.mark.parametrize("message", re.findall(r"^\| `(.+?)`", SECTIONS["Troubleshooting"], re.MULTILINE))
def test_each_message_is_said(message: str) -> None:
    if message == "undefined symbol":  # the loader's
        return
    code = re.sub(r'"\s*\n\s*f?"', "", tracked("bench/*.py", "csrc/*.py"))
    for part in filter(None, (part.strip() for part in message.split("…"))):
        assert part in code, part
