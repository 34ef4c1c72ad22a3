"""A search, round by round: which commits to measure next, and when it is certain enough to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Timing
from kernelgate.ci.bisect import answers, posterior
from kernelgate.ci.bisect.answers import ChangeOf, TimedAnswer
from kernelgate.ci.bisect.posterior import CHANCE, SHORT, CommitTime, ProcessRead, Search, SearchStanding
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import location
from kernelgate.ci.judge.stats import NORMAL_95, Array

if TYPE_CHECKING:
    from kernelgate.bench.measure.bisect import Workbench

ROUNDS: Final = 6
"""At most."""
TOGETHER_PCT: Final = 0.15
"""How far the time of one library beside others in one process scatters from process to process: 8 in one process on an
H200 kept their relative times to 0.15%."""
APART_PCT: Final = 0.5
"""In processes that take turns, of which the first is up to 0.8% off."""
CPU_PCT: Final = 5.0
"""On a CPU, where its code lies makes a kernel up to 15% faster or slower in a process."""


def spread_pct(device: str, together: bool) -> float:
    return CPU_PCT if device == "cpu" else TOGETHER_PCT if together else APART_PCT


UNSETTLED = 0.5
"""Where two changes are likelier than one, no commit is named alone."""
LEAST_GAIN = 0.01
"""A further commit that is expected to tell less than this, in nats, is not measured."""
SMALLEST_PCT: Final = 0.2
"""Ends that differ by less, with 95% certainty, have no culprit."""
LIBRARIES: Final = 8
"""At most so many libraries in one process, both ends of the range among them."""
PROCESSES: Final = 2
DIGITS: Final = 9
"""Of what a commit tells, in nats: of commits that tie, every processor chooses the same, however it adds up floats."""


@dataclass
class Rounds:
    bench: Workbench
    say: Callable[[str], None]
    search: Search
    apart_pct: float
    """The spread to expect where processes take turns."""
    built: set[int] = field(default_factory=set)

    def run(self) -> TimedAnswer:
        """Raises KernelgateError where an end cannot be measured."""
        self._build((0, self.search.last))
        unchanged = frozenset((at - 1, at) for at in self.bench.untouched())
        self.search = replace(self.search, same=self.search.same | unchanged)
        now = standing(self.search)
        for number in range(ROUNDS):
            if now.kind != "open":
                break
            for at, places in enumerate(self._next(), 1):
                self._measure(places, at + number * PROCESSES)
            now = standing(self.search)
            self.say(f"round {number + 1}: {answers.progress(self._answer(now))}")
        return self._answer(now)

    def _answer(self, now: SearchStanding) -> TimedAnswer:
        shas, search = self.bench.shas, self.search
        seen = sorted({0, *(place for process in search.processes for place in process)})
        return TimedAnswer.model_construct(
            case=f"{self.bench.card.name}/{self.bench.case.id}",
            found=now.kind,
            culprits=tuple(shas[place] for place in now.culprits),
            subjects={shas[place]: self.bench.range.subject(place) for place in now.culprits},
            submodule=self.bench.range.submodule,
            chance=min(1.0, now.chance),  # sums of floats may exceed it
            ends=(shas[0], shas[-1]),
            commits=len(shas),
            tried=len(seen) if search.processes else 0,
            change_pct=as_percent(now.effect),
            interval_pct=tuple(as_percent(now.effect + side * NORMAL_95 * now.error) for side in (-1, 1)),
            several=tuple(
                ChangeOf.model_construct(
                    commit=shas[place],
                    after=shas[max(one for one in seen if one < place)],
                    change_pct=as_percent(effect),
                )
                for place, effect in now.two
            ),
            stepped_over={shas[place]: why for place, why in sorted(search.unmeasurable.items())},
            processes=len(search.processes),
        )

    def _next(self) -> tuple[tuple[int, ...], ...]:
        while True:
            processes = next_processes(self.search)
            wanted = {place for one in processes for place in one} - self.built
            if not wanted:
                return processes
            self._build(sorted(wanted))

    def _build(self, places: Iterable[int]) -> None:
        for place in places:
            if why := self.bench.build(place):
                self._step_over(place, why)
            else:
                self.built.add(place)
        same = frozenset(pair for pair in pairwise(sorted(self.built)) if self.bench.same(*pair))
        self.search = replace(self.search, same=self.search.same | same)

    def _measure(self, places: Sequence[int], number: int) -> None:
        # One that an earlier process of the round has shown to be at fault is out already.
        measured = self.bench.measure([place for place in places if place in self.built], number)
        for place, why in measured.faults.items():
            self._step_over(place, why)
        if not measured.together and self.search.spread_pct != self.apart_pct:
            # What was measured together before is evidence of another kind.
            self.search = replace(self.search, processes=(), spread_pct=self.apart_pct)
        if measured.timing is not None and len(measured.places) > 1:
            sides = {f"commit:{self.bench.shas[place]}": place for place in measured.places}
            read = times(measured.timing, sides)
            self.search = replace(self.search, processes=(*self.search.processes, read))

    def _step_over(self, place: int, why: str) -> None:
        sha = self.bench.shas[place][:SHORT]
        if place in (0, self.search.last):
            end = "good" if place == 0 else "bad"
            raise KernelgateError(f"{sha}, the {end} end, cannot be measured: {why}; name another one")
        self.say(f"{sha} is stepped over: {why}")
        # What an earlier process read of it tells no more than this one.
        kept = tuple({at: one for at, one in read.items() if at != place} for read in self.search.processes)
        why_not = {**self.search.unmeasurable, place: why}
        self.search = replace(self.search, unmeasurable=why_not, processes=kept)
        self.built.discard(place)


def times(measured: Timing, places: Mapping[str, int]) -> ProcessRead:
    """The log time of each commit beside the others, by its place: Huber's location over the rounds."""
    sides = [side for side in measured.samples_us if side in places]
    rows = np.log(np.array([measured.samples_us[side] for side in sides]))
    step = location.log_step(np.exp(rows).ravel())
    # What meets a whole round, such as the clock, is no commit's.
    found = location.levels(list(rows - np.median(rows, axis=0)), step)
    return {places[side]: CommitTime(one.value, one.variance) for side, one in zip(sides, found, strict=True)}


def standing(search: Search) -> SearchStanding:
    found = posterior.of(search)
    ends = [*search.measurable, search.last]
    groups = [range(before + 1, end + 1) for before, end in zip([0, *ends], ends, strict=False)]
    best = max(groups, key=lambda group: float(found.culprit[group.start : group.stop].sum()))
    one = max(1 - found.several, 1e-300)
    chance = float(found.culprit[best.start : best.stop].sum()) / one
    culprits = tuple(at for at in best if found.culprit[at] > 0)
    effect, error = found.effect(best.start, best.stop - 1) if search.processes else (0.0, 0.0)
    if found.several >= CHANCE:
        return SearchStanding("several", (), found.several, effect, error, found.two)
    is_found = found.several < UNSETTLED and search.processes and chance >= CHANCE
    alike = search.processes and abs(effect) + NORMAL_95 * error < math.log1p(SMALLEST_PCT / 100)
    if found.several < UNSETTLED and not is_found and (found.none / one >= CHANCE or alike):
        return SearchStanding("none", (), found.none, effect, error)
    return SearchStanding("found" if is_found else "open", culprits, chance, effect, error)


def next_processes(search: Search) -> tuple[tuple[int, ...], ...]:
    """The commits of each process of the next round, both ends among them.

    Measuring a commit tells on which side of it the culprit lies. If times were exact, commits would tell the entropy
    of the parts into which they split the culprit's probability, so those that split it best come first. No two
    processes measure the same until nothing is left to split; then they repeat what splits best.
    """
    room, chances = LIBRARIES - 2, posterior.of(search).culprit
    chosen: list[list[int]] = [[] for _ in range(PROCESSES)]
    splits: list[int] = []
    for turn in range(room * PROCESSES):
        best = _best(search.measurable, splits, chances)
        if best is None:
            break
        splits.append(best)
        chosen[turn % PROCESSES].append(best)
    for one in chosen:
        while len(one) < room and (best := _best(search.measurable, one, chances)) is not None:
            one.append(best)
    return tuple((0, *sorted(one), search.last) for one in chosen)


def _best(candidates: Iterable[int], splits: Sequence[int], chances: Array) -> int | None:
    """The commit that splits what these leave together most evenly, weighted by its probability."""
    gains = {at: round(_entropy([*splits, at], chances), DIGITS) for at in candidates if at not in splits}
    if not gains:
        return None
    best = max(gains, key=lambda at: (gains[at], -at))
    gain = gains[best] - _entropy(splits, chances)
    return best if gain > (LEAST_GAIN if splits else 0.0) else None


def _entropy(splits: Sequence[int], chances: Array) -> float:
    """Of the parts of the culprit's probability: a culprit at or before a split, or after it."""
    parts = np.add.reduceat(chances, [0, *(at + 1 for at in sorted(splits))])
    parts = parts[parts > 0] / max(float(chances.sum()), 1e-300)
    return -float(parts @ np.log(parts))
