"""A search, round by round: asks somebody to build and to measure, and stops when it is certain enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Timing
from kernelgate.ci.bisect import choose, posterior, words
from kernelgate.ci.bisect.choose import PROCESSES, SearchStanding
from kernelgate.ci.bisect.search import CommitTime, ProcessRead, Search
from kernelgate.ci.judge import location

ROUNDS: Final = 6
"""At most."""
TOGETHER_PCT: Final = 0.15
"""How far the time of one library beside others in one process scatters from process to process: 8 in one process on an
H200 kept their relative times to 0.15%."""
APART_PCT: Final = 0.5
"""In processes that take turns, of which the first is up to 0.8% off."""
CPU_PCT: Final = 5.0
"""On a CPU, where its code lies makes a kernel up to 15% faster or slower in a process."""


class Measurement(Protocol):
    """What a process, or processes that took turns, gave: `bench.bisect.MeasuredCommits`."""

    @property
    def timing(self) -> Timing | None: ...

    @property
    def places(self) -> tuple[int, ...]: ...

    @property
    def faults(self) -> Mapping[int, str]: ...

    @property
    def together(self) -> bool: ...


class Bench(Protocol):
    """Who builds and measures: `bench.bisect.Workbench`."""

    @property
    def shas(self) -> tuple[str, ...]: ...

    def build(self, place: int) -> str | None: ...

    def same(self, one: int, other: int) -> bool: ...

    def untouched(self) -> frozenset[int]: ...

    def measure(self, places: Sequence[int], number: int) -> Measurement: ...


@dataclass
class Rounds:
    """A search that goes on."""

    bench: Bench
    say: Callable[[str], None]
    search: Search
    apart_pct: float
    """The spread to expect where processes take turns."""
    built: set[int]

    def run(self) -> SearchStanding:
        self._build((0, self.search.last))
        unchanged = frozenset((at - 1, at) for at in self.bench.untouched())
        self.search = replace(self.search, same=self.search.same | unchanged)
        now = self._standing()
        for number in range(ROUNDS):
            if now.kind != "open":
                break
            for at, places in enumerate(self._next(), 1):
                self._measure(places, at + number * PROCESSES)
            now = self._standing()
            self.say(f"round {number + 1}: {words.progress(now, self.bench.shas)}")
        return now

    def _standing(self) -> SearchStanding:
        return choose.standing(self.search, posterior.of(self.search))

    def _next(self) -> tuple[tuple[int, ...], ...]:
        """The commits of each process of the next round, all of them built."""
        while True:
            found = posterior.of(self.search)
            processes = choose.processes(self.search, found)
            wanted = {place for one in processes for place in one} - self.built
            if not wanted:
                return processes
            self._build(sorted(wanted))

    def _build(self, places: Iterable[int]) -> None:
        for place in places:
            why = self.bench.build(place)
            if why is None:
                self.built.add(place)
            else:
                self._step_over(place, why)
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
        """An end cannot be stepped over."""
        sha = self.bench.shas[place][: words.SHORT]
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
