"""docs/dev_env.md: its commands exist, something reads its variables, and something says its messages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests import docs_code

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "dev_env.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in TEXT.split("\n## ")}
COMMANDS = sorted(set(re.findall(r"kernelgate (?:doctor|build|bench)(?: --[a-z-]+ [A-Z][\w~]+)?", TEXT)))


def tracked(*patterns: str) -> str:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split("\0") if name)


def test_each_command_is_taken_and_each_variable_and_message_is_known() -> None:
    assert COMMANDS
    for command in COMMANDS:
        docs_code.parsed(command)
    code = tracked("bench/*.py", "csrc/*.py")
    variables = re.findall(r"^\| `([A-Z_]+)` \|", SECTIONS["Variables"], re.MULTILINE)
    assert [name for name in variables if f'"{name}"' not in code] == []
    messages = set(re.findall(r"^\| `(.+?)`", SECTIONS["Troubleshooting"], re.MULTILINE)) - {"undefined symbol"}
    whole = re.sub(r'"\s*\n\s*f?"', "", code)
    parts = [part.strip() for message in messages for part in message.split("…")]
    assert [part for part in parts if part not in whole] == []
