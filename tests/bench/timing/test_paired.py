"""The duel with real processes: what it records, what it catches, and what a killed run loses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.errors import KernelgateError, RecordError
from kernelgate.bench.kernel import suite
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.paired import PairedPlan
from tests import faulty
from tests.bench.machine import CPU

ROOT = Path(__file__).parents[3]
SMALL = suite.SuiteCase(16, 1, 1, "fp32")
CAUSAL = replace(SMALL, causal=True)

Build = Callable[..., Library]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a kernel with a fault, under a namespace of its own where none is named."""

    def build(fault: str = "none", namespace: str | None = None) -> Library:
        folder = tmp_path_factory.mktemp(fault)
        return faulty.build(folder / "library", namespace or f"duel_{folder.name.replace('-', '_')}", fault)

    return build


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))


def plan(base: Library | None, head: Library, **changes: object) -> PairedPlan:
    small = PairedPlan(
        base=base, head=head, cases=(SMALL,), environment=CPU, seed=5, launches=1, rounds=6, patience_s=60
    )
    return replace(small, **changes)  # type: ignore[arg-type]


def run(planned: PairedPlan, path: Path, **options: object) -> RunRecord:
    return paired.run(planned, RunRecord(notes=("from the caller",)), path, **options)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------------------
# What is recorded
# ----------------------------------------------------------------------------------------------------------------------


def test_a_duel_of_two_cases_and_two_launches(built: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = built(), built()
    planned = plan(base, head, cases=(SMALL, CAUSAL), launches=2, rounds=25)
    done = run(planned, tmp_path / "out" / "run.json")
    assert record.read(tmp_path / "out" / "run.json") == done
    assert done.environment == CPU
    assert [(build.side, build.library_sha256) for build in done.build] == [
        ("base", base.manifest.sha256),
        ("head", head.manifest.sha256),
    ]
    assert [case.id for case in done.cases] == ["s16_b1_h1_d64_fp32", "s16_b1_h1_d64_fp32_causal"]
    for case in done.cases:
        assert case.params == suite.parse(case.id).params
        assert case.work == suite.parse(case.id).work
        assert len(case.launches) == 2
        for launch in case.launches:
            assert launch.order == "interleaved"
            assert list(launch.samples_us) == ["base", "head", "oracle"]
            assert {len(samples) for samples in launch.samples_us.values()} == {25}
            assert launch.inner_repeats is not None
            assert launch.telemetry is not None
            assert launch.graph_us == {}
            assert {side: check.passed for side, check in launch.outputs.items()} == {"base": True, "head": True}
    assert done.notes[:2] == ("from the caller", "seed 5 from launch 1 on")
    said = capsys.readouterr()
    assert "seed 5" in said.err
    assert said.out == ""


def test_a_slower_kernel_takes_longer_in_the_record(built: Build, tmp_path: Path) -> None:
    """Twice the work is no timing assertion: of some rounds, head is slower in most."""
    done = run(
        plan(built(), built("twice"), cases=(suite.SuiteCase(256, 1, 2, "fp32"),), rounds=40), tmp_path / "run.json"
    )
    samples = done.cases[0].launches[0].samples_us
    slower = sum(head > base for base, head in zip(samples["base"], samples["head"], strict=True))
    assert slower > 30


def test_a_library_against_itself_says_so(built: Build, tmp_path: Path) -> None:
    same = built()
    done = run(plan(same, same), tmp_path / "run.json")
    assert "base and head are the same library, which is timed against itself" in done.notes
    assert {"base", "head", "oracle"} == set(done.cases[0].launches[0].samples_us)


def test_a_head_alone(built: Build, tmp_path: Path) -> None:
    done = run(plan(None, built()), tmp_path / "run.json")
    assert [build.side for build in done.build] == ["head"]
    assert set(done.cases[0].launches[0].samples_us) == {"head", "oracle"}


def test_a_run_stops_when_it_is_told_to(built: Build, tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(so_far: RunRecord) -> bool:
        assert record.read(tmp_path / "run.json") == so_far, "it is written before the question is asked"
        seen.append(paired.launch_count(so_far))
        return len(seen) == 2

    done = run(plan(built(), built(), launches=5), tmp_path / "run.json", stop=stop)
    assert seen == [1, 2]
    assert paired.launch_count(done) == 2


def test_what_a_kernel_prints_does_no_harm(built: Build, tmp_path: Path) -> None:
    assert paired.launch_count(run(plan(built("prints"), built()), tmp_path / "run.json")) == 1


# ----------------------------------------------------------------------------------------------------------------------
# Kernels that cheat, and kernels that die
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["stops_working", "remembers", "writes_nan", "skips_last_row"])
def test_a_kernel_that_does_not_do_its_work_when_timed_is_caught(built: Build, tmp_path: Path, fault: str) -> None:
    """The case is one whose inputs are too large for many sets, so that each set is used again and again."""
    case = suite.SuiteCase(512, 1, 8, "fp32")
    done = run(plan(built(), built(fault), cases=(case,), rounds=60), tmp_path / "run.json")
    outputs = done.cases[0].launches[0].outputs
    assert outputs["base"].passed
    assert not outputs["head"].passed
    assert (outputs["head"].max_abs_error is None) == (fault == "writes_nan")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("crashes_if_causal", "the process was ended by SIGSEGV; its last words: about to crash"),
        ("raises_if_causal", r"causal is not implemented\."),
        ("hangs_if_causal", "the process said nothing for 8 s and was ended"),
    ],
)
def test_a_kernel_that_dies_is_named_with_launch_and_case(built: Build, tmp_path: Path, fault: str, says: str) -> None:
    planned = plan(built(), built(fault), cases=(SMALL, CAUSAL), launches=3, patience_s=8 if "hangs" in fault else 60)
    with pytest.raises(paired.LaunchError) as raised:
        run(planned, tmp_path / "run.json")
    message = str(raised.value)
    assert message.startswith(f"launch 1 of 3 failed while calling head for the first time on {CAUSAL.id}: ")
    assert says.replace("\\", "") in message
    assert "kernelgate fuzz" in message
    assert "--resume" in message
    assert "\n" not in message


def test_launches_before_a_failure_are_kept(built: Build, tmp_path: Path) -> None:
    base, head = built(), built()
    path = tmp_path / "run.json"

    def break_head(_: RunRecord) -> bool:
        (head.folder / "kernel.so").write_bytes(b"no library")
        return False

    with pytest.raises(paired.LoadError, match=r"launch 2 of 3 failed while loading head: .* is not the file that"):
        run(plan(base, head, launches=3), path, stop=break_head)
    assert paired.launch_count(record.read(path)) == 1


# ----------------------------------------------------------------------------------------------------------------------
# Alternating processes
# ----------------------------------------------------------------------------------------------------------------------


def test_libraries_of_one_namespace_take_turns_in_two_processes(built: Build, tmp_path: Path) -> None:
    planned = plan(built("none", "same_name"), built("loner", "same_name"), launches=2, rounds=30)
    done = run(planned, tmp_path / "run.json")
    for launch in done.cases[0].launches:
        assert launch.order == "alternating"
        assert list(launch.samples_us) == ["base", "oracle", "head"]
        assert {len(samples) for samples in launch.samples_us.values()} == {30}
        assert set(launch.outputs) == {"base", "head"}
    (note,) = [note for note in done.notes if "took turns" in note]
    assert "precision is lower" in note
    assert "both register their operators as torch.ops.same_name" in note


def test_a_library_that_bears_no_other_takes_turns_too(built: Build, tmp_path: Path) -> None:
    """Found out by loading both: the process that tries it is ended."""
    path = tmp_path / "run.json"
    planned = plan(built("loner"), built(), launches=2)
    done = run(planned, path, stop=lambda so_far: paired.launch_count(so_far) == 1)
    (note,) = [note for note in done.notes if "took turns" in note]
    assert "while loading" in note
    assert "SIGABRT" in note
    resumed = run(planned, path, resume=True)
    assert [launch.order for launch in resumed.cases[0].launches] == ["alternating"] * 2


def test_both_start_orders_occur() -> None:
    library = Library(Path("x"), faulty.library.Manifest.model_construct(namespace="n", key="k"), cached=True)
    planned = plan(library, library)
    assert paired._teams(planned, 0, together=False) == [["base"], ["head"]]
    assert paired._teams(planned, 1, together=False) == [["head"], ["base"]]
    together = {tuple(paired._teams(planned, number, together=True)[0]) for number in range(20)}
    assert together == {("base", "head"), ("head", "base")}


def test_a_base_that_cannot_be_loaded_at_all(built: Build, tmp_path: Path) -> None:
    broken = built()
    (broken.folder / "kernel.so").write_bytes(b"no library")
    with pytest.raises(KernelgateError, match=r"launch 1 of 1 failed while loading base: .* build it again"):
        run(plan(broken, built()), tmp_path / "run.json")
    assert not (tmp_path / "run.json").exists()


# ----------------------------------------------------------------------------------------------------------------------
# Going on
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_launch(built: Build, tmp_path_factory: pytest.TempPathFactory) -> tuple[PairedPlan, RunRecord]:
    planned = plan(built(), built(), launches=1)
    return planned, run(planned, tmp_path_factory.mktemp("one") / "run.json")


def test_resuming_adds_what_is_missing(one_launch: tuple[PairedPlan, RunRecord], tmp_path: Path) -> None:
    planned, first = one_launch
    path = tmp_path / "run.json"
    record.write(first, path)
    done = run(replace(planned, launches=2, seed=6), path, resume=True)
    assert done.cases[0].launches[0] == first.cases[0].launches[0]
    assert paired.launch_count(done) == 2
    assert "seed 5 from launch 1 on" in done.notes
    assert "seed 6 from launch 2 on" in done.notes


def test_resuming_what_is_complete_or_decided_times_nothing(
    one_launch: tuple[PairedPlan, RunRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned, first = one_launch
    path = tmp_path / "run.json"
    record.write(first, path)
    assert run(planned, path, resume=True).cases == first.cases
    assert run(replace(planned, launches=9), path, resume=True, stop=lambda _: True).cases == first.cases
    assert "nothing is left to time" in capsys.readouterr().err


def test_resuming_where_there_is_no_record_begins_one(built: Build, tmp_path: Path) -> None:
    assert paired.launch_count(run(plan(built(), built()), tmp_path / "run.json", resume=True)) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cases": (CAUSAL,)}, "it holds other cases \\(s16_b1_h1_d64_fp32\\)"),
        ({"rounds": 7}, "its launches have 6 rounds, not 7"),
        ({"base": None}, "it was measured with other libraries"),
        ({"environment": CPU.model_copy(update={"torch": "9.9"})}, "torch None, now 9.9"),
        (
            {"environment": CPU.model_copy(update={"device": record.Device(name="NVIDIA L4")})},
            "device .*, now NVIDIA L4",
        ),
    ],
)
def test_a_record_that_does_not_fit_is_refused(
    one_launch: tuple[PairedPlan, RunRecord], tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    planned, first = one_launch
    path = tmp_path / "run.json"
    record.write(first, path)
    with pytest.raises(RecordError, match=f"cannot be gone on with: {says}"):
        run(replace(planned, launches=2, **changes), path, resume=True)  # type: ignore[arg-type]
    assert record.read(path) == first


# ----------------------------------------------------------------------------------------------------------------------
# The verb, and signals
# ----------------------------------------------------------------------------------------------------------------------


def bench(base: Library, head: Library, output: Path, *words: str) -> subprocess.Popen[str]:
    """The command as a user runs it, on the CPU."""
    libraries = ["--base-library", str(base.folder), "--head-library", str(head.folder)]
    command = [
        sys.executable,
        "-m",
        "kernelgate.ci.cli",
        "bench",
        *libraries,
        "--case",
        SMALL.id,
        "-o",
        str(output),
        *words,
    ]
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(output.parent)}
    return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(pid: int) -> list[int]:
    """Processes whose parent is, or was, `pid`."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_killed_run_loses_the_launch_in_flight_alone(built: Build, tmp_path: Path) -> None:
    base, head, output = built(), built(), tmp_path / "run.json"
    killed = bench(base, head, output, "--launches", "50", "--rounds", "10", "--seed", "3")
    wait_for(lambda: output.exists() and paired.launch_count(record.read(output)) >= 2, killed)
    wait_for(lambda: bool(children(killed.pid)), killed)
    (launch,) = children(killed.pid)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = record.read(output)
    kept = paired.launch_count(before)
    assert kept >= 2
    deadline = time.monotonic() + 60
    while running(launch):
        assert time.monotonic() < deadline, "the launch outlives the run"
        time.sleep(0.05)
    words = ("--launches", str(kept + 1), "--rounds", "10", "--seed", "4", "--resume")
    resumed = bench(base, head, output, *words)
    said, told = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, told
    assert said.strip() == str(output)
    after = record.read(output)
    assert after.cases[0].launches[:kept] == before.cases[0].launches
    assert paired.launch_count(after) == kept + 1
    assert "TFLOP/s" in told


def test_ctrl_c_ends_the_launch_too(built: Build, tmp_path: Path) -> None:
    stopped = bench(built(), built(), tmp_path / "run.json", "--launches", "50", "--rounds", "10")
    wait_for(lambda: (tmp_path / "run.json").exists(), stopped)
    wait_for(lambda: bool(children(stopped.pid)), stopped)
    (launch,) = children(stopped.pid)
    stopped.send_signal(signal.SIGINT)
    said, told = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert said == ""
    assert told.rstrip().endswith("kernelgate: interrupted")
    assert "Traceback" not in told
    assert not running(launch)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--head-library", "/nowhere", "--alone"], 3, "/nowhere holds no compiled kernel"),
        (["--head-library", "/nowhere"], 64, "--head-library needs --base-library, --base or --alone"),
        (["--alone", "--base", "HEAD"], 64, "leave out --base"),
        (["--base", "HEAD", "--base-library", "/nowhere"], 64, "not both"),
        (["--launches", "0"], 64, "0"),
    ],
)
def test_bad_words_give_one_sentence(tmp_path: Path, words: list[str], code: int, says: str) -> None:
    command = [sys.executable, "-m", "kernelgate.ci.cli", "bench", "-o", str(tmp_path / "run.json"), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run.json").exists()
