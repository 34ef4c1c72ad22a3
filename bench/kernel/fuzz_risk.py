"""What is fuzzed besides a card's own list: where kernels break, the riskiest first.

A trial here says all of itself in its id (`s65_b2_fp16_distribution-special_way-stream`), so that it can be run again
without the list that it was in. `way` is how the kernel is called (bench/check/ways.py). From the axes of the card come
the ends of each range, powers of two and their neighbours, each met together with every boolean, dtype and kind of
values (pairs: most faults need no more than two things to come together [Kuhn, Wallace, Gallo 2004]).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

from kernelgate.bench.errors import UsageError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import fuzz_list
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, PLAIN, WAY, Trial, special

LAYOUTS = ("offset", "gaps", "transposed")
WAYS: Mapping[DeviceKind, tuple[str, ...]] = {
    "cuda": (*LAYOUTS, "repeat", "stream", "graph", "two-streams"),
    "cpu": (*LAYOUTS, "repeat"),
}
"""How a kernel is called besides once with whole tensors; bench/check/ways.py says what each does."""
EMPTY, HUGE = "empty", "huge"
SPECIAL = "special"
"""A distribution that every card gets here."""
COVERED: Mapping[DeviceKind, int] = {"cuda": 190, "cpu": 16}
"""Trials that meet edges with everything else."""
MOST: Mapping[DeviceKind, tuple[int, int]] = {"cuda": (2**24, 2**36), "cpu": (2**19, 2**28)}
"""The product of a trial's sizes, and that product times the largest size, are at most this, where one edge alone does
not exceed it: a stand-in for its memory, and for its operations where they grow with the square of a size."""
EDGES = 16
"""Values beside powers of two, and ends, of a range that are tried."""
ALIGNED = (72, 80, 96)
"""And sizes that 8, 16 or 32 divide and nothing larger: where a tile is filled by halves or quarters."""
SMALL = 65
"""A size that no tile divides, for trials that are about something else."""
EVEN = 64
"""A size that tiles and wide loads divide: only there may a kernel choose the path that misaligned data breaks."""
HUGE_SHARE = 0.4
"""A huge trial's inputs and outputs take at most this share of the device's memory: drawing and checking need more."""
HUGE_FLOPS = 5e13
"""And its operations are at most so many: a second or less on a fast kernel."""

Axes = dict[str, AxisValue]


@dataclass(frozen=True)
class Domain:
    """What each axis may be."""

    ranges: Mapping[str, range]
    """Whole numbers."""
    choices: Mapping[str, tuple[AxisValue, ...]]
    """Everything else: all values, or the ends of an interval and 0."""


def risks(seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None = None) -> tuple[Trial, ...]:
    """Every trial, in order. None for a card that is not fuzzed on this device."""
    if not card.fuzz[device]:
        return ()
    rng = random.Random(f"{seed}/risks")  # noqa: S311 - not for secrets
    known = domain(card, device)
    small = _small(card, known, device, SMALL)
    made = [small | {WAY: way} for way in WAYS[device]]
    made += [_small(card, known, device, EVEN) | {WAY: way} for way in LAYOUTS]
    if known.ranges:
        made.append(small | {axis: whole[0] for axis, whole in known.ranges.items()} | {WAY: PLAIN})
    if device == "cuda":
        made += [{**card.target.axes, WAY: way} for way in ("repeat", "two-streams")]
        made += [{**case.axes, WAY: HUGE} for case in card.extremes if _fits(case, memory_bytes)]
    made += [small | {axis: 0, WAY: EMPTY} for axis in known.ranges]
    plain = [{DISTRIBUTION: card.distributions[0], **axes} for axes in made]
    rows = _covering(known, device, rng) if known.ranges else []
    listed = (trial(seed, card, axes) for axes in [*plain, *(row | {WAY: PLAIN} for row in rows)])
    return tuple({one.id: one for one in listed}.values())


def select(
    seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None, ids: Iterable[str]
) -> tuple[Trial, ...]:
    """The trials with these ids, or all: the card's own list first. Raises UsageError for an id that is none."""
    listed = (*fuzz_list.trials(seed, card, device), *risks(seed, card, device, memory_bytes))
    by_id = {one.id: one for one in listed}
    wanted = tuple(dict.fromkeys(ids))
    found = {id_: by_id.get(id_) or parse(seed, card, device, id_) for id_ in wanted}
    unknown = [id_ for id_, one in found.items() if one is None]
    if unknown:
        own = ", ".join(one.id for one in fuzz_list.trials(seed, card, device))
        example = f"; and others, written like {listed[-1].id}" if by_id else ""
        raise UsageError(f"there is no fuzz case {', '.join(unknown)}; there are {own}{example}")
    return tuple(one for one in found.values() if one) if wanted else listed


def trial(seed: int, card: CardFacts, axes: Mapping[str, AxisValue]) -> Trial:
    """The trial that has these axes, `distribution` and `way` among them."""
    order, boolean = case_axes.order([card.target.axes]), case_axes.booleans([card.target.axes])
    values = {axis: value for axis, value in axes.items() if axis not in (DISTRIBUTION, WAY)}
    whole = case_axes.complete(values, order, boolean) | {DISTRIBUTION: axes[DISTRIBUTION], WAY: axes[WAY]}
    name = case_axes.case_id(whole)
    return Trial(id=name, axes=whole, seed=random.Random(f"{seed}/{name}").getrandbits(63))  # noqa: S311


def parse(seed: int, card: CardFacts, device: DeviceKind, text: str) -> Trial | None:
    """The trial with an id that is written like those of `risks`; None where it is not."""
    known = domain(card, device)
    for example in (_small(card, known, device, SMALL), *(case.axes for case in card.cases.values())):
        whole = trial(seed, card, {**example, DISTRIBUTION: "normal", WAY: PLAIN}).axes
        axes = case_axes.parse(text, whole)
        if axes is not None and axes[WAY] in (PLAIN, EMPTY, HUGE, *WAYS[device]):
            return trial(seed, card, axes)
    return None


# The domain -----------------------------------------------------------------------------------------------------------


def domain(card: CardFacts, device: DeviceKind) -> Domain:
    """From what the card says that the kernel takes, else from what it fuzzes."""
    ranges: dict[str, range] = {}
    choices: dict[str, list[AxisValue]] = {}
    for axis, values in _leaves(card, device):
        if isinstance(values, Mapping) and "range" in values:
            found = range(*values["range"])
            ranges[axis] = _hull(ranges.get(axis), found)
        elif isinstance(values, Mapping):
            low, high = values["between"]
            choices.setdefault(axis, []).extend([float(low), float(high), *([0.0] if low < 0 < high else [])])
        else:
            choices.setdefault(axis, []).append(values)
    choices[DISTRIBUTION] = [*card.distributions, SPECIAL]
    rest = {axis: tuple(dict.fromkeys(values)) for axis, values in choices.items() if axis not in ranges}
    return Domain(ranges, rest)


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


def _small(card: CardFacts, known: Domain, device: DeviceKind, size: int) -> Axes:
    """A case that is quickly run, of this size where ranges have it; of a card without ranges its smallest."""
    if not known.ranges:
        suite = card.suites["cpu" if device == "cpu" else "pr"]
        return dict(min(suite, key=lambda case: case.bytes or 0.0).axes)
    sizes: Axes = {axis: _small_size(whole, size) for axis, whole in known.ranges.items()}
    first = {axis: values[0] for axis, values in known.choices.items() if axis != DISTRIBUTION}
    for axis in reversed(list(known.ranges)):
        if not _is_light(first | sizes, "cpu"):
            sizes[axis] = known.ranges[axis][0]
    return first | sizes


def _small_size(whole: range, size: int) -> int:
    if size in whole:
        return size
    return whole[-1] if whole[-1] < size else whole[0]


def _fits(case: CaseFacts, memory_bytes: int | None) -> bool:
    if case.bytes is None or memory_bytes is None:
        return False
    return case.bytes <= HUGE_SHARE * memory_bytes and (case.flops or 0.0) <= HUGE_FLOPS


# Covering pairs -------------------------------------------------------------------------------------------------------

Pair = tuple[tuple[str, AxisValue], tuple[str, AxisValue]]


def edges(whole: range) -> Sequence[int]:
    """The ends of a range, the neighbours of the largest powers of two in it, and ALIGNED.

    The powers themselves, which tiles divide, are what a card's own list has.
    """
    beside = [value for value in special(whole) if value.bit_count() > 1]
    return sorted({whole[0], whole[-1], *beside[2 - EDGES :], *(size for size in ALIGNED if size in whole)})


def _covering(known: Domain, device: DeviceKind, rng: random.Random) -> list[Axes]:
    """Rows in which each edge of a range meets each value of every other kind of axis, the ends of ranges first."""
    values: dict[str, Sequence[AxisValue]] = {axis: edges(whole) for axis, whole in known.ranges.items()}
    values |= known.choices
    left = {
        ((one, first), (other, second))
        for one, other in combinations(values, 2)
        if not (one in known.ranges and other in known.ranges)
        for first in values[one]
        for second in values[other]
    }
    rows: list[Axes] = []
    ends: list[Axes] = [{axis: whole[-1]} for axis, whole in known.ranges.items()]
    while (ends or left) and len(rows) < COVERED[device]:
        start = ends.pop() if ends else dict(rng.choice(sorted(left, key=repr)))
        row = _row(start, values, known, (left, device, rng))
        rows.append(row)
        left -= set(_pairs(row, values))
    return rows


def _row(
    row: Axes,
    values: Mapping[str, Sequence[AxisValue]],
    known: Domain,
    how: tuple[set[Pair], DeviceKind, random.Random],
) -> Axes:
    """The row with every other axis at the value that meets most of what is left."""
    left, device, rng = how
    mixed = rng.sample(sorted(values), len(values))
    for axis in sorted(mixed, key=known.ranges.__contains__):  # sizes last, by what room the others leave
        if axis in row:
            continue
        allowed = [one for one in values[axis] if axis not in known.ranges or _is_light(row | {axis: one}, device)]
        allowed = allowed or list(values[axis][:1])
        new = {one: len(left & set(_pairs(row | {axis: one}, values))) for one in allowed}
        best = max(new.values())
        row = row | {axis: rng.choice([one for one, count in new.items() if count == best])}
    return {axis: row[axis] for axis in values}


def _pairs(row: Mapping[str, AxisValue], values: Mapping[str, Any]) -> Iterator[Pair]:
    listed = [(axis, row[axis]) for axis in values if axis in row]
    yield from combinations(listed, 2)


def _is_light(row: Mapping[str, AxisValue], device: DeviceKind) -> bool:
    sizes = [value for value in row.values() if isinstance(value, int) and not isinstance(value, bool)]
    elements, operations = MOST[device]
    return prod(sizes) <= elements and prod(sizes) * max(sizes, default=1) <= operations
