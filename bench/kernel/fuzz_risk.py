"""What is fuzzed besides a card's own list: where kernels break, the riskiest first; and random trials without an end.

A trial here says all of itself in its id (fuzz_trials.py). From the axes of the card come the ends of each range,
powers of two and their neighbours, each met together with every boolean, dtype and kind of values (pairs: most faults
need no more than two things to come together [Kuhn, Wallace, Gallo 2004]).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.axes import DTYPE, AxisValue
from kernelgate.bench.kernel.card import NONFINITE, DeviceKind
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.fuzz_trials import (
    DISTRIBUTION,
    EMPTY,
    HUGE,
    LAYOUTS,
    PLAIN,
    WAY,
    WAYS,
    Axes,
    Domain,
    Trial,
    domain,
    is_light,
    parse,
    small,
    special,
    trial,
)

EVEN = 64
"""A size that tiles and wide loads divide: only there may a kernel choose the path that misaligned data breaks."""
COVERED: Mapping[DeviceKind, int] = {"cuda": 190, "cpu": 16}
"""Trials that meet edges with everything else."""
EDGES = 16
"""Values beside powers of two, and ends, of a range that are tried."""
ALIGNED = (72, 80, 96)
"""And sizes that 8, 16 or 32 divide and nothing larger: where a tile is filled by halves or quarters."""
HUGE_MEMORY_SHARE = 0.4
"""A huge trial's inputs and outputs take at most this share of the device's memory: drawing and checking need more."""
HUGE_FLOPS = 5e13
"""And its operations are at most so many: a second or less on a fast kernel."""
PLAIN_SHARE = 0.6
"""How often a kernel is called in no particular way: the others take longer, up to seconds."""
EMPTY_SHARE = 0.02
HUGE_SHARE = 0.002
"""A huge trial takes as long as some hundred others."""


def risks(seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None = None) -> tuple[Trial, ...]:
    """Every trial, in order. None for a card that is not fuzzed on this device."""
    if not card.fuzz[device]:
        return ()
    rng = random.Random(f"{seed}/risks")  # noqa: S311 - not for secrets
    known = domain(card, device)
    least = small(card, known, device)
    made = [least | {WAY: way} for way in WAYS[device]]
    made += [small(card, known, device, EVEN) | {WAY: way} for way in LAYOUTS]
    if device == "cuda":
        made += [{**card.target.axes, WAY: way} for way in ("repeat", "two-streams")]
        made += [{**case.axes, WAY: HUGE} for case in card.extremes if fits(case, memory_bytes)]
    made += [least | {axis: 0, WAY: EMPTY} for axis in known.ranges]
    if known.ranges:
        made += [least | {axis: whole[0] for axis, whole in known.ranges.items()} | {WAY: PLAIN}]
    if card.nonfinite:
        dtypes = [{DTYPE: dtype} for dtype in known.choices.get(DTYPE, ())] or [{}]
        made += [least | dtype | {DISTRIBUTION: NONFINITE, WAY: PLAIN} for dtype in dtypes]
    plain = [{DISTRIBUTION: card.distributions[0], **axes} for axes in made]
    rows = _covering(known, device, rng) if known.ranges else []
    listed = (trial(seed, card, device, axes) for axes in [*plain, *(row | {WAY: PLAIN} for row in rows)])
    return tuple({one.id: one for one in listed}.values())


def select(
    seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None, ids: Iterable[str]
) -> tuple[Trial, ...]:
    """The trials with these ids, or all: the card's own list first. Raises UsageError for an id that is none."""
    listed = (*fuzz_trials.trials(seed, card, device), *risks(seed, card, device, memory_bytes))
    by_id = {one.id: one for one in listed}
    wanted = tuple(dict.fromkeys(ids))
    found = {id_: by_id.get(id_) or parse(seed, card, device, id_) for id_ in wanted}
    unknown = [id_ for id_, one in found.items() if one is None]
    if unknown:
        own = ", ".join(one.id for one in fuzz_trials.trials(seed, card, device))
        example = f"; and others, written like {listed[-1].id}" if by_id else ""
        raise UsageError(f"there is no fuzz case {', '.join(unknown)}; there are {own}{example}")
    return tuple(one for one in found.values() if one) if wanted else listed


def fits(case: CaseFacts, memory_bytes: int | None) -> bool:
    """Whether a huge case can be tried in so much memory, and soon."""
    if case.bytes is None or memory_bytes is None:
        return False
    return case.bytes <= HUGE_MEMORY_SHARE * memory_bytes and (case.flops or 0.0) <= HUGE_FLOPS


# ----------------------------------------------------------------------------------------------------------------------
# Covering pairs
# ----------------------------------------------------------------------------------------------------------------------

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
    # NaN meets every dtype in a trial of its own: what it spoils hides other faults.
    values |= {axis: tuple(one for one in every if one != NONFINITE) for axis, every in known.choices.items()}
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
        # Every other axis gets the value that meets most of what is left.
        row = ends.pop() if ends else dict(rng.choice(sorted(left, key=repr)))
        mixed = rng.sample(sorted(values), len(values))
        for axis in sorted(mixed, key=known.ranges.__contains__):  # sizes last, by what room the others leave
            if axis in row:
                continue
            every = values[axis]
            allowed = [one for one in every if axis not in known.ranges or is_light(row | {axis: one}, device)]
            new = {one: len(left & _pairs(row | {axis: one}, values)) for one in allowed or every[:1]}
            best = max(new.values())
            row[axis] = rng.choice([one for one, count in new.items() if count == best])
        rows.append({axis: row[axis] for axis in values})
        left -= _pairs(row, values)
    return rows


def _pairs(row: Mapping[str, AxisValue], values: Iterable[str]) -> set[Pair]:
    return set(combinations([(axis, row[axis]) for axis in values if axis in row], 2))


def drawn(seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None = None) -> Iterator[Trial]:
    """Trials for ever, each of a run's seed of its own. None for a card that is not fuzzed on this device."""
    if not card.fuzz[device]:
        return
    known = domain(card, device)
    least = small(card, known, device)
    huge = [dict(case.axes) for case in card.extremes if device == "cuda" and fits(case, memory_bytes)]
    while True:
        rng = random.Random(f"{seed}/soak")  # noqa: S311 - not for secrets
        chosen = {axis: _choice(rng, axis, known) for axis in known.choices}
        axes: Axes
        if huge and rng.random() < HUGE_SHARE:
            axes = {**rng.choice(huge), DISTRIBUTION: chosen[DISTRIBUTION], WAY: HUGE}
        elif known.ranges and rng.random() < EMPTY_SHARE:
            axes = {**least, **chosen, rng.choice(list(known.ranges)): 0, WAY: EMPTY}
        else:
            way = PLAIN if rng.random() < PLAIN_SHARE else rng.choice(WAYS[device])
            axes = {**least, **_sizes(rng, chosen, known, device), WAY: way}
        yield trial(seed, card, device, axes)
        seed += 1


def _choice(rng: random.Random, axis: str, known: Domain) -> AxisValue:
    value = rng.choice(known.choices[axis])
    if axis in known.intervals and rng.random() < 0.5:
        return rng.uniform(*known.intervals[axis])
    return value


def _sizes(rng: random.Random, chosen: Axes, known: Domain, device: DeviceKind) -> Axes:
    """With every size: in turn, as large as the ones before leave room for."""
    row = {**chosen, **{axis: whole[0] for axis, whole in known.ranges.items()}}
    for axis in rng.sample(list(known.ranges), len(known.ranges)):
        whole = known.ranges[axis]
        if rng.random() < 1 / 3:  # an end, a power of two or its neighbour
            size = rng.choice(special(whole))
        else:  # any size, all magnitudes alike
            size = whole[min(len(whole) - 1, int(len(whole) ** rng.random()) - 1)]
        while size > whole[0] and not is_light({**row, axis: size}, device):
            size = whole[0] + (size - whole[0]) // 2
        row[axis] = size if size in whole else whole[0]
    return row
