"""What gates and tries say of what they measured, and how their commands are watched; benches are made up."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import cards
from kernelgate.bench.measure import machine
from kernelgate.bench.record import Device, Environment, RunRecord
from kernelgate.bench.system import environment, lock, supervise
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import gating, trying, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event
from kernelgate.ci.lab.watching import Watch, Watched
from kernelgate.ci.pipeline import local
from kernelgate.ci.policy.policy import Policy
from tests import miniature, registered
from tests.bench.in_process import put_workers_in_threads
from tests.bench.machine import CPU
from tests.ci.lab import session_events as made
from tests.forked_reader import read_cards_in_forks
from tests.registered import write_card
from tests.runs import case, process, run_record


def test_the_performance_gate_times_the_smallest_case_first_and_says_which_band_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bench of a head alone times its cases from the smallest to the largest. The session is about none but its
    own."""
    card = TOY.replace("cpu_cases = cases", "cpu_cases = [dict(M=4096), dict(M=512), dict(M=8)]")
    write_card(tmp_path / ".ci/kernels", "toy", card)
    miniature.git(tmp_path, "init", "--quiet")
    read_cards_in_forks(monkeypatch)

    def ran(_: str, words: list[str], *__: object) -> Watched:
        asked = [words[at + 1].partition("/")[2] for at, word in enumerate(words) if word == "--case"]
        head_us = {"m8": 9000.0}
        timed = [(id_, {"head": [head_us.get(id_, 4000.0)] * 40, "reference": [1000.0] * 40}) for id_ in asked]
        made_up = run_record([case(id_, [process(times) for _ in range(3)], card="toy") for id_, times in timed])
        path = Path(words[words.index("--output") + 1])
        if words[0] == "build":
            (path / "toy").mkdir(parents=True, exist_ok=True)
        else:
            record.write(made_up, path)
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    critical = "critical: stop, and profile before changing anything"
    for cases, said in (
        (("m512",), f"0.25x the reference: 4 ms against 1 ms; m8, mostly launch and prologue, 0.111x; {critical}"),
        (("m8",), f"0.111x the reference: 9 ms against 1 ms; {critical}"),
        ((), f"0.191x the reference, the mean of 3 cases; of the first 4 ms against 1 ms; {critical}"),
    ):
        session = Session(tmp_path, (made.opened(cases=cases),))
        attempt = gating.attempt(session, tmp_path, Policy(), "performance")
        assert (attempt.passed, attempt.said) == (True, said)


def test_the_environment_gate_names_the_lock_and_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "path", lambda _: tmp_path / "gpu.lock")

    def ran(_: str, words: list[str], *__: object) -> Watched:
        told = [asdict(machine.lock_check("GPU-1"))]
        Path(words[words.index("--output") + 1]).write_text(json.dumps({"checks": told}), encoding="utf-8")
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    session = Session(tmp_path, (made.opened(),))
    session.work.mkdir()
    assert gating.attempt(session, tmp_path, Policy(), "environment").said == "fit to measure"
    with lock.device("GPU-1"):
        attempt = gating.attempt(session, tmp_path, Policy(), "environment")
    assert attempt.passed
    assert f"device lock: {tmp_path}/gpu.lock is held by process {os.getpid()} since 20" in attempt.said


TOY = (
    """
cases = [dict(M=4096), dict(M=8)]
cpu_cases = cases
fuzz = dict(M=range(1, 9))
def configurations(self, device):
    return {"one": {}}
"""
    + registered.TWICE_METHODS
)
KERNEL = registered.TWICE
JUDGED = judge(run_record([case("0", [process({"head": [10.0], "reference": [20.0]}, "block")])]), Policy()).cases[0]


def figures(rng: np.random.Generator, processes: int, cases: int = 1) -> dict[str, float]:
    """Of kernels twice as fast as their reference, whose processes scatter by 2%."""
    heads = 10 * rng.lognormal(0, 0.02, (cases, processes))
    timed = [
        case(str(number), [process({"head": [us], "reference": [20.0]}, "block") for us in row])
        for number, row in enumerate(heads)
    ]
    both = [
        replace(JUDGED, id=str(number), head_us=float(np.exp(np.log(row).mean())), reference_us=20.0)
        for number, row in enumerate(heads)
    ]
    return gating.beside_reference(run_record(timed), both)


@pytest.mark.parametrize("cases", [1, 3])
def test_the_interval_of_a_speed_up_holds_the_truth_in_19_of_20(cases: int) -> None:
    rng = np.random.default_rng(7)
    found = [figures(rng, 5, cases) for _ in range(60)]
    assert np.mean([one["speedup_low"] <= 2 <= one["speedup_high"] for one in found]) >= 0.88
    assert np.median([one["speedup_high"] / one["speedup_low"] for one in found]) < 1.1
    assert figures(rng, 1, cases).keys() == {"speedup"}, "of a single process there is none"


H200 = Environment(device=Device(name="NVIDIA H200", compute_capability="9.0", driver="570"))


def compared(change: float) -> RunRecord:
    """Times of one case that changes by this in each process, give or take what processes differ by."""
    drawn = random.Random(5)

    def timed() -> dict[str, list[float]]:
        base = [100 * drawn.gauss(1, 0.003) for _ in range(100)]
        ratio = (1 + change) * drawn.gauss(1, 0.014)
        return {"base": base, "head": [one * ratio * drawn.gauss(1, 0.003) for one in base], "reference": base}

    return run_record([case("n4", [process(timed()) for _ in range(4)])], H200)


@pytest.mark.parametrize(
    ("change", "advised"),
    [
        (-0.36, "keep"),  # in processes that lie 4% apart, which the verdict leaves open
        (-0.06, "revert"),  # of which a gain of 6% is not certain
        (-0.999, "revert"),  # a thousand times as fast as base and reference
    ],
)
def test_a_try_is_decided_by_its_time_and_how_certain_that_is(change: float, advised: str) -> None:
    tuning = Session(made.HERE, (made.opened(gpu="NVIDIA H200"), *made.passed(1.0)))
    found = trying._judged(tuning, compared(change), Policy())
    assert found["advised"] == advised, found["said"]


def test_the_smallest_case_is_the_ladders_on_a_gpu_and_else_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By this repository's own cards: S=32 comes before S=512."""
    read_cards_in_forks(monkeypatch)
    attention = cards.of_checkout(made.HERE)["attention"]
    assert cards.smallest(attention, "cuda").case.id == "s32_b32_h8_d64_fp16"
    assert cards.smallest(attention, "cpu").case in attention.suites["cpu"]


@pytest.mark.parametrize("prologue_s", [0, 0.003])
def test_a_try_that_is_slower_in_the_smallest_case_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prologue_s: float
) -> None:
    """Timed alone, before the session's own case, which is not timed then."""
    put_workers_in_threads(monkeypatch)
    write_card(tmp_path / ".ci/kernels", "toy", TOY)
    monkeypatch.setattr(environment, "describe", lambda *_: CPU)
    name = f"small_{prologue_s}".replace(".", "_")
    wait = f"    if x.numel() == 8: time.sleep({prologue_s})\n" if prologue_s else ""
    slow = f"import time\n{KERNEL}".replace("    out", f"{wait}    out")
    base, head = (
        registered.build(tmp_path / side, f"{name}_{side}", code, "toy")
        for side, code in (("base", KERNEL), ("head", slow))
    )
    monkeypatch.setattr(trying.git, "worktree", lambda *_: nullcontext(tmp_path))
    for one, made_up in (("libraries", None), ("bases", None), ("against", {"toy": Sides(base, head)})):
        monkeypatch.setattr(f"kernelgate.bench.measure.run.{one}", lambda *_, made_up=made_up: made_up)
    opened = made.opened(cases=["m4096"])
    found = trying.measure(tmp_path, opened, made.tried(1, -5, base="b" * 40), tmp_path)
    judged = trying._judged(Session(tmp_path, (opened, *made.passed(1.0))), found, Policy())
    ids = {timing.case for one in found.processes for timing in one.timings}
    assert ids == ({"m8"} if prologue_s else {"m4096"})
    if prologue_s:
        assert judged["said"].startswith("m8 is slower: its launch or prologue, which is most of so small a case;")
        assert judged["advised"] == "revert"
        assert len(found.processes) <= Policy().processes.to_block


def test_a_base_that_does_not_compile_is_told_before_anything_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library: Any = object()
    sides = {"toy": Sides(None, library, "commit b: toy.cu:3: expected a ;")}
    monkeypatch.setattr(trying.git, "worktree", lambda *_: nullcontext(tmp_path))
    for name, made_up in (("libraries", None), ("bases", None), ("against", sides)):
        monkeypatch.setattr(f"kernelgate.bench.measure.run.{name}", lambda *_, made_up=made_up: made_up)
    monkeypatch.setattr(local, "measured", lambda *_: pytest.fail("it was timed"))
    said = "the last kept state cannot be measured against, so nothing was timed: commit b: toy.cu:3: expected a ;"
    with pytest.raises(KernelgateError, match=re.escape(said)):
        trying.measure(tmp_path, made.opened(), made.tried(1, -5, base="b" * 40), tmp_path)


WATCH = Watch("try 1", report_s=0.2, silent_s=60.0, total_s=60.0)
HANGS = "import time\ntime.sleep(60)\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "made_up.py"


def test_the_wait_for_a_device_is_no_time_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said by the lock itself: it is neither counted nor does the command's time run out over it."""
    monkeypatch.setattr(lock, "_REMIND_S", 0.3)
    monkeypatch.setattr(lock.tempfile, "gettempdir", lambda: str(tmp_path))
    with lock.device("GPU-1"), monkeypatch.context() as another_process:
        another_process.setattr(lock, "_ours", set())
        with pytest.raises(KernelgateError, match="gave up"), lock.device("GPU-1", wait_s=1.0):
            pytest.fail("it was held")
    waiting = capsys.readouterr().err.splitlines()[-1]
    assert lock.waited_s(waiting) is not None
    clock = [0.0]

    def long(*_: object, on_line: Callable[[str], None], on_silence: Callable[[float], None], **__: object) -> int:
        clock[0] = 500.0
        on_line(re.sub(r"\(\d+ s", "(500 s", waiting))
        clock[0] = 530.0
        on_silence(30.0)
        clock[0] = 605.0
        on_line("waited 600 s for GPU-1")
        return 0

    monkeypatch.setattr(supervise, "run", long)
    monkeypatch.setattr(watching.time, "monotonic", lambda: clock[0])
    done = watching.run("made_up", [], tmp_path, WATCH)
    assert (done.code, done.seconds) == (0, 5.0)


def test_the_time_of_the_device_is_that_in_which_it_was_held(module: Path) -> None:
    """By whichever process of the command; what it did before, such as compiling, is none."""
    held = "import subprocess,sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
    module.write_text(held)
    uses = "from kernelgate.bench.system import lock; import time\nwith lock.device('GPU-t'): time.sleep(0.2)"
    used = watching.run("made_up", [uses], module.parent, WATCH)
    unused = watching.run("made_up", ["import time; time.sleep(0.2)"], module.parent, WATCH)
    assert (used.code, unused.code) == (0, 0)
    assert 0.2 <= used.device_s < used.seconds
    assert unused.device_s == 0


@pytest.mark.parametrize(
    ("limits", "why"), [({"silent_s": 0.4}, r"silent for \d+ s"), ({"total_s": 0.4}, r"its 0\.00667 minutes were over")]
)
def test_a_command_is_reported_and_ended_where_it_is_silent_or_takes_too_long(
    module: Path, limits: dict[str, float], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module.write_text("print('linking', flush=True)\n" + HANGS)
    done = watching.run("made_up", [], module.parent, replace(WATCH, expected_s=90.0, **limits))
    told = capsys.readouterr().err
    assert "  linking\n" in told
    assert re.search(r"try 1: \d+ s of about 90 s, at most \d+ s", told)
    assert done.code is None
    assert re.fullmatch(rf"ended: {why}; last line: linking", done.why)
    assert done.silent_s is not None


def of(name: str, *events: Event, **fields: object) -> Session:
    return Session(Path(name), (made.opened(name=name, gpu="NVIDIA H200", **fields), *events))


def test_the_same_kernel_on_the_same_device_says_what_to_expect_and_a_script_or_a_document_does_not() -> None:
    new = of("new")
    earlier = of("earlier", made.gate("build", 2, seconds=40.0), made.tried(1, -5, seconds=50.0))
    search = of("search", made.gate("profile", 0, seconds=None), made.tried(1, -5, seconds=1.1))
    told = of("told", made.gate("build", 2, seconds=3600.0), source="recorded")
    other = of("other", made.gate("build", 2, seconds=9.0), card="another")
    strangers = (new, search, told, other)
    for every, build_s, try_s in ((strangers, None, None), ((*strangers, earlier), 40, 50)):
        assert watching.expected_seconds("build", new, every) == build_s
        assert watching.expected_seconds(None, new, every) == try_s
        assert watching.expected_seconds("performance", new, every) is None
