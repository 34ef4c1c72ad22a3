"""The first commit at which a fuzz trial fails, or that does not compile: by halves.

A trial is run at a commit until it fails or has passed often enough. How often a failing commit fails is what the bad
end shows: `failed` of `runs`. With Jeffreys' prior that share has the distribution Beta(failed + ½, runs - failed + ½),
and a commit that fails as often passes k runs in a row with the mean of (1 - share)^k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.bisect.answers import CompiledAnswer, FailingAnswer
from kernelgate.ci.bisect.posterior import CHANCE, SHORT

if TYPE_CHECKING:
    from kernelgate.bench.measure.bisect import CommitRange, TrialBench

FUZZ_RUNS: Final = 20
"""A failing trial is run so often at the bad end, to know how often it fails."""
FUZZ_MISSED: Final = 0.001
"""Another commit is called good once a failing one would have passed as often in a row with this probability, ..."""
FUZZ_MOST: Final = 500
"""... or after so many runs."""


def missed(runs: int, failed: int, times: int) -> float:
    """The probability that a commit that fails as the bad end does passes so many runs in a row."""
    return math.prod((runs - failed + 0.5 + at) / (runs + 1 + at) for at in range(times))


def enough(runs: int, failed: int) -> int:
    often = (times for times in range(FUZZ_MOST) if missed(runs, failed, times) <= FUZZ_MISSED)
    return next(often, FUZZ_MOST)


def halved(places: Sequence[int], fails: Callable[[int], bool | None]) -> Sequence[int]:
    """Of commits of which the last one fails and the first does not: the first that fails, after those before it of
    which it cannot be told, as None says."""
    good, bad, unknown = 0, len(places) - 1, set[int]()
    while between := [at for at in range(good + 1, bad) if at not in unknown]:
        middle = min(between, key=lambda at: abs(2 * at - good - bad))
        failed = fails(places[middle])
        if failed is None:
            unknown.add(middle)
        else:
            good, bad = (good, middle) if failed else (middle, bad)
    return places[good + 1 : bad + 1]


def last_that_compiles(commits: CommitRange, say: Callable[[str], None]) -> CompiledAnswer:
    """Raises UsageError where the good end does not compile, or the bad one does."""
    faults: dict[int, str | None] = {}

    def fails(place: int) -> bool:
        say(f"building {commits.shas[place][:SHORT]}")
        faults[place] = commits.fault(place)
        return faults[place] is not None

    if fails(0):
        raise UsageError(f"{commits.shas[0][:SHORT]}, the good end, does not compile either: {faults[0]}")
    if not fails(commits.last):
        raise UsageError(f"{commits.shas[-1][:SHORT]}, the bad end, compiles: there is nothing to find")
    [broken] = halved(range(commits.last + 1), fails)
    return CompiledAnswer.model_construct(
        last_that_compiles=commits.shas[broken - 1],
        culprits=(commits.shas[broken],),
        subjects={commits.shas[broken]: commits.subject(broken)},
        why=faults[broken],
        submodule=commits.submodule,
    )


@dataclass
class FirstFailing:
    trials: TrialBench
    say: Callable[[str], None]
    times: int = 0
    fails: dict[int, bool] = field(default_factory=dict)
    stepped_over: dict[int, str] = field(default_factory=dict)

    def run(self) -> FailingAnswer:
        """Raises KernelgateError where an end cannot be tried, or the good one fails, too."""
        trials, shas = self.trials, self.trials.shas
        last = len(shas) - 1
        self._end(last, trials.build(last))
        seen = trials.learn(FUZZ_RUNS)
        self._end(last, seen.otherwise)
        self.fails[last] = seen.failed > 0
        culprits: Sequence[int] = ()
        chance = 0.0
        if seen.failed:
            self.times = enough(seen.runs, seen.failed)
            often = f"{seen.failed} of {seen.runs} runs"
            self.say(f"{self._short(last)} fails in {often}: a commit is good after {self.times} that pass")
            if self._fails(0) is None:
                self._end(0, self.stepped_over[0])
            if self.fails[0]:
                raise KernelgateError(f"{self._short(0)}, the good end, fails as well: name an older one")
            untouched = trials.untouched()
            culprits = halved([at for at in range(last + 1) if at not in untouched], self._fails)
            called_good = sum(not one for one in self.fails.values())
            chance = max(0.0, 1 - missed(seen.runs, seen.failed, self.times) * called_good)
        named = "found" if culprits and chance >= CHANCE else "open"
        return FailingAnswer.model_construct(
            case=trials.name,
            seed=trials.trial.run_seed,
            found=named if seen.failed else "none",
            culprits=tuple(shas[place] for place in culprits),
            subjects={shas[place]: trials.range.subject(place) for place in culprits},
            submodule=trials.range.submodule,
            chance=chance,
            ends=(shas[0], shas[-1]),
            commits=len(shas),
            tried=len(self.fails),
            stepped_over={shas[place]: why for place, why in sorted(self.stepped_over.items())},
            fault=seen.fault or "",
            repeat=trials.repeat,
            failed=seen.failed,
            runs=seen.runs,
            passes=self.times,
        )

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
                self.say(f"{self._short(place)} {'fails' if tries.failed else 'passes'}")
                return self.fails[place]
            why = tries.otherwise
        self.say(f"{self._short(place)} is stepped over: {why}")
        self.stepped_over[place] = why
        return None

    def _end(self, place: int, why: str | None) -> None:
        if why is not None:
            end = "bad" if place else "good"
            raise KernelgateError(f"{self._short(place)}, the {end} end, cannot be tried: {why}; name another one")

    def _short(self, place: int) -> str:
        return self.trials.shas[place][:SHORT]
