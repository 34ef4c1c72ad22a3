"""The bugs that nothing catches yet, and why: to be emptied."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.fuzzing.bug import Device

SURVIVORS: Mapping[tuple[str, Device], str] = {}
"""By the bug's id and the device."""
