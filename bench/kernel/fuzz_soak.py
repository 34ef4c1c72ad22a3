"""Random fuzz trials without an end, over everything that a card's kernel takes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_domain import EMPTY, HUGE, WAYS, Axes, Domain, domain, is_light, small, trial
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, PLAIN, WAY, Trial, special
from kernelgate.bench.kernel.fuzz_risk import fits

PLAIN_SHARE = 0.6
"""How often a kernel is called in no particular way: the others take longer, up to seconds."""
EMPTY_SHARE = 0.02
HUGE_SHARE = 0.002
"""A huge trial takes as long as some hundred others."""


def drawn(seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None = None) -> Iterator[Trial]:
    """Trials for ever, each of a run's seed of its own. None for a card that is not fuzzed on this device."""
    if not card.fuzz[device]:
        return
    known = domain(card, device)
    least = small(card, known, device)
    huge = [dict(case.axes) for case in card.extremes if device == "cuda" and fits(case, memory_bytes)]
    while True:
        rng = random.Random(f"{seed}/soak")  # noqa: S311 - not for secrets
        yield trial(seed, card, device, _axes(rng, known, least, (device, huge)))
        seed += 1


def _axes(rng: random.Random, known: Domain, least: Axes, where: tuple[DeviceKind, list[Axes]]) -> Axes:
    device, huge = where
    chosen = {axis: _choice(rng, axis, known) for axis in known.choices}
    if huge and rng.random() < HUGE_SHARE:
        return {**rng.choice(huge), DISTRIBUTION: chosen[DISTRIBUTION], WAY: HUGE}
    if known.ranges and rng.random() < EMPTY_SHARE:
        return {**least, **chosen, rng.choice(list(known.ranges)): 0, WAY: EMPTY}
    way = PLAIN if rng.random() < PLAIN_SHARE else rng.choice(WAYS[device])
    return {**least, **_sizes(rng, chosen, known, device), WAY: way}


def _choice(rng: random.Random, axis: str, known: Domain) -> AxisValue:
    value = rng.choice(known.choices[axis])
    if axis in known.intervals and rng.random() < 0.5:
        return rng.uniform(*known.intervals[axis])
    return value


def _sizes(rng: random.Random, chosen: Axes, known: Domain, device: DeviceKind) -> Axes:
    """With every size: in turn, as large as the ones before leave room for."""
    row = {**chosen, **{axis: whole[0] for axis, whole in known.ranges.items()}}
    for axis in rng.sample(list(known.ranges), len(known.ranges)):
        size = _size(rng, known.ranges[axis])
        while size > known.ranges[axis][0] and not is_light({**row, axis: size}, device):
            size = known.ranges[axis][0] + (size - known.ranges[axis][0]) // 2
        row[axis] = size if size in known.ranges[axis] else known.ranges[axis][0]
    return row


def _size(rng: random.Random, whole: range) -> int:
    """An end, a power of two or its neighbour, or any size, all magnitudes alike."""
    if rng.random() < 1 / 3:
        return rng.choice(special(whole))
    return whole[min(len(whole) - 1, int(len(whole) ** rng.random()) - 1)]
