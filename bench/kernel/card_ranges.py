"""What a card draws for an axis of `fuzz` or `limits`, as plain data that fuzz_trials.draw reads, and the ends of that.

At the ends 32-bit offsets and grid dimensions overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.card import Between

BEYOND = 2**31 + 2**27
"""Bytes, or elements, of the largest tensor: a signed 32-bit offset does not reach its end."""


def drawn(axis: str, values: Any) -> Any:
    """A value, or an object with one key that says what is drawn. Raises ValueError saying what is wrong."""
    if isinstance(values, range):
        if not values:
            raise ValueError(f"the range of {axis} is empty")
        return {"range": [values.start, values.stop, values.step]}
    if isinstance(values, Between):
        if not (is_real(values.low) and is_real(values.high) and values.low <= values.high):
            raise ValueError(f"{axis} is between({values.low!r}, {values.high!r}), which holds no number")
        return {"between": [values.low, values.high]}
    if isinstance(values, tuple | list):
        if not values:
            raise ValueError(f"there is nothing to choose from for {axis}")
        return {"choice": [drawn(axis, value) for value in values]}
    why = case_axes.mistake(axis, values)
    if why:
        raise ValueError(why)
    return values


def is_real(value: Any) -> bool:
    """Whether it is a number, and neither NaN nor a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def extremes(
    target: Mapping[str, Any], limits: Mapping[str, Any], largest: Callable[[Mapping[str, Any]], tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    """For each axis with a range, cases with that axis at its largest and the others only as large as BEYOND asks for:
    once for bytes, once for elements.

    `largest`: the bytes of a case's largest tensor, and its elements. Nothing for an axis where BEYOND is out of reach.
    """
    ranges = {axis: range(*limit["range"]) for axis, limit in limits.items() if _has_range(limit)}
    made: list[dict[str, Any]] = []
    for unit in (0, 1):
        for axis in ranges:
            case = {**target, **{other: whole[0] for other, whole in ranges.items()}, axis: ranges[axis][-1]}
            for other in (other for other in reversed(ranges) if other != axis):
                case = _grown(case, other, ranges[other], lambda axes: largest(axes)[unit])  # noqa: B023 - called here
            if largest(case)[unit] >= BEYOND and case not in made:
                made.append(case)
                yield case


def _has_range(limit: Any) -> bool:
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
