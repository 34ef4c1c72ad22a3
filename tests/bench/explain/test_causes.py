from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.errors import NoDeviceError
from kernelgate.bench.explain import causes
from kernelgate.bench.explain.nsight import ProfilingResult
from kernelgate.bench.record import Profile, Resources, RunRecord
from kernelgate.bench.run import Sides

RECORD = RunRecord(notes=("before",))
SIDES = Sides(None, None)  # type: ignore[arg-type]
FOUND = (Resources(side="head", target="sm_89", kernel="k"),)


def add(folder: Path) -> RunRecord:
    return causes.add(RECORD, folder, SIDES, ["case"], folder, "none", 10.0)


def no_gpu() -> tuple[int, int]:
    raise NoDeviceError("none")


def missing(*_: object) -> tuple[Resources, ...]:
    raise NoDeviceError("cuobjdump is missing")


def test_without_a_gpu_the_compiler_still_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "only_gpu", no_gpu)
    monkeypatch.setattr("kernelgate.bench.explain.resources.of_sides", lambda *_: FOUND)
    found = add(tmp_path)
    assert (found.resources, found.profile, found.notes) == (FOUND, (), ("before",))


def test_what_is_missing_is_noted_and_the_rest_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Profile(case="case", side="head", metrics={"duration_us": 1.0})
    monkeypatch.setattr(causes, "only_gpu", lambda: (8, 9))
    monkeypatch.setattr("kernelgate.bench.explain.resources.of_sides", missing)
    monkeypatch.setattr(
        "kernelgate.bench.explain.nsight.profile",
        lambda *_: ProfilingResult((one,), ("no profile of base at case: why",)),
    )
    found = add(tmp_path)
    assert found.resources == ()
    assert found.profile == (one,)
    assert found.notes == (
        "before",
        "no static analysis: cuobjdump is missing",
        "no profile of base at case: why",
    )
