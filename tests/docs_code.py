"""The code and the commands of a page of documentation, as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench.build import toolchain
from kernelgate.ci.commands import cli

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"// ([\w.]+)\n")


@dataclass(frozen=True)
class ShownCommand:
    """A line of a console, and what the page shows of its output; nothing where it must end with 0."""

    line: str
    shown: tuple[str, ...]


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def write_files(page: Path, folder: Path) -> None:
    """Each fragment whose first line names a file."""
    for text in blocks(page, "cuda"):
        if named := NAMED.match(text):
            (folder / named[1]).write_text(text, encoding="utf-8")


def commands(page: Path) -> Iterator[ShownCommand]:
    for text in blocks(page, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, *shown = part.splitlines()
            yield ShownCommand(line, tuple(shown))


def variables() -> Mapping[str, str]:
    """With nvcc on PATH, and where headers and libraries lie. Needs nvcc."""
    found = toolchain.find()
    assert found.cuda is not None
    return {
        **os.environ,
        "LC_ALL": "C",
        "PATH": f"{found.cuda.nvcc.parent}:{os.environ['PATH']}",
        "CUDA_LIB": str(found.cuda.lib),
        "TORCH_INCLUDE": str(found.torch.include),
        "PYTHON_INCLUDE": sysconfig.get_paths()["include"],
    }


def run(command: ShownCommand, folder: Path) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("sh") or "sh"
    words = [shell, "-c", command.line]
    return subprocess.run(
        words, cwd=folder, env=variables(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


def parsed(line: str) -> None:
    """Fails where the command line does not take a line such as `kernelgate session try "WHAT" "WHY"`."""
    verb, *words = shlex.split(line, comments=True)[1:]
    found: click.Command | None = cli.cli.get_command(click.Context(cli.cli), verb)
    if isinstance(found, click.Group) and words:
        verb, *words = words
        found = found.commands.get(verb)
    assert found is not None, line
    found.make_context(verb, words)


def top_level() -> dict[str, click.Command]:
    """The commands of `kernelgate`, which loads each when it is called."""
    context = click.Context(cli.cli)
    listed = {name: cli.cli.get_command(context, name) for name in cli.cli.list_commands(context)}
    return {name: command for name, command in listed.items() if command is not None}
