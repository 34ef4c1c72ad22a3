"""The first commit at which a fuzz trial fails: by halves, each tried until it fails or has passed often enough.

How often a failing commit fails is what the bad end shows: `failed` of `runs`. With Jeffreys' prior that share has the
distribution Beta(failed + ½, runs - failed + ½), and a commit that fails as often passes k runs in a row with the mean
of (1 - share)^k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.bisect.answers import FailingAnswer
from kernelgate.ci.bisect.posterior import CHANCE, SHORT
from kernelgate.ci.bisect.rounds import Commits

FUZZ_RUNS: Final = 20
"""A failing trial is run so often at the bad end, to know how often it fails."""
FUZZ_MISSED: Final = 0.001
"""Another commit is called good once a failing one would have passed as often in a row with this probability, ..."""
FUZZ_MOST: Final = 500
"""... or after so many runs."""


class Tries(Protocol):
    """What running a trial again and again gave: `bench.measure.bisect.TrialRuns`."""

    @property
    def runs(self) -> int: ...

    @property
    def failed(self) -> int: ...

    @property
    def fault(self) -> str | None: ...

    @property
    def otherwise(self) -> str | None: ...


class Trials(Commits, Protocol):
    """Who builds and runs: `bench.measure.bisect.TrialBench`."""

    def learn(self, times: int) -> Tries: ...

    def tried(self, place: int, times: int) -> Tries: ...


def missed(runs: int, failed: int, times: int) -> float:
    """The probability that a commit that fails as the bad end does passes so many runs in a row."""
    return math.prod((runs - failed + 0.5 + at) / (runs + 1 + at) for at in range(times))


def enough(runs: int, failed: int) -> int:
    """How often a commit must pass to be called good."""
    times, chance = 0, 1.0
    while times < FUZZ_MOST and chance > FUZZ_MISSED:
        chance *= (runs - failed + 0.5 + times) / (runs + 1 + times)
        times += 1
    return times


@dataclass
class FirstFailing:
    """A search that goes on."""

    trials: Trials
    say: Callable[[str], None]
    times: int = 0
    fails: dict[int, bool] = field(default_factory=dict)
    """Of the commits that were tried."""
    stepped_over: dict[int, str] = field(default_factory=dict)

    def run(self) -> FailingAnswer:
        """All that the search knows of it: neither which trial it is, nor what the commits say.

        Raises KernelgateError where an end cannot be tried, or the good one fails, too.
        """
        last = len(self.trials.shas) - 1
        self._end(last, self.trials.build(last))
        seen = self.trials.learn(FUZZ_RUNS)
        self._end(last, seen.otherwise)
        if not seen.failed:
            return self._answer(seen, found="none", tried=1)
        self.fails[last] = True
        self.times = enough(seen.runs, seen.failed)
        often = f"{seen.failed} of {seen.runs} runs"
        self.say(f"{self._short(last)} fails in {often}: a commit is good after {self.times} that pass")
        if self._fails(0) is None:
            self._end(0, self.stepped_over[0])
        if self.fails[0]:
            raise KernelgateError(f"{self._short(0)}, the good end, fails as well: name an older one")
        culprits = self._halved()
        chance = max(0.0, 1 - missed(seen.runs, seen.failed, self.times) * sum(not one for one in self.fails.values()))
        return self._answer(
            seen,
            found="found" if culprits and chance >= CHANCE else "open",
            culprits=tuple(self.trials.shas[place] for place in culprits),
            chance=chance,
            tried=len(self.fails),
            stepped_over={self.trials.shas[at]: why for at, why in sorted(self.stepped_over.items())},
        )

    def _answer(self, seen: Tries, **found: Any) -> FailingAnswer:
        shas = self.trials.shas
        nothing = {"culprits": (), "chance": 0.0, "stepped_over": {}, "subjects": {}, "case": "", "seed": 0}
        at_the_end = {"fault": seen.fault or "", "runs": seen.runs, "failed": seen.failed, "passes": self.times}
        known = {**nothing, **at_the_end, "repeat": "", "ends": (shas[0], shas[-1]), "commits": len(shas)}
        return FailingAnswer.model_construct(**{**known, **found})

    def _halved(self) -> tuple[int, ...]:
        """The first failing commit, with those before it that cannot be tried. None where nothing was touched."""
        untouched = self.trials.untouched()
        line = [at for at in range(len(self.trials.shas)) if at not in untouched]
        good, bad = 0, len(line) - 1
        while between := [at for at in range(good + 1, bad) if line[at] not in self.stepped_over]:
            middle = min(between, key=lambda at: abs(2 * at - good - bad))
            fails = self._fails(line[middle])
            if fails is not None:
                good, bad = (good, middle) if fails else (middle, bad)
                self.say(f"{self._short(line[middle])} {'fails' if fails else 'passes'}: {bad - good} commits left")
        return tuple(line[good + 1 : bad + 1])

    def _fails(self, place: int) -> bool | None:
        """None where it cannot be told, and the commit is stepped over."""
        why = self.trials.build(place)
        if why is None:
            alike = next((at for at in self.fails if self.trials.same(*sorted((at, place)))), None)
            if alike is not None:
                self.fails[place] = self.fails[alike]
                return self.fails[place]
            tries = self.trials.tried(place, self.times)
            if tries.otherwise is None:
                self.fails[place] = tries.failed > 0
                return self.fails[place]
            why = tries.otherwise
        self.say(f"{self._short(place)} is stepped over: {why}")
        self.stepped_over[place] = why
        return None

    def _end(self, place: int, why: str | None) -> None:
        """An end cannot be stepped over."""
        if why is not None:
            end = "bad" if place else "good"
            raise KernelgateError(f"{self._short(place)}, the {end} end, cannot be tried: {why}; name another one")

    def _short(self, place: int) -> str:
        return self.trials.shas[place][:SHORT]
