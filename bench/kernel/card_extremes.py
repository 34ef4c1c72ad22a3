"""The cases at the ends of what a kernel takes, at which 32-bit offsets and grid dimensions overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

BEYOND = 2**31 + 2**27
"""Bytes of the largest tensor: a signed 32-bit offset in bytes does not reach its end."""


def extremes(
    target: Mapping[str, Any], limits: Mapping[str, Any], largest: Callable[[Mapping[str, Any]], float | None]
) -> Iterator[dict[str, Any]]:
    """One case for each axis with a range: that axis at its largest, the others only as large as BEYOND asks for.

    `largest`: the bytes of a case's largest tensor. Nothing for an axis where BEYOND is out of reach.
    """
    ranges = {axis: range(*limit["range"]) for axis, limit in limits.items() if _is_range(limit)}
    made: list[dict[str, Any]] = []
    for axis in ranges:
        case = {**target, **{other: whole[0] for other, whole in ranges.items()}, axis: ranges[axis][-1]}
        for other in (other for other in reversed(ranges) if other != axis):
            case = _grown(case, other, ranges[other], largest)
        size = largest(case)
        if size is not None and size >= BEYOND and case not in made:
            made.append(case)
            yield case


def _is_range(limit: Any) -> bool:
    return isinstance(limit, Mapping) and "range" in limit


def _grown(
    case: dict[str, Any], axis: str, whole: range, largest: Callable[[Mapping[str, Any]], float | None]
) -> dict[str, Any]:
    """The case with this axis as small as makes the largest tensor exceed BEYOND, else at its largest."""
    low, high = 0, len(whole) - 1
    if (largest({**case, axis: whole[high]}) or 0.0) < BEYOND:
        return {**case, axis: whole[high]}
    while low < high:
        middle = (low + high) // 2
        enough = (largest({**case, axis: whole[middle]}) or 0.0) >= BEYOND
        low, high = (low, middle) if enough else (middle + 1, high)
    return {**case, axis: whole[low]}
