"""`kernelgate profile` with a fake ncu: every way in which a profiler lets one down is one sentence."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.explain import nsight
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.explain.nsight import Options, Profiler, ProfilingJob, ProfilingResult
from kernelgate.bench.kernel import watched_call
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.record import KernelFacts, Note, Profile, RunRecord
from kernelgate.bench.system import cuda_tools, lock
from tests import faulty
from tests.processes import program

pytestmark = pytest.mark.usefixtures("reports_at_once")
REPORTS = Path(__file__).parents[2] / "data" / "nsight"
CASE = "s512_b32_h8_d64_fp16"
NAME = f"attention.{CASE}"

WORKS = f"""
exec 3< "$word"; read -r ahead <&3; read -r asked <&3
cp {REPORTS / "dram.ncu-rep"} "$report"
echo "$@" > "$report.words"
echo "$asked" > "$report.asked"
"""


def library(folder: Path, *kernels: str, missing: str | None = None) -> Library:
    facts = tuple(KernelFacts(target="sm_90", name=name) for name in kernels)
    manifest = Manifest.model_construct(targets=("sm_90",), kernels=facts, facts_missing=missing)
    return Library(folder, manifest, cached=True)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(library(tmp_path / "base"), library(tmp_path / "head"))


def chosen(**changes: object) -> ChosenCase:
    card = faulty.card().model_copy(update=changes)
    return ChosenCase(card, card.target)


def profile(sides: Sides, options: Options) -> ProfilingResult:
    return nsight.profile({"attention": sides}, [chosen()], options)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(out=tmp_path / "out", capability=(9, 0), timeout_s=10.0)


def fake_ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A script that finds where the report goes and then does `body`."""
    find = 'for word in "$@"; do [ "$previous" = --export ] && report="$word"; previous="$word"; done'
    script = program(folder / "bin" / "ncu", f"{find}\n{body}")
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")


def test_both_sides_are_profiled_and_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options
) -> None:
    fake_ncu(tmp_path, monkeypatch, WORKS)
    done = profile(sides, options)
    assert done.failures == ()
    assert [(one.card, one.case, one.side, one.report) for one in done.profiles] == [
        ("attention", CASE, "base", f"{NAME}.base.ncu-rep"),
        ("attention", CASE, "head", f"{NAME}.head.ncu-rep"),
    ]
    assert done.profiles[0].metrics["duration_us"] == pytest.approx(181.2, abs=0.1)
    files = nsight.summaries(done.profiles)
    rows = list(csv.DictReader(io.StringIO(files["profile.csv"])))
    dram = next(row for row in rows if row["metric"] == "dram_pct" and row["side"] == "head")
    assert (dram["label"], dram["unit"]) == ("DRAM throughput", "%")
    assert float(dram["value"]) == pytest.approx(90.3, abs=0.1)
    assert [one["side"] for one in json.loads(files["profile.json"])] == ["base", "head"]
    # ncu was asked for the kernels of one call, with the clocks left alone.
    words = (options.out / f"{NAME}.head.ncu-rep.words").read_text().split()
    for option, value in {
        "--clock-control": "none",
        "--profile-from-start": "off",
        "--launch-count": str(nsight.MAX_KERNELS),
        "-m": watched_call.MODULE,
    }.items():
        assert words[words.index(option) + 1] == value
    assert not {"--set", "--kernel-name"} & set(words)
    said = (options.out / f"{NAME}.head.ncu-rep.asked").read_text()
    request = watched_call.WatchedCall.model_validate_json(said)
    assert request.library.folder == (tmp_path / "head").resolve()
    assert (request.card, request.cases) == (faulty.CARD, (faulty.card().target.axes,))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(cuda_tools, "candidates", lambda *_: iter(()))
    assert "ncu, which profiles kernels (Nsight Compute), is neither on PATH" in profile(sides, options).failures[0]


def test_the_cards_reference_is_profiled_beside_both_and_its_kernels_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options
) -> None:
    fake_ncu(tmp_path, monkeypatch, WORKS)
    sides = replace(sides, head=library(tmp_path / "head", "mine"))
    done = profile(sides, replace(options, reference=True, kernel="dram"))
    assert [one.side for one in done.profiles] == ["base", "head", "reference"]
    for side in ("head", "reference"):
        words, asked = ((options.out / f"{NAME}.{side}.ncu-rep.{end}").read_text() for end in ("words", "asked"))
        assert ("--kernel-name" in words) is (side == "head")
        request = watched_call.WatchedCall.model_validate_json(asked)
        assert (request.reference, request.warm_up) == (side == "reference", watched_call.WARM_UP)


def test_the_kernels_that_are_meant_are_those_of_the_command_else_of_the_card_else_the_librarys(
    tmp_path: Path, options: Options
) -> None:
    for asked, of_card, pattern in (("mine", "card's", "mine"), (None, "card's", "card's"), (None, None, None)):
        job = ProfilingJob(chosen(kernel=of_card), "head", library(tmp_path), replace(options, kernel=asked))
        assert job.pattern == pattern
        regexes = [word for word in nsight.command(Path("ncu"), job) if word.startswith("regex:")]
        assert regexes == ([f"regex:{pattern}"] if pattern else [])
    assert job.own is None
    assert replace(job, library=library(tmp_path, "b<(int)4>", "a", "b<(int)8>")).own == "a|b"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1",
            "only root read the GPU's counters",
        ),
        ("echo '==WARNING== No kernels were profiled.'; echo 'Available Kernels:'; echo '1. add'", "it ran: add"),
        ("echo '==WARNING== No kernels were profiled.'", "no kernel was launched"),
        ("sleep 60", "ncu was ended after 1 s"),
        ("echo '==ERROR== Failed to find metric sm__x.avg'; exit 1", "ncu reports: Failed to find metric sm__x.avg"),
        (
            "echo 'CUDA error: an illegal memory access'; echo '==ERROR== The application returned an error code (1).'",
            "the profiled process failed: CUDA error: an illegal memory access",
        ),
        ("echo 'Segmentation fault'; exit 139", "ncu ended with 139; its last words: Segmentation fault"),
        ("exit 0", "ncu ended with 0 and wrote no report; its last words: nothing"),
        ('head -c 20000 /dev/zero > "$report"', "is not an Nsight Compute report"),
    ],
    ids=["permission", "other kernel", "no kernel", "hang", "metric", "application", "crash", "nothing", "no report"],
)
def test_each_failure_is_one_sentence_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options, body: str, sentence: str
) -> None:
    head_works = f'case "$report" in *head*) {WORKS};; *) {body};; esac'
    fake_ncu(tmp_path, monkeypatch, head_works)
    monkeypatch.setattr(watched_call, "LOADING_S", 1.0)
    done = profile(sides, Options(options.out, options.capability, timeout_s=1.0))
    assert [one.side for one in done.profiles] == ["head"]
    (failure,) = done.failures
    assert failure.startswith(f"no profile of base at {CASE}: ")
    assert sentence in failure
    assert "\n" not in failure


def test_the_gpu_is_held_while_profiles_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options
) -> None:
    """They would disturb whoever measures there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fake_ncu(tmp_path, monkeypatch, "exit 1")
    held: list[str | None] = []
    monkeypatch.setattr(nsight, "failure", lambda *_: held.append(lock.holder("GPU-1")) or "why")
    profile(sides, replace(options, uuid="GPU-1"))
    assert [(one or "").split(" since")[0] for one in held] == [f"process {os.getpid()}"] * 2
    assert lock.holder("GPU-1") is None


def launch(name: str, duration_us: float) -> ProfiledKernel:
    return ProfiledKernel(name, None, None, None, {"duration_us": duration_us}, ())


def test_the_longest_of_the_librarys_own_launches_speaks_for_the_call() -> None:
    """What else the call launches, such as torch's division of a result, counts into the call's time."""

    def of_call(*kernels: ProfiledKernel, own: str | None = None, whole: bool = True) -> dict[str, Any] | None:
        found = nsight.of_call(kernels, own, whole)
        return found and found[0]

    launches = launch("first", 2.0), launch("longest", 30.0), launch("div", 40.0)
    assert of_call(*launches) == {"duration_us": 40.0, "kernel": "div", "launches": 3.0, "call_us": 72.0}
    sums = {"launches": 3.0, "call_us": 72.0}
    assert of_call(*launches, own="first|longest") == {"duration_us": 30.0, "kernel": "longest", **sums}
    assert of_call(*launches, own="elsewhere") == {"duration_us": 40.0, "kernel": "div", **sums}
    assert of_call(*launches, own="longest", whole=False) == {"duration_us": 30.0, "kernel": "longest"}
    many = [launch("one of many", 2.0)] * nsight.MAX_KERNELS
    assert of_call(*many) == {"duration_us": 2.0, "kernel": "one of many"}, "they may not be all"
    assert of_call(*many, own="longest") is None, "it may be among the others"


def test_what_is_missing_is_noted_and_the_rest_stands_and_without_a_gpu_nothing_is_profiled(
    tmp_path: Path, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsight, "only_gpu", Mock(side_effect=NoDeviceError("none")))
    with nsight.profiling({"attention": sides}, [chosen()], tmp_path) as profiler:
        assert nsight.with_profiles(RunRecord(), {"attention": sides}, profiler) == RunRecord()
    made = (Profile(case="case", side="head", metrics={"duration_us": 1.0}),)
    why = "no profile of base at case: why"
    monkeypatch.setattr(nsight, "profiled", lambda *_: ProfilingResult(made, (why,)))
    both = {"attention": replace(sides, base=library(tmp_path, missing="cuobjdump is missing"))}
    found = nsight.with_profiles(RunRecord(notes=(Note(text="before"),)), both, Profiler((), None, None))
    assert found.profile == made
    assert [(note.code, note.text) for note in found.notes] == [
        ("note", "before"),
        ("no_static_analysis", "no static analysis of base: cuobjdump is missing"),
        ("no_profile", why),
    ]
