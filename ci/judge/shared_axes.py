"""What failing cases have in common and no passing one has: "odd N"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernelgate.bench.record.subjects import Axes
from kernelgate.ci.document import formatting

POWERS = tuple(2**exponent for exponent in range(2, 13))
AT_LEAST = 2
"""Failing cases that can share something."""


@dataclass(frozen=True)
class _Trait:
    words: str
    axis: str
    holds: Callable[[bool | float | str], bool]

    def of(self, axes: Axes) -> bool:
        return self.axis in axes and self.holds(axes[self.axis])


def shared(failing: Sequence[Axes], passing: Sequence[Axes]) -> str | None:
    """In words, the plainest that all failing cases have and no passing one has; None where there is none, and
    where nothing passed but what has no elements, since then anything would do."""
    empty = (any(value == 0 and not isinstance(value, bool) for value in axes.values()) for axes in passing)
    if len(failing) < AT_LEAST or all(empty):
        return None
    every = (*failing, *passing)
    common = [axis for axis in failing[0] if all(axis in one for one in failing)]
    traits = [one for axis in common for one in _traits(axis, [axes[axis] for axes in failing], every)]
    return next((one.words for one in traits if not any(map(one.of, passing))), None)


def _traits(axis: str, values: Sequence[bool | float | str], every: Sequence[Axes]) -> Iterator[_Trait]:
    """What all of these values are, the plainest first."""
    first = values[0]
    words = formatting.label({axis: first is False or first})
    if all(value == first for value in values) and words:
        yield _Trait(f"no {words}" if first is False else words, axis, lambda value: value == first)
    numbers = [float(value) for value in values if not isinstance(value, bool | str)]
    if len(numbers) < len(values) or formatting.label({axis: 2}) is None:
        return
    tried = [axes[axis] for axes in every if axis in axes]
    if all(not isinstance(value, bool | str) and float(value).is_integer() for value in tried):
        for words, divisor, wanted in (
            (f"odd {axis}", 2, False),
            (f"even {axis}", 2, True),
            *((f"{axis} not divisible by {power}", power, False) for power in POWERS),
            *((f"{axis} divisible by {power}", power, True) for power in POWERS),
        ):

            def holds(value: bool | float | str, divisor: int = divisor, wanted: bool = wanted) -> bool:
                return (_number(value) % divisor == 0) == wanted

            if all(map(holds, numbers)):
                yield _Trait(words, axis, holds)
    low, high = min(numbers), max(numbers)
    yield _Trait(f"{axis} of {low:g} or more", axis, lambda value: _number(value) >= low)
    yield _Trait(f"{axis} of {high:g} or less", axis, lambda value: _number(value) <= high)


def _number(value: bool | float | str) -> float:
    return float("nan") if isinstance(value, str) else float(value)
