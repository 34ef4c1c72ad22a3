"""A profile's figures as people read them."""

from __future__ import annotations

import math

from kernelgate.bench.explain import metrics

COUNTS = ((1e9, " G"), (1e6, " M"))
BYTES = ((2.0**30, " GiB"), (2.0**20, " MiB"), (2.0**10, " KiB"))
APART = 0.5
"""Below this of the other side's unit, a figure has its own."""


def show(key: str, value: float) -> str:
    """A figure with its unit."""
    unit = metrics.unit(key)
    if unit == "%":
        return f"{value:.1f}%"
    if unit == "bytes":
        return _bytes(value)
    if unit == "cycles/issue":
        return f"{value:.1f}"
    number = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


def pair(key: str, before: float, after: float) -> str:
    """Both sides, in one unit where that serves: "24.9 → 25.9 M"."""
    unit = metrics.unit(key)
    if unit == "%":
        return f"{before:.1f} → {after:.1f}%"
    if unit == "cycles/issue":
        return f"{before:.2f} → {after:.2f} cycles"
    steps = BYTES if unit == "bytes" else COUNTS
    plain = {"": "", "bytes": " B"}.get(unit, f" {unit}")
    scale, suffix = _step(max(before, after), steps, plain)
    if min(before, after) < APART * scale:
        return f"{_alone(before, steps, plain)} → {_alone(after, steps, plain)}"
    old, new = before / scale, after / scale
    return f"{_digits(old, new)} → {_digits(new, old)}{suffix}"


def _step(value: float, steps: tuple[tuple[float, str], ...], plain: str) -> tuple[float, str]:
    return next((step for step in steps if value >= step[0]), (1.0, plain))


def _alone(value: float, steps: tuple[tuple[float, str], ...], plain: str) -> str:
    scale, suffix = _step(value, steps, plain)
    return f"{_digits(value / scale, 0.0)}{suffix if value else ''}"


def _digits(value: float, beside: float) -> str:
    """Three digits of the larger one, or as many as tell the two apart."""
    if value == int(value) and beside == int(beside):
        return f"{value:,.0f}"
    least = max(0, 2 - math.floor(math.log10(max(value, beside))))
    places = next((n for n in range(least, least + 4) if f"{value:.{n}f}" != f"{beside:.{n}f}"), least)
    return f"{value:,.{places}f}"


def _bytes(value: float) -> str:
    """Up to the unit in which it is 1 to 1024, with three digits."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 100 or value == int(value) else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:,.3g} GiB"
