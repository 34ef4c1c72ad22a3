"""`kernelgate.paired`: two functions in this process, with the same rounds and checks as a paired comparison."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import kernelgate
from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.timing import timer
from kernelgate.ci.commands import cli
from tests.bench.in_process import put_workers_in_threads


@pytest.fixture(autouse=True)
def not_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody else measures this test's CPU."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def hardly_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is no time."""
    put_workers_in_threads(monkeypatch)


def once(x: torch.Tensor, scale: float) -> torch.Tensor:
    return (x @ x) * scale


class WorkClock:
    """Tells what functions have done, give or take 1%, whatever else the machine does."""

    def __init__(self) -> None:
        self.ns = 0
        self.noise = random.Random(1)

    def takes(self, us: float) -> Callable[[torch.Tensor, float], torch.Tensor]:
        """A function that takes so long."""

        def function(x: torch.Tensor, scale: float) -> torch.Tensor:
            self.ns += round(1000 * us * self.noise.gauss(1, 0.01))
            return once(x, scale)

        return function


@pytest.mark.usefixtures("hardly_warm")
def test_a_slower_function_is_slower_and_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, x, kept = WorkClock(), torch.randn(96, 96), tmp_path / "run.json"
    monkeypatch.setattr(timer, "_perf_counter_ns", lambda: clock.ns)
    sides = clock.takes(100), clock.takes(130)
    numerics = torch.get_float32_matmul_precision()
    found = kernelgate.paired(*sides, x, scale=2.0, rounds=20, into=kept)
    assert found.interval_pct[0] < found.change_pct < found.interval_pct[1]
    assert found.change_pct == pytest.approx(30, abs=5)
    assert found.wrong_calls == 0
    assert found.record.processes[0].timings[0].calls["head"].compared
    assert "slower in this process" in str(found)
    assert "over 1 process: " in str(found)
    assert torch.get_float32_matmul_precision() == numerics
    # The next processes of the same script are added, and together judged.
    kernelgate.paired(*sides, x, scale=2.0, rounds=20, into=kept)
    assert len(record.read(kept).processes) == 2
    assert cli.run(["compare", str(kept)]) == 3
    assert "slower" in capsys.readouterr().out


@pytest.mark.usefixtures("hardly_warm")
def test_a_wrong_function_has_no_speed() -> None:
    x = torch.randn(64, 64)
    found = kernelgate.paired(once, lambda x, scale: (x @ x) * scale * 1.1, x, scale=2.0, rounds=20)
    assert found.wrong_calls > 0
    assert str(found).startswith("wrong: ")
    assert "cannot be judged" in found.verdict.reason
    # What the caller allows is right.
    allowed = kernelgate.paired(
        once, lambda x, scale: (x @ x) * scale * 1.1, x, scale=2.0, rounds=20, tolerance=(0.5, 0.2)
    )
    assert allowed.wrong_calls == 0


@pytest.mark.usefixtures("hardly_warm")
def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    x = torch.randn(8, 8)
    for base, args, said in (
        (lambda x: x.add_(1), (x,), "the base changes argument 0"),
        (lambda _: None, (x,), "the base returns nothing"),
        (lambda x: x.tolist()[0][0], (x,), "the base returns float"),
        (lambda: x, (), "no argument is a tensor"),
    ):
        before = x.clone()
        with pytest.raises(UsageError, match=said):
            kernelgate.paired(base, base, *args, rounds=20)
        if said.startswith("no argument"):
            assert torch.equal(x, before)
    with pytest.raises(UsageError, match="rounds=3: a process has 20 rounds at least"):
        kernelgate.paired(once, once, x, 1.0, rounds=3)
    kernelgate.paired(once, once, x, 1.0, rounds=20, into=tmp_path / "run.json", name="small")
    with pytest.raises(UsageError, match="it holds small, not other; name another file"):
        kernelgate.paired(once, once, x, 1.0, rounds=20, into=tmp_path / "run.json", name="other")
    with pytest.raises(AttributeError, match="no attribute 'pair'"):
        kernelgate.pair  # noqa: B018
