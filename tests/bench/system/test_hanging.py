"""Every kind of process that kernelgate starts, hanging: each is ended at its limit, with what it said last."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import git
from tests.processes import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(50)]

HANG = 'echo "almost done" >&2\nexec sleep 60'
LIMIT_S = 1.0


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program of this name first on PATH, which says something and hangs."""

    def make(name: str) -> Path:
        path = program(tmp_path / "bin" / name, HANG)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path

    return make


def test_git(tool: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(git, "PATIENCE_S", LIMIT_S)
    tool("git")
    with pytest.raises(KernelgateError, match=r"git rev-parse .* did not end within 1 s; last line: almost done"):
        git.root(tmp_path)


def test_a_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cards, "PATIENCE_S", 10.0)  # most of it to start, on a busy machine
    code = "import sys, time\nprint('almost done', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    (tmp_path / "slow.py").write_text(code, encoding="utf-8")
    with pytest.raises(
        KernelgateError, match=r"slow\.py: the card cannot be read: the process did not answer for 10 s .*almost don"
    ):
        cards.read(tmp_path)
