from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.explain import nsight
from kernelgate.bench.explain.nsight import Options, Profiler, ProfilingResult
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.record import Note, Profile, RunRecord
from tests import faulty

CASE = ChosenCase(faulty.card(), faulty.card().target)
BEFORE = Note(text="before")
RECORD = RunRecord(notes=(BEFORE,))


def library(missing: str | None, targets: tuple[str, ...] = ("sm_89",)) -> Library:
    return Library(Path("x"), Manifest.model_construct(targets=targets, facts_missing=missing), cached=True)


KNOWN = {"attention": Sides(library(None), library(None))}


def test_without_a_gpu_nothing_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_gpu() -> tuple[int, int]:
        raise NoDeviceError("none")

    monkeypatch.setattr(nsight, "only_gpu", no_gpu)
    with nsight.profiling(KNOWN, [CASE], tmp_path) as profiler:
        assert profiler is None
        assert nsight.with_profiles(RECORD, KNOWN, profiler) == RECORD


def test_what_is_missing_is_noted_and_the_rest_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Profile(case="case", side="head", metrics={"duration_us": 1.0})
    monkeypatch.setattr(
        "kernelgate.bench.explain.nsight.profiled",
        lambda *_: ProfilingResult((one,), ("no profile of base at case: why",)),
    )
    sides = {"attention": Sides(library("cuobjdump is missing"), library(None))}
    found = nsight.with_profiles(RECORD, sides, Profiler((), Options(tmp_path, (8, 9)), None))
    assert found.profile == (one,)
    assert found.notes == (
        BEFORE,
        Note(code="no_static_analysis", text="no static analysis of base: cuobjdump is missing"),
        Note(code="no_profile", text="no profile of base at case: why"),
    )
