"""What explains a timing, put into the run record: what the profiler saw of both sides.

It is not needed for a verdict: where it is missing, the record's notes say why, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Sides, facts_missing
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.record import Note, RunRecord


def add(record: RunRecord, libraries: Mapping[str, Sides], profiler: nsight.Profiler | None) -> RunRecord:
    """The record with the profiles and a note on each thing that is missing.

    Without a profiler, on a machine without a GPU, nothing is profiled. The kernels' registers and shared memory are in
    the record's builds already: they travel with the library.
    """
    missing = [why for sides in libraries.values() for why in facts_missing(sides)]
    notes = [Note(code="no_static_analysis", text=f"no static analysis of {why}") for why in missing]
    if profiler is None:
        return record.model_copy(update={"notes": (*record.notes, *notes)})
    done = nsight.profiled(profiler)
    notes += [Note(code="no_profile", text=failure) for failure in done.failures]
    return record.model_copy(update={"profile": done.profiles, "notes": (*record.notes, *notes)})


@contextmanager
def profiling(
    libraries: Mapping[str, Sides],
    cases: Sequence[ChosenCase],
    out: Path,
    clock_control: Literal["none", "base"],
    timeout_s: float,
    counters: Literal["quick", "full"] = "quick",
) -> Iterator[nsight.Profiler | None]:
    """A profiler of the cases on this machine, its processes started, reports in `out`; None where there is no GPU."""
    try:
        options = nsight.Options(out, only_gpu(), counters, clock_control, timeout_s)
    except NoDeviceError:
        yield None
        return
    with nsight.ready(libraries, cases, options) as profiler:
        yield profiler
