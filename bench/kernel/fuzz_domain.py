"""What a fuzz trial may be: each axis, kind of values and way of calling; and ids that say all of a trial.

Such an id (`s65_b2_fp16_distribution-special_way-stream`) repeats its trial without the list that it was in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Any

from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DISTRIBUTIONS, NONFINITE, DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, PLAIN, WAY, Trial

OFFSET = "offset"
LAYOUTS = (OFFSET, "gaps", "transposed")
BETWEEN_OTHERS = "between-others"
COMPANY = (BETWEEN_OTHERS, "shared-inputs", "two-threads")
WAYS: Mapping[DeviceKind, tuple[str, ...]] = {
    "cuda": (*LAYOUTS, "repeat", *COMPANY, "stream", "graph", "two-streams"),
    "cpu": (*LAYOUTS, "repeat", *COMPANY),
}
"""How a kernel is called besides once with whole tensors: bench/check/ways.py and company.py say what each does."""
EMPTY, HUGE = "empty", "huge"
SPECIAL = "special"
"""A distribution that every card gets while fuzzing."""
KNOWN_DISTRIBUTIONS = (*DISTRIBUTIONS, "peaked", SPECIAL, NONFINITE)
MOST: Mapping[DeviceKind, tuple[int, int]] = {"cuda": (2**24, 2**36), "cpu": (2**19, 2**28)}
"""The product of a trial's sizes, and that product times the largest size, are at most this, where one edge alone does
not exceed it: a stand-in for its memory, and for its operations where they grow with the square of a size."""
SMALL = 65
"""A size that no tile divides, for trials that are about something else."""
EVEN = 64
"""A size that tiles and wide loads divide: only there may a kernel choose the path that misaligned data breaks."""

Axes = dict[str, AxisValue]


@dataclass(frozen=True)
class Domain:
    """What each axis may be."""

    ranges: Mapping[str, range]
    """Whole numbers."""
    choices: Mapping[str, tuple[AxisValue, ...]]
    """Everything else: all values, or the ends of an interval and 0."""
    intervals: Mapping[str, tuple[float, float]]
    """Of the choices, those that are real numbers from one end to another."""


def domain(card: CardFacts, device: DeviceKind) -> Domain:
    """From what the card says that the kernel takes, else from what it fuzzes."""
    ranges: dict[str, range] = {}
    choices: dict[str, list[AxisValue]] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for axis, values in _leaves(card, device):
        if isinstance(values, Mapping) and "range" in values:
            found = range(*values["range"])
            ranges[axis] = _hull(ranges.get(axis), found)
        elif isinstance(values, Mapping):
            low, high = map(float, values["between"])
            choices.setdefault(axis, []).extend([low, high, *([0.0] if low < 0 < high else [])])
            before = intervals.get(axis, (low, high))
            intervals[axis] = (min(low, before[0]), max(high, before[1]))
        else:
            choices.setdefault(axis, []).append(values)
    choices[DISTRIBUTION] = [*card.distributions, SPECIAL, *([NONFINITE] if card.nonfinite else [])]
    rest = {axis: tuple(dict.fromkeys(values)) for axis, values in choices.items() if axis not in ranges}
    return Domain(ranges, rest, {axis: ends for axis, ends in intervals.items() if axis not in ranges})


def small(card: CardFacts, known: Domain, device: DeviceKind, size: int = SMALL) -> Axes:
    """A case that is quickly run, of this size where ranges have it; of a card without ranges its smallest."""
    if not known.ranges:
        suite = card.suites["cpu" if device == "cpu" else "pr"]
        return dict(min(suite, key=lambda case: case.bytes or 0.0).axes)
    sizes: Axes = {axis: _small_size(whole, size) for axis, whole in known.ranges.items()}
    first = {axis: values[0] for axis, values in known.choices.items() if axis != DISTRIBUTION}
    for axis in reversed(list(known.ranges)):
        if not is_light(first | sizes, "cpu"):
            sizes[axis] = known.ranges[axis][0]
    return first | sizes


def is_light(row: Mapping[str, AxisValue], device: DeviceKind) -> bool:
    """Whether a case stays within MOST."""
    sizes = [value for value in row.values() if isinstance(value, int) and not isinstance(value, bool)]
    elements, operations = MOST[device]
    return prod(sizes) <= elements and prod(sizes) * max(sizes, default=1) <= operations


def _leaves(card: CardFacts, device: DeviceKind) -> Iterator[tuple[str, Any]]:
    """Every value, range and interval that an axis has anywhere, its limits in place of its ranges."""
    for ranges in card.fuzz[device].values():
        for axis, values in ranges.items():
            limited = axis in card.limits
            yield from ((axis, leaf) for leaf in _leaf(values) if not (limited and isinstance(leaf, Mapping)))
    for axis, limit in card.limits.items():
        yield from ((axis, leaf) for leaf in _leaf(limit))


def _leaf(values: Any) -> Iterator[Any]:
    if isinstance(values, Mapping) and "choice" in values:
        for one in values["choice"]:
            yield from _leaf(one)
    else:
        yield values


def _hull(one: range | None, other: range) -> range:
    """From the smallest to the largest of both, by the step of the new one where there is no other."""
    if one is None:
        return other
    step = one.step if one.step == other.step else 1
    return range(min(one[0], other[0]), max(one[-1], other[-1]) + 1, step)


def _small_size(whole: range, size: int) -> int:
    if size in whole:
        return size
    return whole[-1] if whole[-1] < size else whole[0]


# Ids ------------------------------------------------------------------------------------------------------------------


def trial(seed: int, card: CardFacts, device: DeviceKind, axes: Mapping[str, AxisValue]) -> Trial:
    """The trial that has these axes, `distribution` and `way` among them."""
    values = {axis: value for axis, value in axes.items() if axis not in (DISTRIBUTION, WAY)}
    order = case_axes.order([card.target.axes, values])
    whole = case_axes.complete(values, order, case_axes.booleans([card.target.axes]))
    whole |= {DISTRIBUTION: axes[DISTRIBUTION], WAY: axes[WAY]}
    name = case_axes.case_id(whole)
    drawn = random.Random(f"{seed}/{name}").getrandbits(63)  # noqa: S311 - not for secrets
    between = others(card, device, whole) if whole[WAY] == BETWEEN_OTHERS else ()
    return Trial(id=name, axes=whole, run_seed=seed, seed=drawn, others=between)


def others(card: CardFacts, device: DeviceKind, axes: Mapping[str, AxisValue]) -> tuple[Axes, ...]:
    """Cases that differ from this one in one choice or one size; and with two sizes exchanged, so that as many elements
    are another shape."""
    known = domain(card, device)
    changes: list[Axes] = [
        {axis: value}
        for axis, values in known.choices.items()
        for value in values
        if axis != DISTRIBUTION and axis in axes and value != axes[axis]
    ]
    sizes = {axis: int(axes[axis]) for axis in known.ranges if axis in axes}
    changes += [{axis: size // 2} for axis, size in sizes.items() if size // 2 in known.ranges[axis]]
    for one, other in combinations(sizes, 2):
        if sizes[one] != sizes[other] and sizes[other] in known.ranges[one] and sizes[one] in known.ranges[other]:
            changes.append({one: sizes[other], other: sizes[one]})
    return tuple({**axes, **change} for change in changes)


def parse(seed: int, card: CardFacts, device: DeviceKind, text: str) -> Trial | None:
    """The trial with an id that is written as `trial` does; None where it is not."""
    for example in _examples(card, device):
        whole = trial(seed, card, device, {**example, DISTRIBUTION: "normal", WAY: PLAIN}).axes
        axes = case_axes.parse(text, whole)
        if axes is None or axes[DISTRIBUTION] not in KNOWN_DISTRIBUTIONS:
            continue
        if axes[WAY] in (PLAIN, EMPTY, HUGE, *WAYS[device]):
            return trial(seed, card, device, axes)
    return None


def _examples(card: CardFacts, device: DeviceKind) -> Iterator[Axes]:
    """An example of every way in which an id may be written: with each set of axes that a case or a configuration has,
    and each kind of value of them."""
    known = domain(card, device)
    kinds: dict[str, dict[type, AxisValue]] = {axis: {int: 0} for axis in known.ranges}
    for axis, values in known.choices.items():
        # A whole number is written as a real one is, and taken for one where the axis has both.
        kinds[axis] = {type(value): value for value in sorted(values, key=lambda one: not isinstance(one, float))}
    listed: list[Mapping[str, AxisValue]] = [case.axes for case in card.cases.values()]
    for case in listed:
        for axis, value in case.items():
            kinds.setdefault(axis, {}).setdefault(type(value), value)
    everything = [axis for axis in kinds if axis != DISTRIBUTION]
    sets = [everything, small(card, known, device), *card.fuzz[device].values(), *listed]
    for axes in dict.fromkeys(tuple(sorted(one)) for one in sets):
        for values in product(*(kinds[axis].values() for axis in axes)):
            yield dict(zip(axes, values, strict=True))
