"""Figures as people read them: both sides in one unit, told apart."""

from __future__ import annotations

import pytest

from kernelgate.ci.explain.figures import pair


@pytest.mark.parametrize(
    ("key", "before", "after", "text"),
    [
        ("instructions", 24_920_064.0, 25_857_024.0, "24.9 → 25.9 M"),
        ("instructions", 24_920_064.0, 24_930_064.0, "24.92 → 24.93 M"),
        ("bank_conflicts", 39_106.0, 31_200_000.0, "39,106 → 31.2 M"),
        ("local_instructions", 6_717_440.0, 0.0, "6.72 M → 0"),
        ("shared_bytes", 49152.0, 147456.0, "48 → 144 KiB"),
        ("dram_bytes", 348.1e6, 1.549e9, "332 MiB → 1.44 GiB"),
        ("occupancy_pct", 11.95, 6.24, "11.9 → 6.2%"),
        ("stall_wait", 1.077, 1.213, "1.08 → 1.21 cycles"),
        ("call_us", 18.1, 36.2, "18.1 → 36.2 µs"),
        ("grid", 132.0, 99.0, "132 → 99"),
        ("registers", 242.0, 242.0, "242 → 242"),
    ],
)
def test_both_sides(key: str, before: float, after: float, text: str) -> None:
    assert pair(key, before, after) == text
