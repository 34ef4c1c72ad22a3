"""What `kernelgate bisect` asks of a machine: commits of a range, built, and timed or fuzzed beside each other."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build.library import build_record
from kernelgate.bench.check import fuzz
from kernelgate.bench.check.trials import TrialOutcome, TrialProcess
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError, UsageError
from kernelgate.bench.kernel import cards, fuzz_corpus, fuzz_risk
from kernelgate.bench.kernel.cards import CardFacts, Cards, CaseFacts, ChosenCase
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.measure import commit_range, run, run_checks
from kernelgate.bench.measure.commit_range import SHORT, BuiltCommits, CommitRange
from kernelgate.bench.measure.run import new_seed
from kernelgate.bench.record import RunRecord, Timing
from kernelgate.bench.system import environment, lock, nvml
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.worker import WorkerPool, worker_pool
from kernelgate.bench.timing import process
from kernelgate.bench.timing.batches import ProcessError
from kernelgate.bench.timing.process import CommitsPlan, Measuring, Setup, commit_side

PATIENCE_S = 120.0
"""A process that does not answer for so long is hung. A commit that hangs costs it twice: beside others, and alone."""


@dataclass(frozen=True)
class MeasuredCommits:
    """What one process, or processes that took turns, gave."""

    timing: Timing | None
    """None where fewer than two commits could be timed."""
    places: tuple[int, ...]
    """The commits whose times count."""
    faults: Mapping[int, str]
    """Commits that cannot be measured, and why."""
    together: bool


@dataclass(kw_only=True)
class Workbench(BuiltCommits):
    """The commits of a range by place, the good end first, and one case of a card."""

    case: CaseFacts
    setup: Setup
    output: Callable[[RunRecord], None]
    """Given the record whenever it has grown."""
    made: RunRecord
    together: bool = True
    """Whether libraries share processes; once they could not, none does."""
    before: int = 0
    """Processes of searches that this one goes on from."""

    def build(self, place: int) -> str | None:
        """Also puts what is built into the record."""
        if why := super().build(place):
            return why
        builds = (*self.made.builds, build_record(self.libraries[place], commit_side(self.shas[place])))
        self.made = self.made.model_copy(update={"builds": builds})
        return None

    def within(self, inner: CommitRange) -> Workbench:
        """The same for a submodule's commits."""
        return replace(self, range=inner, libraries={}, before=len(self.made.processes))

    def measure(self, places: Sequence[int], number: int) -> MeasuredCommits:
        """Times these commits beside each other. Those that fail are left out, and tried alone to know them.

        Raises KernelgateError where none of them fails alone.
        """
        left, faults = list(places), dict[int, str]()
        number += self.before
        while len(left) > 1:
            sides = {commit_side(self.shas[place]): place for place in left}
            plan = CommitsPlan(self.card, self.case, {side: self.libraries[at] for side, at in sides.items()})
            if self.together and (why := process.commits_clash(list(plan.libraries.values()))):
                self._apart(why)
            try:
                done = process.timed_commits(self.setup, plan, number, self.together)
            except ProcessError as error:
                found = {sides[side]: why for side, why in process.commits_at_fault(self.setup, plan, number).items()}
                if not found and not self.together:
                    raise KernelgateError(error.fault) from None
                if not found:
                    self._apart(error.fault)
                faults |= found
                left = [place for place in left if place not in found]
                continue
            [measured] = done.process.timings
            notes = tuple({note.text: note for note in (*self.made.notes, *done.notes)}.values())
            grown = {"processes": (*self.made.processes, done.process), "notes": notes}
            self.made = self.made.model_copy(update=grown)
            self.output(self.made)
            for side, place in sides.items():
                if (calls := measured.calls.get(side)) and calls.failed:
                    faults[place] = f"its results are wrong in {calls.failed} of {calls.compared} calls"
            right = tuple(place for place in left if place not in faults)
            return MeasuredCommits(measured, right, faults, self.together)
        return MeasuredCommits(None, (), faults, self.together)

    def _apart(self, why: str) -> None:
        say(f"not all commits can be loaded into one process, so processes take turns, which is less precise: {why}")
        self.together = False


@contextmanager
def opened(
    repo: Path,
    ends: tuple[str, str],
    case: str | None,
    how: Measuring,
    lock_clocks: bool,
    output: Callable[[RunRecord], None],
) -> Iterator[Workbench]:
    """The workbench for a range, while the device is held. Raises UsageError for a range or case that is none."""
    whole = commit_range.between(repo, *ends)
    machine = environment.describe()
    chosen = _case(cards.of_checkout(repo), environment.kind(machine), case)
    say(f"seed {how.seed}")
    base, head = whole.shas[0], whole.shas[-1]
    made = RunRecord(
        run=record.Run(id=secrets.token_hex(8), producer=run.PRODUCER, base_sha=base, head_sha=head),
        environments=(machine,),
        cards=(chosen.card.recorded,),
        cases=(chosen.recorded,),
    )
    uuid, on_gpu = machine.device.uuid, environment.kind(machine) == "cuda"
    with lock.device(uuid), nvml.locked_clock(uuid, lock_clocks and on_gpu), worker_pool() as started:
        setup = Setup(machine, how, started)
        yield Workbench(whole, chosen.card, case=chosen.case, setup=setup, output=output, made=made)


def measuring(rounds: int, seed: int | None, pause_when_capped: bool) -> Measuring:
    drawn = secrets.randbelow(2**31) if seed is None else seed
    return Measuring(drawn, rounds, PATIENCE_S, pause_when_capped, single=True)


def _case(judging: Cards, device: environment.DeviceKind, case: str | None) -> ChosenCase:
    """The one that is named; else the only card's first one on this device."""
    found = cards.select(judging, device, None, (case,) if case else ())
    names = dict.fromkeys(one.card.name for one in found)
    if len(names) > 1:
        raise UsageError(f"there are several cards ({', '.join(names)}): name a case with --case, as CARD/ID")
    if not found:
        raise UsageError(f"no card has cases for {'a GPU' if device == 'cuda' else 'a CPU'}")
    return found[0]


# ----------------------------------------------------------------------------------------------------------------------
# Whether commits compile
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastBuilt:
    """The last commit that compiles, at its place, and why the next one does not."""

    range: CommitRange
    last: int
    why: str
    inside: LastBuilt | str | None
    """Of the submodule that the next one moves; else why it is not known."""


def last_that_compiles(whole: CommitRange) -> LastBuilt:
    """By halves; on inside the submodule that the culprit moves. Raises UsageError where the good end cannot be built,
    or the bad one can."""
    faults: dict[int, str] = {}

    def compiles(place: int) -> bool:
        say(f"building {whole.shas[place][:SHORT]}")
        try:
            whole.build(place)
        except CannotCompileError:
            raise  # it says nothing about the commit
        except BuildError as error:
            faults[place] = str(error)
        return place not in faults

    good, bad = 0, whole.last
    if not compiles(good):
        raise UsageError(f"{whole.shas[good][:SHORT]}, the good end, does not compile either: {faults[good]}")
    if compiles(bad):
        raise UsageError(f"{whole.shas[bad][:SHORT]}, the bad end, compiles: there is nothing to find")
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if compiles(middle) else (good, middle)
    inner = commit_range.inside(whole, bad, whole.moved(bad))
    if not isinstance(inner, CommitRange):
        return LastBuilt(whole, good, faults[bad], inner)
    try:
        return LastBuilt(whole, good, faults[bad], last_that_compiles(inner))
    except UsageError as error:  # more than the submodule is changed
        return LastBuilt(whole, good, faults[bad], f"{inner.submodule}: {error}")


# ----------------------------------------------------------------------------------------------------------------------
# `bisect --fuzz`: one fuzz trial, run again and again at commits of a range
# ----------------------------------------------------------------------------------------------------------------------

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
def opened_trial(
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
