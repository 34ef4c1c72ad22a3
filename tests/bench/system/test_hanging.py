"""Every kind of process that kernelgate starts, hanging: each is ended at its limit, with what it said last."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import machine_code
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import git, supervise
from kernelgate.bench.system.supervise import TimeLimits
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


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (HANG, "last line: almost done"),
        ("exec sleep 60", "it printed nothing"),
        ("echo first; printf '40%% of it'; exec sleep 60", "last line: 40% of it"),
    ],
)
def test_a_followed_command(tmp_path: Path, script: str, says: str) -> None:
    """Such as ninja, ncu and compute-sanitizer."""
    with pytest.raises(TimeoutError) as raised:
        supervise.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env=dict(os.environ),
            limits=TimeLimits(total_s=LIMIT_S),
            on_line=lambda _: None,
            on_silence=lambda _: None,
        )
    assert str(raised.value) == says


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


def test_readers_of_machine_code_and_reports(
    tool: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine_code, "TIMEOUT_S", LIMIT_S)
    tool("c++filt")
    assert machine_code.demangled(["_Z1av"]) == {"_Z1av": "_Z1av"}
    report = tmp_path / "a.ncu-rep"
    report.write_bytes(ncu_reader.MAGIC)
    monkeypatch.setattr(ncu_reader, "PATIENCE_S", LIMIT_S)
    monkeypatch.setattr(sys, "executable", str(tool("python")))
    with pytest.raises(KernelgateError, match="did not answer for 1 s"):
        ncu_reader.read(report)
