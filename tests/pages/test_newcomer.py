"""What a newcomer is told to type works as it stands, line by line, in a fresh clone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import Closed, TriedChange
from tests import docs_code

ROOT = Path(__file__).parents[2]
MADE_ALREADY = ("make env", ". .venv/bin/activate")
"""The environment that these make is the one of the tests."""
ENDS = {"kernelgate compare": {1}, "kernelgate session try": {0, 2}}
"""What a page says that a command may end with; all others with 0. Which change helps is up to the machine."""


def lines() -> Iterator[tuple[str, Collection[int]]]:
    """Each command, and what it may end with."""
    for block in docs_code.blocks(ROOT / "docs" / "loop.md", "sh"):
        for line in block.splitlines():
            if not line.startswith(MADE_ALREADY):
                yield line, next((codes for command, codes in ENDS.items() if line.startswith(command)), {0})


@pytest.mark.nightly
def test_a_newcomer_comes_to_the_end_of_the_page(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {**os.environ, **who, "PATH": path, "KERNELGATE_CACHE": str(tmp_path / "cache")}
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "switch", "--quiet", "--force-create", "main"], cwd=clone, check=True)

    for line, codes in lines():
        done = subprocess.run(
            ["sh", "-c", line], cwd=clone, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert done.returncode in codes, f"{line}\n{done.stdout}"

    subprocess.run(["git", "switch", "--quiet", "my-first-session"], cwd=clone, check=True)
    before = {one.opened.name for one in folder.every(ROOT)}
    session = next(one for one in folder.every(clone) if one.opened.name not in before)
    tried = [event for event in session.events if isinstance(event, TriedChange)]
    assert [(one.failed, bool(one.outcomes)) for one in tried] == [(None, True)] * 3
    assert isinstance(session.events[-1], Closed)
    assert (session.folder / "report.md").exists()
