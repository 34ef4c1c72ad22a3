"""What all processes of a run share, and what one leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Sides
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.timing import paired, process
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.process import MAX_CPU_CACHE, UNKNOWN_CACHE
from tests import registered
from tests.bench.machine import CPU
from tests.bench.timing.verified import ROWS
from tests.processes import alive

CARD = f"{ROWS}cpu_cases = cases\ndef call(self, ops, case, out, x, y):\n    ops.add(x, y, out)\n"
CODE = """
import subprocess
@operator("add(Tensor x, Tensor y, Tensor(a!) out) -> ()")
def add(x, y, out):
    torch.add(x, y, out=out)
"""
DAEMON = f"""{CODE}
daemon = subprocess.Popen([PROGRAM, "600"], start_new_session=True)
with open(PID, "w") as file:
    file.write(str(daemon.pid))
"""


@pytest.mark.slow
def test_a_process_that_a_library_leaves_behind_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could rewrite the record, or disturb what is measured later."""
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    card = registered.facts(registered.write_card(tmp_path / "cards", "kind", CARD))
    program, pid = tmp_path / "lingers", tmp_path / "pid"
    shutil.copy(shutil.which("sleep") or "", program)
    code = DAEMON.replace("PROGRAM", repr(str(program))).replace("PID", repr(str(pid)))
    head = registered.build(tmp_path / "head", "leaves", code, "kind")
    part = CardPlan(card, Sides(None, head), card.suites["cpu"])
    done = paired.run(PairedPlan((part,), CPU, seed=5, processes=1, rounds=2), RunRecord(), tmp_path / "run.json")
    (note,) = [note for note in done.notes if note.code == "left_processes"]
    assert note.text == "process 1 of 1: it left lingers running, which was ended"
    assert not alive(int(pid.read_text()))
    assert [one.role for one in done.processes] == ["block"]


@pytest.mark.parametrize(
    ("device", "known", "wanted"),
    [
        ("cuda", 50 << 20, 100 << 20),
        ("cuda", None, 2 * UNKNOWN_CACHE),
        ("cpu", 4 << 20, 4 << 20),
        ("cpu", 1 << 30, MAX_CPU_CACHE),
    ],
)
def test_inputs_that_are_read_again_are_not_in_the_cache(
    device: process.DeviceKind, known: int | None, wanted: int
) -> None:
    assert process.cache_bytes(device, known) == wanted


def timing(side: str, time_us: float) -> record.Timing:
    return record.Timing(
        case="here",
        samples_us={side: (time_us, time_us)},
        positions={side: (0, 0)},
        previous={side: (None, side)},
        calls={side: record.Calls(made=4, compared=1)},
        inner_repeats=2,
    )


def test_timings_of_two_processes_that_each_had_a_verifier_become_one() -> None:
    both = process.merged([timing("head", 2.0), timing("base", 1.0)])
    assert both.samples_us == {"base": (1.0, 1.0), "head": (2.0, 2.0)}
    assert both.previous == {"base": (None, "base"), "head": (None, "head")}
    assert set(both.positions) == set(both.calls) == {"base", "head"}
    assert both.inner_repeats == 2
    assert process.merged([timing("head", 2.0)]) == timing("head", 2.0)
