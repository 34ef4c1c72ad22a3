"""The cases at the ends of what a kernel takes, at which 32-bit offsets and grid dimensions overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

BEYOND = 2**31 + 2**27
"""Bytes, or elements, of the largest tensor: a signed 32-bit offset does not reach its end."""


def extremes(
    target: Mapping[str, Any], limits: Mapping[str, Any], largest: Callable[[Mapping[str, Any]], tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    """For each axis with a range, cases with that axis at its largest and the others only as large as BEYOND asks for:
    once for bytes, once for elements.

    `largest`: the bytes of a case's largest tensor, and its elements. Nothing for an axis where BEYOND is out of reach.
    """
    ranges = {axis: range(*limit["range"]) for axis, limit in limits.items() if _is_range(limit)}
    made: list[dict[str, Any]] = []
    for unit in (0, 1):
        for axis in ranges:
            case = {**target, **{other: whole[0] for other, whole in ranges.items()}, axis: ranges[axis][-1]}
            for other in (other for other in reversed(ranges) if other != axis):
                case = _grown(case, other, ranges[other], lambda axes: largest(axes)[unit])  # noqa: B023 - called here
            if largest(case)[unit] >= BEYOND and case not in made:
                made.append(case)
                yield case


def _is_range(limit: Any) -> bool:
    return isinstance(limit, Mapping) and "range" in limit


def _grown(
    case: dict[str, Any], axis: str, whole: range, largest: Callable[[Mapping[str, Any]], float]
) -> dict[str, Any]:
    """The case with this axis as small as makes the largest tensor exceed BEYOND, else at its largest."""
    low, high = 0, len(whole) - 1
    if largest({**case, axis: whole[high]}) < BEYOND:
        return {**case, axis: whole[high]}
    while low < high:
        middle = (low + high) // 2
        enough = largest({**case, axis: whole[middle]}) >= BEYOND
        low, high = (low, middle) if enough else (middle + 1, high)
    return {**case, axis: whole[low]}
