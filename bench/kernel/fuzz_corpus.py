"""Fuzz trials that fail: the smallest of them, and the corpus that keeps them.

A corpus has a file for each trial, named by what is in it: those that failed, and those nearest to a limit:
CORPUS/CARD/failed/*.json and CORPUS/CARD/near/*.json. Beside the cards, `corpus/` is the repository's own: what is kept
there as failed is tried before everything else, in every pull request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import faults
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import (
    DISTRIBUTION,
    HUGE,
    PLAIN,
    WAY,
    Axes,
    Domain,
    Trial,
    domain,
    small,
)
from kernelgate.bench.system import progress

FOLDER = "corpus"
MAX_BYTES = 20_000
"""Of a file; those that kernelgate writes have a few hundred."""
Group = Literal["failed", "near"]
Fails = Callable[[Axes], bool]
"""Whether the trial with these axes fails as the first did; False, too, where it may not be tried any more."""


class KeptTrial(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(max_length=1000)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """Of the run: `kernelgate fuzz --seed SEED --case CARD/ID` repeats it."""
    why: Annotated[str, Field(max_length=10_000)]
    """Its fault, or how near it came to its limit."""
    error_ratio: float | None = None

    @property
    def name(self) -> str:
        """The file's: the same case is kept once."""
        return hashlib.sha256(f"{self.seed}/{self.id}".encode()).hexdigest()[:16] + ".json"


def beside(card: CardFacts) -> Path:
    return card.file.parent / FOLDER


def keep(corpus: Path, card: str, group: Group, kept: KeptTrial) -> Path:
    """Writes the file, whole or not at all. Raises OutputError."""
    path = corpus / card / group / kept.name
    files.write(path, kept.model_dump_json(indent=2) + "\n")
    return path


def read(corpus: Path, card: str, group: Group) -> Iterator[tuple[Path, KeptTrial]]:
    """What is kept, in the order of file names. A file that is none of a corpus is named, and left alone."""
    for path in sorted((corpus / card / group).glob("*.json")):
        try:
            with path.open("rb") as file:
                yield path, KeptTrial.model_validate_json(file.read(MAX_BYTES))
        except OSError as error:
            progress.say(f"{path} is left out: {error.strerror}")
        except ValidationError as error:
            progress.say(f"{path} is left out: it is no kept case: {faults(error)}")


def failures(corpus: Path, card: CardFacts, device: DeviceKind) -> tuple[Trial, ...]:
    return tuple(trials((kept for _, kept in read(corpus, card.name, "failed")), card, device))


def trials(kept: Iterable[KeptTrial], card: CardFacts, device: DeviceKind) -> Iterator[Trial]:
    """As trials; those of another device, or of axes that the card no longer has, are left out."""
    for one in kept:
        listed = {trial.id: trial for trial in fuzz_trials.trials(one.seed, card, device)}
        trial = listed.get(one.id) or fuzz_trials.parse(one.seed, card, device, one.id)
        if trial is not None:
            yield trial


def smallest(first: Axes, card: CardFacts, device: DeviceKind, fails_so: Fails) -> Axes:
    """The axes of the smallest trial that still fails; `first` itself where nothing smaller does.

    Fewer elements first, then plainer values, a plainer way, plainer scalars: a search from the trial that failed, one
    axis at a time, until no step is left that fails. Property-based testing libraries search from nothing: a kernel
    that is wrong at S=37 alone would be found anew once in 4,096 draws.
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
