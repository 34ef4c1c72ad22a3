"""Fuzz trials: a card's own configurations, drawn; where kernels break, the riskiest first; and random ones for ever.

Everything random of the card's list comes from one seed and the configuration's name, so that one configuration can be
run again alone. Any other trial has an id that says all of it (`s65_b2_fp16_distribution-special_way-stream`). From the
axes of the card come the ends of each range, powers of two and their neighbours, each met together with every boolean,
dtype and kind of values (pairs: most faults need no more than two things to come together [Kuhn, Wallace, Gallo 2004]).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.axes import DTYPE, AxisValue
from kernelgate.bench.kernel.card import DISTRIBUTIONS, NONFINITE, DeviceKind
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.record import LAYOUTS
from kernelgate.bench.system import progress
from kernelgate.bench.system.worker import Message

DISTRIBUTION = "distribution"
WAY, PLAIN, REPEAT = "way", "plain", "repeat"
SPECIAL_SHARE = 0.5
"""How often a range gives one of its ends, or a power of two or its neighbour."""
OFFSET = "offset"
BETWEEN_OTHERS = "between-others"
_EVERYWHERE = (*LAYOUTS, REPEAT, BETWEEN_OTHERS, "shared-inputs", "two-threads")
WAYS: Mapping[DeviceKind, tuple[str, ...]] = {
    "cuda": (*_EVERYWHERE, "stream", "graph", "two-streams"),
    "cpu": _EVERYWHERE,
}
"""How a kernel is called besides once with whole tensors: bench/check/ways.py says what each does."""
HUGE = "huge"
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

Axes = dict[str, AxisValue]


def case_id(axes: Mapping[str, AxisValue]) -> str:
    """What the case of a trial would be called if it were timed."""
    return case_axes.case_id({axis: value for axis, value in axes.items() if axis not in (DISTRIBUTION, WAY)})


class Trial(Message):
    id: str
    axes: Axes
    """Of the case, with the distribution of its values."""
    run_seed: int
    """The seed with which a command repeats the trial."""
    seed: int
    """For the inputs: drawn from the run's seed and the id."""
    others: tuple[Axes, ...] = ()
    """Cases that are called in between, where the way has it so."""

    @property
    def case_id(self) -> str:
        return case_id(self.axes)

    @property
    def distribution(self) -> str:
        return str(self.axes[DISTRIBUTION])

    @property
    def way(self) -> str:
        """How the kernel is called (bench/check/ways.py)."""
        return str(self.axes.get(WAY, PLAIN))


def trials(seed: int, card: CardFacts, device: DeviceKind) -> tuple[Trial, ...]:
    """The whole list, with every combination of distributions and axes to choose from where it is long enough."""
    if not (listed := card.fuzz[device]):
        return ()
    spread: dict[str, list[AxisValue]] = {}
    first, *others = listed.values()
    for axis, values in first.items():  # chosen from the same few values in every configuration
        choice = values.get("choice", [{}]) if isinstance(values, Mapping) else [{}]
        everywhere = all(other.get(axis) == values for other in others)
        if everywhere and not any(isinstance(value, Mapping) for value in choice):
            spread[axis] = list(choice)
    spread[DISTRIBUTION] = list(card.distributions)
    every = list(product(*spread.values()))
    rng = random.Random(f"{seed}")  # noqa: S311 - not for secrets
    chosen_together = every + rng.choices(every, k=max(0, len(listed) - len(every)))
    rng.shuffle(chosen_together)
    axes, boolean = case_axes.order([card.target.axes]), case_axes.booleans([card.target.axes])
    made = []
    for (name, ranges), combination in zip(listed.items(), chosen_together, strict=False):
        rng = random.Random(f"{seed}/{name}")  # noqa: S311 - not for secrets
        chosen = dict(zip(spread, combination, strict=True))
        drawn = {axis: chosen[axis] if axis in chosen else draw(rng, values) for axis, values in ranges.items()}
        whole = case_axes.complete(drawn, axes, boolean) | {DISTRIBUTION: chosen[DISTRIBUTION]}
        made.append(Trial(id=name, axes=whole, run_seed=seed, seed=rng.getrandbits(63)))
    return tuple(made)


def draw(rng: random.Random, values: Any) -> AxisValue:
    """One value of what card_reader.py wrote for an axis."""
    match values:
        case {"choice": content}:
            return draw(rng, rng.choice(content))
        case {"between": (low, high)}:
            share = rng.random()
            return float(low * (high / low) ** share if low > 0 else low + (high - low) * share)
        case {"range": content}:
            whole = range(*content)
            return rng.choice(special(whole)) if rng.random() < SPECIAL_SHARE else rng.choice(whole)
    value: AxisValue = values
    return value


def special(whole: range) -> Sequence[int]:
    """The ends of a range, and the powers of two in it with their neighbours: where masks and tiles go wrong."""
    powers = (2**exponent + step for exponent in range(40) for step in (-1, 0, 1))
    return sorted({whole[0], whole[-1], *(value for value in powers if value in whole)})


@dataclass(frozen=True)
class Domain:
    """What each axis may be."""

    ranges: Mapping[str, range]
    """Whole numbers."""
    choices: Mapping[str, tuple[AxisValue, ...]]
    """Everything else: all values, or the ends of an interval and 0."""
    intervals: Mapping[str, tuple[float, float]]
    """Of the choices, those that are real numbers from one end to another."""
    empty: tuple[str, ...]
    """The axes whose ranges begin at 0, which is left out of them and tried alone."""
    together: tuple[Mapping[str, tuple[Any, ...]], ...]
    """What each configuration lets its axes be that have no limits, as card_reader.py wrote it."""

    def takes(self, axes: Mapping[str, AxisValue]) -> bool:
        """Whether some configuration has all of these values: what a card excludes is not tried."""
        return any(
            all(any(_within(axes[axis], leaf) for leaf in leaves) for axis, leaves in one.items() if axis in axes)
            for one in self.together
        )


def _within(value: AxisValue, leaf: Any) -> bool:
    match leaf:
        case {"range": content}:
            return value in range(*content)
        case {"between": (low, high)}:
            return bool(low <= value <= high)
    return bool(value == leaf)


def domain(card: CardFacts, device: DeviceKind) -> Domain:
    """From what the card says that the kernel takes, else from what it fuzzes."""
    ranges: dict[str, range] = {}
    choices: dict[str, list[AxisValue]] = {}
    intervals: dict[str, tuple[float, float]] = {}
    drawn = [(axis, leaf) for listed in card.fuzz[device].values() for axis in listed for leaf in _leaves(listed[axis])]
    leaves = [(axis, leaf) for axis, leaf in drawn if axis not in card.limits or not isinstance(leaf, Mapping)]
    leaves += [(axis, leaf) for axis, limit in card.limits.items() for leaf in _leaves(limit)]
    for axis, leaf in leaves:
        match leaf:
            case {"range": content}:
                new = range(*content)
                old = ranges.get(axis, new)
                if old != new:  # from the smallest to the largest of both
                    new = range(min(old[0], new[0]), max(old[-1], new[-1]) + 1, old.step if old.step == new.step else 1)
                ranges[axis] = new
            case {"between": ends}:
                low, high = map(float, ends)
                choices.setdefault(axis, []).extend([low, high, *([0.0] if low < 0 < high else [])])
                before = intervals.get(axis, (low, high))
                intervals[axis] = (min(low, before[0]), max(high, before[1]))
            case _:
                choices.setdefault(axis, []).append(leaf)
    choices[DISTRIBUTION] = [*card.distributions, SPECIAL, *([NONFINITE] if card.nonfinite else [])]
    rest = {axis: tuple(dict.fromkeys(values)) for axis, values in choices.items() if axis not in ranges}
    empty = tuple(axis for axis, whole in ranges.items() if whole[0] == 0 and len(whole) > 1)
    ranges |= {axis: ranges[axis][1:] for axis in empty}
    configurations = (
        {axis: tuple(_leaves(values)) for axis, values in listed.items() if axis not in card.limits}
        for listed in card.fuzz[device].values()
    )
    together = tuple({repr(one): one for one in configurations}.values())
    reals = {axis: ends for axis, ends in intervals.items() if axis not in ranges}
    return Domain(ranges, rest, reals, empty, together)


def _leaves(values: Any) -> Iterator[Any]:
    """Every value, range and interval that there is to choose from."""
    if isinstance(values, Mapping) and "choice" in values:
        for value in values["choice"]:
            yield from _leaves(value)
    else:
        yield values


def small(card: CardFacts, known: Domain, device: DeviceKind, size: int = SMALL) -> Axes:
    """A case that is quickly run, of this size where ranges have it; of a card without ranges its smallest."""
    if not known.ranges:
        return dict(min(card.suites["cpu" if device == "cpu" else "pr"], key=lambda case: case.bytes or 0.0).axes)
    sizes: Axes = {}
    for axis, whole in known.ranges.items():
        sizes[axis] = size if size in whole else whole[-1] if whole[-1] < size else whole[0]
    first = {axis: values[0] for axis, values in known.choices.items() if axis != DISTRIBUTION}
    for axis in reversed(list(known.ranges)):
        if not is_light(first | sizes, "cpu"):
            sizes[axis] = known.ranges[axis][0]
    if known.takes(first | sizes):
        return first | sizes
    listed = (one.axes for one in trials(0, card, device))
    own = min(listed, key=lambda axes: prod(value for value in axes.values() if isinstance(value, int) and value))
    return {axis: value for axis, value in own.items() if axis != DISTRIBUTION}


def is_light(row: Mapping[str, AxisValue], device: DeviceKind) -> bool:
    """Whether a case stays within MOST."""
    sizes = [value for value in row.values() if isinstance(value, int) and not isinstance(value, bool)]
    elements, operations = MOST[device]
    return prod(sizes) <= elements and prod(sizes) * max(sizes, default=1) <= operations


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
    """Cases of one other choice or size; and with two sizes exchanged, for as many elements of another shape."""
    known = domain(card, device)
    changes: list[Axes] = [
        {axis: value}
        for axis, values in known.choices.items()
        for value in values
        if axis != DISTRIBUTION and axis in axes and value != axes[axis]
    ]
    sizes = {axis: int(axes[axis]) for axis in known.ranges if axis in axes}
    changes += [{axis: size // 2} for axis, size in sizes.items() if size // 2 in known.ranges[axis]]
    for axis, other in combinations(sizes, 2):
        if sizes[axis] != sizes[other] and sizes[other] in known.ranges[axis] and sizes[axis] in known.ranges[other]:
            changes.append({axis: sizes[other], other: sizes[axis]})
    return tuple(filter(known.takes, ({**axes, **change} for change in changes)))


def parse(seed: int, card: CardFacts, device: DeviceKind, text: str) -> Trial | None:
    """The trial with an id that is written as `trial` does; None where it is not."""
    for example in _examples(card, device):
        whole = trial(seed, card, device, {**example, DISTRIBUTION: "normal", WAY: PLAIN}).axes
        axes = case_axes.parse(text, whole)
        if axes is None or axes[DISTRIBUTION] not in KNOWN_DISTRIBUTIONS:
            continue
        if axes[WAY] in (PLAIN, HUGE, *WAYS[device]):
            return trial(seed, card, device, axes)
    return None


def _examples(card: CardFacts, device: DeviceKind) -> Iterator[Axes]:
    """An example of every way to write an id: each set of axes of a case or configuration, each kind of value."""
    known = domain(card, device)
    kinds: dict[str, dict[type, AxisValue]] = {axis: {int: 0} for axis in known.ranges}
    for axis, values in known.choices.items():
        # A whole number is written as a real one is, and taken for one where the axis has both.
        kinds[axis] = {type(value): value for value in sorted(values, key=lambda value: not isinstance(value, float))}
    listed: list[Mapping[str, AxisValue]] = [case.axes for case in card.cases.values()]
    for case in listed:
        for axis, value in case.items():
            kinds.setdefault(axis, {}).setdefault(type(value), value)
    everything = [axis for axis in kinds if axis != DISTRIBUTION]
    sets = [everything, small(card, known, device), *card.fuzz[device].values(), *listed]
    for axes in dict.fromkeys(tuple(sorted(names)) for names in sets):
        for combination in product(*(kinds[axis].values() for axis in axes)):
            yield dict(zip(axes, combination, strict=True))


# What is risky --------------------------------------------------------------------------------------------------------


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
    own = len(made)
    made += [least | {axis: 0, WAY: PLAIN} for axis in known.empty]
    if known.ranges:
        made += [least | {axis: whole[0] for axis, whole in known.ranges.items()} | {WAY: PLAIN}]
    if card.nonfinite:
        dtypes = [{DTYPE: dtype} for dtype in known.choices.get(DTYPE, ())] or [{}]
        made += [least | dtype | {DISTRIBUTION: NONFINITE, WAY: PLAIN} for dtype in dtypes]
    made[own:] = filter(known.takes, made[own:])
    plain = [{DISTRIBUTION: card.distributions[0], **axes} for axes in made]
    rows = list(filter(known.takes, _covering(known, device, rng))) if known.ranges else []
    listed = (trial(seed, card, device, axes) for axes in [*plain, *(row | {WAY: PLAIN} for row in rows)])
    return tuple({one.id: one for one in listed}.values())


def select(
    seed: int, card: CardFacts, device: DeviceKind, memory_bytes: int | None, ids: Iterable[str]
) -> tuple[Trial, ...]:
    """The trials with these ids, or all: the card's own list first. Raises UsageError for an id that is none."""
    listed = (*trials(seed, card, device), *risks(seed, card, device, memory_bytes))
    by_id = {one.id: one for one in listed}
    wanted = tuple(dict.fromkeys(ids))
    found = {id_: by_id.get(id_) or parse(seed, card, device, id_) for id_ in wanted}
    if unknown := [id_ for id_, one in found.items() if one is None]:
        own = ", ".join(one.id for one in trials(seed, card, device))
        example = f"; and others, written like {listed[-1].id}" if by_id else ""
        raise UsageError(f"there is no fuzz case {', '.join(unknown)}; there are {own}{example}")
    return tuple(one for one in found.values() if one) if wanted else listed


def fits(case: CaseFacts, memory_bytes: int | None) -> bool:
    """Whether a huge case can be tried in so much memory, and soon."""
    if case.bytes is None or memory_bytes is None:
        return False
    return case.bytes <= HUGE_MEMORY_SHARE * memory_bytes and (case.flops or 0.0) <= HUGE_FLOPS


# Covering pairs -------------------------------------------------------------------------------------------------------

Pair = tuple[tuple[str, AxisValue], tuple[str, AxisValue]]


def edges(whole: range) -> Sequence[int]:
    """Ends of a range, neighbours of its largest powers of two, which are in a card's own list, and ALIGNED."""
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
            light = [one for one in every if axis not in known.ranges or is_light(row | {axis: one}, device)]
            allowed = [one for one in light if known.takes(row | {axis: one})] or light
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
        elif known.empty and rng.random() < EMPTY_SHARE:
            axes = {**least, **chosen, rng.choice(known.empty): 0, WAY: PLAIN}
        else:
            way = PLAIN if rng.random() < PLAIN_SHARE else rng.choice(WAYS[device])
            axes = {**least, **_sizes(rng, chosen, known, device), WAY: way}
        if axes[WAY] == HUGE or known.takes(axes):
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


# ---- Trials that fail: the corpus that keeps them, and the smallest of them ------------------------------------------
# A corpus has a file for each trial that failed, named by what is in it: CORPUS/CARD/failed/*.json. Beside the cards,
# `corpus/` is the repository's own: what is kept there is tried before everything else, in every pull request.

CORPUS, FAILED = "corpus", "failed"
MAX_KEPT_BYTES = 20_000
"""Of a file; those that kernelgate writes have a few hundred."""
Fails = Callable[[Axes], bool]
"""Whether the trial with these axes fails as the first did; False, too, where it may not be tried any more."""


class KeptTrial(BaseModel, extra="forbid", frozen=True, defer_build=True):
    id: Annotated[str, Field(max_length=1000)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """Of the run: `kernelgate fuzz --seed SEED --case CARD/ID` repeats it."""
    why: Annotated[str, Field(max_length=10_000)]
    error_ratio: float | None = None

    @property
    def name(self) -> str:
        """The file's: the same case is kept once."""
        return hashlib.sha256(f"{self.seed}/{self.id}".encode()).hexdigest()[:16] + ".json"


def corpus_beside(card: CardFacts) -> Path:
    return card.file.parent / CORPUS


def keep(corpus: Path, card: str, kept: KeptTrial) -> Path:
    """Writes the file, whole or not at all. Raises OutputError."""
    path = corpus / card / FAILED / kept.name
    files.write(path, kept.model_dump_json(indent=2) + "\n")
    return path


def kept_in(corpus: Path, card: str) -> Iterator[KeptTrial]:
    """What is kept, in the order of file names. A file that is none of a corpus is named, and left alone."""
    for path in sorted((corpus / card / FAILED).glob("*.json")):
        try:
            with path.open("rb") as file:
                yield KeptTrial.model_validate_json(file.read(MAX_KEPT_BYTES))
        except OSError as error:
            progress.say(f"{path} is left out: {error.strerror}")
        except ValidationError as error:
            progress.say(f"{path} is left out: it is no kept case: {faults(error)}")


def kept_failures(corpus: Path, card: CardFacts, device: DeviceKind) -> tuple[Trial, ...]:
    """As trials; those of another device, or of axes that the card no longer has, are left out."""
    found = []
    for one in kept_in(corpus, card.name):
        listed = {trial.id: trial for trial in trials(one.seed, card, device)}
        found.append(listed.get(one.id) or parse(one.seed, card, device, one.id))
    return tuple(filter(None, found))


def smallest(first: Axes, card: CardFacts, device: DeviceKind, fails_so: Fails) -> Axes:
    """The axes of the smallest trial that still fails; `first` itself where nothing smaller does.

    Fewer elements first, then plainer values, a plainer way, plainer scalars, one axis at a time. Property-based
    testing searches from nothing: a kernel that is wrong at S=37 alone would be found anew once in 4,096 draws.
    """
    known = domain(card, device)

    def fails(axes: Axes) -> bool:
        return known.takes(axes) and fails_so(axes)

    best = _leap(first, small(card, known, device), known, fails)

    def rank(axis: str) -> int:
        if axis in known.ranges or (isinstance(best[axis], int) and not isinstance(best[axis], bool)):
            return 0
        return {DISTRIBUTION: 1, WAY: 2}.get(axis, 3)

    while True:
        before = best
        for axis in sorted(best, key=rank):
            best = {**best, axis: _least(best, axis, known, fails)}
        if best == before:
            return best


def _leap(first: Axes, least: Axes, known: Domain, fails: Fails) -> Axes:
    """Most faults show in a case that is small and plain in everything: then there is little left to search."""
    plain = {axis: values[0] for axis in known.choices if (values := _plainer(first, axis, known))}
    way = {WAY: PLAIN}
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
    # A fault of a tile's last part is met by what is left after whole ones, too.
    tiles = [2**exponent for exponent in range(2, 13)]
    left_over = sorted({rest for tile in tiles for rest in (value % tile, value % tile + tile)})
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
        return () if value in (PLAIN, HUGE) else (PLAIN,)
    if isinstance(value, int | float) and not isinstance(value, bool):
        numbers = {value, *(one for one in known.choices[axis] if not isinstance(one, str | bool))}
        if axis in known.intervals:
            low, high = known.intervals[axis]
            rounded = (float(f"{value:.{digits}g}") for digits in (1, 2, 3))
            numbers |= {one for one in (1.0, -1.0, 0.5, *rounded) if low <= one <= high}
        # 1 is the plainest number: at 0 much disappears that is wrong.
        plainest = sorted(numbers, key=lambda one: (one != 1, len(repr(float(one))), abs(one) + 0.5 * (one < 0)))
        every: list[AxisValue] = [*plainest]
    elif isinstance(value, bool):
        every = [False, True]
    else:
        every = list(known.choices[axis])
    return every[: every.index(value)] if value in every else every
