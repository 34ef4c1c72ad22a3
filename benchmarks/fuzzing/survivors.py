"""The bugs that nothing catches yet, and why: to be emptied."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.fuzzing.bug import Device

HUGE = "no tensor of more than 2 GiB is tried on a CPU; the GPU's are"

SURVIVORS: Mapping[tuple[str, Device], str] = {
    ("attention/cpu/offset-32-bit", "cpu"): HUGE,
    ("rmsnorm/cpu/offset-32-bit", "cpu"): HUGE,
}
"""By the bug's id and the device."""
