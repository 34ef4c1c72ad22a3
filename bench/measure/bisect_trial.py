"""What `kernelgate bisect --fuzz` asks of a machine: one fuzz trial, run again and again at commits of a range."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelgate.bench.check import fuzz
from kernelgate.bench.check.trial_process import TrialOutcome, TrialProcess
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import cards, fuzz_corpus, fuzz_risk
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_list import Trial
from kernelgate.bench.measure import commit_range, run_checks
from kernelgate.bench.measure.commit_range import SHORT, BuiltCommits, CommitRange
from kernelgate.bench.measure.run import new_seed
from kernelgate.bench.system import environment, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.worker import WorkerPool, worker_pool

LEARN_S = 30.0
"""For so long a trial is run again at the bad end: where it hangs, each run takes its patience."""


class NothingFailsError(KernelgateError):
    """No fuzz case fails at the bad end."""

    exit_code = 2


@dataclass(frozen=True)
class TrialRuns:
    """What running a trial again and again gave."""

    runs: int
    failed: int
    fault: str | None = None
    """The first one."""
    otherwise: str | None = None
    """Why it says nothing: the trial cannot be made, or fails in another way than at the bad end."""


@dataclass(kw_only=True)
class TrialBench(BuiltCommits):
    """The commits of a range by place, the good end first, and one trial of a card."""

    trial: Trial
    device: environment.DeviceKind
    workers: WorkerPool
    kinds: set[str | None] = field(default_factory=set)
    """How it fails at the bad end."""

    @property
    def name(self) -> str:
        return f"{self.card.name}/{self.trial.id}"

    @property
    def repeat(self) -> str:
        """The command that runs the trial again."""
        return fuzz.repeat(self.card, self.trial)

    def learn(self, times: int) -> TrialRuns:
        """Runs the trial at the bad end, each time, to see in which ways it fails and how often."""
        begun = time.monotonic()
        outcomes: list[TrialOutcome] = []
        with self.process(self.range.last) as process:
            while len(outcomes) < times and (not outcomes or time.monotonic() - begun < LEARN_S):
                outcomes.append(process.tried(self.trial))
                if why := _untried(outcomes[-1]):
                    return TrialRuns(0, 0, otherwise=why)
        faults = [one for one in outcomes if one.fault is not None]
        self.kinds = {one.kind_of_fault for one in faults}
        return TrialRuns(len(outcomes), len(faults), faults[0].fault if faults else None)

    def tried(self, place: int, times: int) -> TrialRuns:
        """Runs the trial until it fails, at most so often."""
        try:
            with self.process(place) as process:
                for at in range(times):
                    outcome = process.tried(self.trial)
                    if why := _untried(outcome):
                        return TrialRuns(0, 0, otherwise=why)
                    if outcome.fault is not None:
                        alike = outcome.kind_of_fault in self.kinds
                        why = None if alike else f"it fails in another way: {outcome.fault}"
                        return TrialRuns(at + 1, 1, outcome.fault, why)
        except KernelgateError as error:  # the library cannot be loaded
            return TrialRuns(0, 0, otherwise=str(error))
        return TrialRuns(times, 0)

    def within(self, inner: CommitRange) -> TrialBench:
        """The same for a submodule's commits."""
        return replace(self, range=inner, libraries={})

    def process(self, place: int) -> TrialProcess:
        return TrialProcess(self.libraries[place], self.card, self.device, self.workers)


def _untried(outcome: TrialOutcome) -> str | None:
    if outcome.inapplicable:
        return "it is called in a way that is none for this card"
    return outcome.untried and f"the card cannot make it: {outcome.untried}"


@contextmanager
def opened(
    repo: Path, ends: tuple[str, str], case: str | None, seed: int | None, limit_s: float | None
) -> Iterator[TrialBench]:
    """The bench for a range and the trial that is named, else the first that fails at the bad end by itself, while the
    device is held. It passes at the good end. `limit_s`: as long as each card is fuzzed on a GPU.

    Raises UsageError for a range or trial that is none, NothingFailsError where none fails, and KernelgateError where
    the bad end cannot be tried.
    """
    whole = commit_range.between(repo, *ends)
    machine = environment.describe()
    device = environment.kind(machine)
    judging = cards.of_checkout(repo).without_mistakes()
    fuzzed = {card.name: card for card in judging.cards if card.fuzz[device]}
    if not fuzzed:
        raise KernelgateError(f"no card has fuzz cases for {'a GPU' if device == 'cuda' else 'a CPU'}")
    wanted = run_checks.by_card((case,) if case else (), list(fuzzed))
    drawn = new_seed() if seed is None else seed
    memory = machine.device.memory_bytes
    unbuilt: list[str] = []
    with lock.device(machine.device.uuid), worker_pool() as started:

        def bench_of(card: CardFacts, trial: Trial) -> TrialBench:
            return TrialBench(whole, card, trial=trial, device=device, workers=started)

        for name, ids in wanted.items():
            card = fuzzed[name]
            listed = fuzz_risk.select(drawn, card, device, memory, ids)
            if ids:
                yield bench_of(card, listed[0])
                return
            kept = fuzz_corpus.failures(fuzz_corpus.beside(card), card, device)
            bench = bench_of(card, listed[0])
            if why := _unbuilt(bench):
                say(why)
                unbuilt.append(why)
                continue
            limit = limit_s if device == "cuda" else None
            if found := _first_failing(bench, (*kept, *listed), limit):
                yield replace(bench, trial=found)
                return
        if len(unbuilt) == len(wanted):
            raise KernelgateError(f"{unbuilt[0]}; name another one")
        good, bad = (whole.shas[place][:SHORT] for place in (0, -1))
        raise NothingFailsError(f"no fuzz case fails at {bad} and passes at {good} (seed {drawn})")


def _unbuilt(bench: TrialBench) -> str | None:
    """Why an end cannot be tried."""
    for place, end in ((bench.range.last, "bad"), (0, "good")):
        if why := bench.build(place):
            return f"{bench.shas[place][:SHORT]}, the {end} end, cannot be tried: {why}"
    return None


def _first_failing(bench: TrialBench, listed: Sequence[Trial], limit_s: float | None) -> Trial | None:
    """The first trial that fails at the bad end, again in a process of its own, and passes at the good end."""
    say(f"fuzz: {fuzz.sizes(bench.card, listed, bench.device)}, seed {listed[-1].run_seed}")
    begun = time.monotonic()
    with bench.process(bench.range.last) as bad, bench.process(0) as good:
        for trial in listed:
            if limit_s is not None and time.monotonic() - begun >= limit_s:
                say(f"fuzz: the {limit_s:g} s of the time limit are over")
                return None
            fault = bad.tried(trial).fault
            if fault is None:
                continue
            bad.end()
            if bad.tried(trial).fault is None:
                say(f"{trial.id} fails only after other trials or only sometimes: {fault}")
            elif good.tried(trial).fault is not None:
                say(f"{trial.id} fails at the good end, too: {fault}")
            else:
                say(f"FAILED {trial.id} (seed {trial.run_seed}): {fault}")
                return trial
    return None
