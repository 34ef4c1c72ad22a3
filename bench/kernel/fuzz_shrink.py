"""The smallest fuzz trial that still fails: fewer elements first, then plainer values, a plainer way, plainer scalars.

A search from the trial that failed, one axis at a time, until no step is left that fails. Property-based testing
libraries search from nothing: a kernel that is wrong at S=37 alone would be found anew once in 4,096 draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_domain import EMPTY, HUGE, Axes, Domain, domain, small
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, PLAIN, WAY

MODULI = tuple(2**exponent for exponent in range(2, 13))
"""Of tiles: a fault of the last part of one is met by what is left after whole ones, too."""

Fails = Callable[[Axes], bool]
"""Whether the trial with these axes fails as the first did; False, too, where it may not be tried any more."""


def smallest(first: Axes, card: CardFacts, device: DeviceKind, fails: Fails) -> Axes:
    """The axes of a trial that fails; `first` itself where nothing smaller does."""
    known = domain(card, device)
    best = _leap(first, small(card, known, device), known, fails)
    while True:
        before = best
        for axis in sorted(best, key=lambda axis: _rank(axis, best[axis], known)):
            best = {**best, axis: _least(best, axis, known, fails)}
        if best == before:
            return best


def _rank(axis: str, value: AxisValue, known: Domain) -> int:
    """The order in which axes are made simpler."""
    if axis in known.ranges or (isinstance(value, int) and not isinstance(value, bool)):
        return 0
    return {DISTRIBUTION: 1, WAY: 2}.get(axis, 3)


def _leap(first: Axes, least: Axes, known: Domain, fails: Fails) -> Axes:
    """Most faults show in a case that is small and plain in everything: then there is little left to search."""
    plain = {axis: values[0] for axis in known.choices if (values := _plainer(first, axis, known))}
    way = {WAY: PLAIN} if first[WAY] != EMPTY else {}
    lows = {axis: min(whole[0], first[axis]) for axis, whole in known.ranges.items() if axis in first}
    sizes = {axis: min(least[axis], first[axis]) for axis in known.ranges if axis in first and axis in least}
    for leap in ({**lows, **plain, **way}, {**sizes, **plain, **way}, {**sizes, **way}, sizes):
        if {**first, **leap} != first and fails({**first, **leap}):
            return {**first, **leap}
    return first


def _least(axes: Axes, axis: str, known: Domain, fails: Fails) -> AxisValue:
    """The least value of one axis with which the trial still fails."""

    def still(value: AxisValue) -> bool:
        return fails({**axes, axis: value})

    value = axes[axis]
    if axis in known.ranges and isinstance(value, int):
        return _least_size(value, known.ranges[axis], still)
    return next((one for one in _plainer(axes, axis, known) if still(one)), value)


def _least_size(value: int, whole: range, still: Callable[[int], bool]) -> int:
    """The lowest, or what is left of the size after whole tiles; else halves what is between right and wrong."""
    if value not in whole or value == whole[0]:
        return value
    left_over = sorted({rest for modulus in MODULI for rest in (value % modulus, value % modulus + modulus)})
    right = whole[0]
    for size in [whole[0], *(one for one in left_over if whole[0] < one < value and one in whole)]:
        if still(size):
            value = size
            break
        right = size
    low, high = whole.index(right), whole.index(value)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if still(whole[middle]) else (middle, high)
    return whole[high]


def _plainer(axes: Axes, axis: str, known: Domain) -> Sequence[AxisValue]:
    """What an axis that is no size may be instead, the plainest first."""
    value = axes.get(axis)
    if value is None or (axis != WAY and axis not in known.choices):
        return ()
    if axis == WAY:
        return () if value in (PLAIN, EMPTY, HUGE) else (PLAIN,)
    if isinstance(value, int | float) and not isinstance(value, bool):
        every = sorted({*_numbers(axis, value, known), value}, key=_plainness)
    elif isinstance(value, bool):
        every = [False, True]
    else:
        every = list(known.choices[axis])
    return every[: every.index(value)] if value in every else every


def _numbers(axis: str, value: float, known: Domain) -> Iterator[AxisValue]:
    yield from (one for one in known.choices[axis] if not isinstance(one, str | bool))
    if axis in known.intervals:
        low, high = known.intervals[axis]
        rounded = (float(f"{value:.{digits}g}") for digits in (1, 2, 3))
        yield from (one for one in (1.0, -1.0, 0.5, *rounded) if low <= one <= high)


def _plainness(value: AxisValue) -> tuple[bool, int, float]:
    """1 is the plainest number: at 0 much disappears that is wrong."""
    number = float(value)
    return (number != 1, len(repr(number)), abs(number) if number >= 0 else abs(number) + 0.5)
