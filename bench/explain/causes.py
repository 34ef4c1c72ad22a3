"""What explains a timing, put into the run record: what the compiler made of both sides, and what the profiler saw.

Neither is needed for a verdict: where one is missing, the record's notes say why, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Sides
from kernelgate.bench.errors import KernelgateError, NoDeviceError
from kernelgate.bench.explain import nsight, resources
from kernelgate.bench.record import RunRecord


def add(
    record: RunRecord,
    repo: Path,
    sides: Sides,
    cases: Sequence[str],
    out: Path,
    clock_control: Literal["none", "base"],
    timeout_s: float,
) -> RunRecord:
    """The record with the resources of both sides, and on a GPU with the profiles of `cases`, reports in `out`."""
    notes = list(record.notes)
    parts: dict[str, object] = {}
    try:
        parts["resources"] = resources.of_sides(repo, sides)
    except KernelgateError as error:
        notes.append(f"no static analysis: {error}")
    try:
        options = nsight.Options(out, only_gpu(), clock_control=clock_control, timeout_s=timeout_s)
    except NoDeviceError:
        pass  # a CPU's times are not explained by a profiler of GPUs
    else:
        done = nsight.profile(sides, cases, options)
        parts["profile"] = done.profiles
        notes += done.failures
    return record.model_copy(update={**parts, "notes": tuple(notes)})
