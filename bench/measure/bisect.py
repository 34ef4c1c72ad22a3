"""What `kernelgate bisect` asks of a machine: the commits of a range, of the repository or of a submodule that a commit
of it moves, built, and timed or fuzzed beside each other.
"""

from __future__ import annotations

import errno
import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build.library import Libraries, Library, Sides, build_record
from kernelgate.bench.check import fuzz
from kernelgate.bench.check.trial_process import TrialOutcome, TrialProcess
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError, UsageError
from kernelgate.bench.kernel import cards, commit, fuzz_trials
from kernelgate.bench.kernel.cards import CardFacts, Cards, CaseFacts, ChosenCase
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.measure import run
from kernelgate.bench.measure.run import new_seed
from kernelgate.bench.record import RunRecord, Timing
from kernelgate.bench.system import environment, git, lock, nvml, progress
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.worker import WorkerPool, worker_pool
from kernelgate.bench.timing import process
from kernelgate.bench.timing.case_timing import ROUNDS_PER_TURN, ProcessError
from kernelgate.bench.timing.process import Measuring, Setup, Timed, Turn

DISK_FULL = os.strerror(errno.ENOSPC)
"""It says nothing about the commit that could not be compiled."""
SHORT = 12


@dataclass(frozen=True)
class CommitRange:
    """Commits by first parents, the good end first."""

    repo: Path
    shas: tuple[str, ...]
    submodule: str = ""
    """The path of the submodule whose commits these are; empty for the repository's own."""
    commit: str = ""
    """The repository's commit that each of the submodule's is put into."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """The commits of submodules in which the submodule lies, by their paths."""
    from_cards: Path | None = None
    """A folder of cards that stand in place of the commits' own."""

    @property
    def last(self) -> int:
        return len(self.shas) - 1

    def build(self, place: int, how: HowToBuild | None = None) -> Libraries:
        how = replace(how or HowToBuild(), cards=self.from_cards)
        if not self.submodule:
            return commit.build_commit(self.repo, self.shas[place], how)
        return commit.build_commit(self.repo, self.commit, how, {**self.pins, self.submodule: self.shas[place]})

    def subject(self, place: int) -> str:
        return git.subject(self.repo / self.submodule, self.shas[place])

    def touching(self, paths: Sequence[str]) -> frozenset[int]:
        here = list(_below(self.submodule, paths)) if self.submodule else paths
        found = git.first_parents(self.repo / self.submodule, self.shas[0], self.shas[-1], here) if here else ()
        return frozenset(map(self.shas.index, found))

    def fault(self, place: int) -> str | None:
        """Why a commit does not compile, with all of its cards."""
        try:
            self.build(place)
        except CannotCompileError:
            raise  # it says nothing about the commit
        except BuildError as error:
            return str(error)
        return None

    def inside(self, place: int, paths: Sequence[str] = ("",)) -> CommitRange | str | None:
        """The commits of the submodule that a commit moves, of those in which one of these paths may lie; else why
        they are not searched; None where it moves none."""
        own, prefix = self.repo / self.submodule, f"{self.submodule}/".lstrip("/")
        before, after = (git.submodules(own, self.shas[at]) for at in (place - 1, place))
        changed = (path for path, sha in after.items() if before.get(path, sha) != sha)
        if not (moved := [path for path in changed if list(_below(f"{prefix}{path}", paths))]):
            return None
        if len(moved) > 1:
            return f"it moves {len(moved)} submodules at once: {', '.join(sorted(moved))}"
        [path] = moved
        try:
            return self._within(place, f"{prefix}{path}", (before[path], after[path]))
        except UsageError as error:
            old, new = before[path][:SHORT], after[path][:SHORT]
            return f"it moves the submodule {path} from {old} to {new}, which is not searched: {error}"

    def _within(self, place: int, whole: str, ends: tuple[str, str]) -> CommitRange:
        """Raises UsageError where the submodule's commits are not there, or are no range."""
        own = self.repo / whole
        if not (own / ".git").exists():
            raise UsageError(f"this checkout is without {whole}: run `git submodule update --init {whole}`")
        if lacking := [one for one in ends if not git.is_here(own, one)]:
            how = "--unshallow" if git.is_shallow(own) else "--all"
            raise UsageError(f"{whole} has no commit {lacking[0][:SHORT]}: run `git -C {whole} fetch {how}`")
        if git.is_shallow(own) and not git.is_ancestor(own, *ends):
            raise UsageError(f"the history of {whole} is not whole: run `git -C {whole} fetch --unshallow`")
        pins = {**self.pins, self.submodule: self.shas[place]} if self.submodule else {}
        return CommitRange(self.repo, span(own, *ends), whole, self.commit or self.shas[place], pins, self.from_cards)


def between(repo: Path, good: str, bad: str, from_cards: Path | None = None) -> CommitRange:
    root = git.root(repo)
    return CommitRange(root, span(root, good, bad), from_cards=from_cards)


def span(repo: Path, good: str, bad: str) -> tuple[str, ...]:
    """The commits from `good` to `bad` along first parents. Raises UsageError where they are not on one line."""
    old, new = git.resolve(repo, good), git.resolve(repo, bad)
    good, bad = (one[:SHORT] if one in (old, new) else one for one in (good, bad))
    if old == new:
        raise UsageError(f"{good} and {bad} are the same commit, {old[:SHORT]}: there is nothing between them")
    if not git.is_ancestor(repo, old, new):
        turned = "; they are the other way round" if git.is_ancestor(repo, new, old) else ""
        raise UsageError(f"{good} is no ancestor of {bad}{turned}: name a good commit that {bad} came from")
    listed = git.first_parents(repo, old, new)
    before = git.parent(repo, listed[0])
    if before != old:
        instead = f": name {before[:SHORT]}, which is" if before else ""
        raise UsageError(f"{good} came to {bad} by a merge and is not on its line of first parents{instead}")
    return (old, *listed)


@dataclass
class BuiltCommits:
    range: CommitRange
    card: CardFacts
    """The checkout's, which says what is right and gives the inputs."""
    libraries: dict[int, Library] = field(default_factory=dict)

    @property
    def shas(self) -> tuple[str, ...]:
        return self.range.shas

    def build(self, place: int) -> str | None:
        """Compiles a commit; why it cannot be called, else None. Raises KernelgateError where the disk is full."""
        name = self.card.name
        built = self.range.build(place, HowToBuild(forgiving=True, only=(name,)))
        if DISK_FULL in (why := built.absent.get(name, "")):
            raise KernelgateError(f"{why}; free some (kernelgate cache prune), and search again")
        if name not in built.built:
            return why or f"it has no card {name}"
        library = built.built[name]
        if missing := commit.lacking(commit.own_card(library), self.card):
            return f"its call() takes {', '.join(missing)}, which the card of this checkout does not give"
        self.libraries[place] = library
        return None

    def same(self, one: int, other: int) -> bool:
        return self.libraries[one].same_as(self.libraries[other])

    def untouched(self) -> frozenset[int]:
        """The commits that touch nothing that the card is built from, as the checkout and both ends have it."""
        touching = self.range.touching(self.paths())
        where = f" of {self.range.submodule}" if self.range.submodule else ""
        name = self.card.name
        say(f"of {self.range.last} commits{where} after the good end, {len(touching)} touch what {name} is built from")
        return frozenset(range(1, len(self.shas))) - touching

    def paths(self) -> list[str]:
        """Beginnings of all paths that it is built from."""
        paths = set() if self.libraries else set(cards.paths(Cards(self.card.file.parent, (self.card,))))
        for library in self.libraries.values():
            own = commit.own_card(library) or self.card
            paths |= commit.followed_paths(library, own) or set(cards.paths(Cards(own.file.parent, (own,))))
            paths |= {file for files in library.manifest.sources.values() for file in files}
        return sorted(paths)


def _below(submodule: str, paths: Iterable[str]) -> Iterable[str]:
    """Of beginnings of paths, those that may lie in a submodule, from its root."""
    for path in paths:
        if path.startswith(f"{submodule}/"):
            yield path.removeprefix(f"{submodule}/")
        elif f"{submodule}/".startswith(path):
            yield ""


# Commits that are timed beside each other

PATIENCE_S = 120.0
"""A process that does not answer for so long is hung. A commit that hangs costs it twice: beside others, and alone."""


@dataclass(frozen=True)
class MeasuredCommits:
    timing: Timing | None
    places: tuple[int, ...]
    faults: Mapping[int, str]
    together: bool


@dataclass(kw_only=True)
class Workbench(BuiltCommits):
    """The commits of a range by place, the good end first, and one case of a card."""

    case: CaseFacts
    setup: Setup
    output: Callable[[RunRecord], None]
    made: RunRecord
    together: bool = True
    """Whether libraries share processes; once they could not, none does."""
    before: int = 0

    def build(self, place: int) -> str | None:
        if (why := super().build(place)) is None:
            builds = (*self.made.builds, build_record(self.libraries[place], self.side(place)))
            self.made = self.made.model_copy(update={"builds": builds})
        return why

    def within(self, inner: CommitRange) -> Workbench:
        return replace(self, range=inner, libraries={}, before=len(self.made.processes))

    def measure(self, places: Sequence[int], number: int) -> MeasuredCommits:
        """Times these commits beside each other. Those that fail are left out, and tried alone to know them. Raises
        KernelgateError where none of them fails alone."""
        left, faults = list(places), dict[int, str]()
        number += self.before
        while len(left) > 1:
            if self.together and (why := _clash([self.libraries[place] for place in left])):
                self._apart(why)
            try:
                done = self._timed(left, number)
            except ProcessError as error:
                found = self._at_fault(left, number)
                if not found and not self.together:
                    raise KernelgateError(error.fault) from None
                if not found:
                    self._apart(error.fault)
                faults |= found
                left = [place for place in left if place not in found]
                continue
            [measured] = done.process.timings
            notes = {note.text: note for note in (*self.made.notes, *done.notes)}
            grown = {"processes": (*self.made.processes, done.process), "notes": tuple(notes.values())}
            self.made = self.made.model_copy(update=grown)
            self.output(self.made)
            for place in left:
                if (calls := measured.calls.get(self.side(place))) and calls.failed:
                    faults[place] = f"its results are wrong in {calls.failed} of {calls.compared} calls"
            right = tuple(place for place in left if place not in faults)
            return MeasuredCommits(measured, right, faults, self.together)
        return MeasuredCommits(None, (), faults, self.together)

    def side(self, place: int) -> record.Side:
        return f"commit:{self.shas[place]}"

    def _apart(self, why: str) -> None:
        say(f"not all commits can be loaded into one process, so processes take turns, which is less precise: {why}")
        self.together = False

    def _turn(self, places: Sequence[int], number: int, id_: str, name: str, together: bool) -> Turn:
        libraries = {self.side(place): self.libraries[place] for place in places}
        return Turn(self.card, libraries, (self.case,), number, "bisect", id_, name, together)

    def _timed(self, places: Sequence[int], number: int) -> Timed:
        # Whichever process starts first may be slow for good, so it is drawn.
        rng = random.Random(f"{self.setup.how.seed}/{number}/order")  # noqa: S311 - not for secrets
        drawn = rng.sample(list(places), len(places))
        turn = self._turn(drawn, number, f"bisect-{number}", f"process {number}", self.together)
        steps = -(-self.setup.how.rounds // ROUNDS_PER_TURN)
        with progress.track(f"bisect, {turn.name}, {len(places)} commits", steps) as advance:
            return process.timed(self.setup, turn, advance)

    def _at_fault(self, places: Sequence[int], number: int) -> dict[int, str]:
        """Which commits cannot be timed even without the others, and why. None of them: they do not get on together."""
        found = dict[int, str]()
        for at, place in enumerate(places, 1):
            turn = self._turn([place], number, f"bisect-{number}-{at}", "it", together=True)
            try:
                process.timed(self.setup, turn, lambda _: None)
            except ProcessError as error:
                found[place] = error.fault.replace(self.side(place), "it")
        return found


def _clash(libraries: Sequence[Library]) -> str | None:
    pairs = combinations(libraries, 2)
    # A file that two commits have in common, whose cards differ, is loaded once.
    found = (Sides(one, other).clash for one, other in pairs if one.manifest.sha256 != other.manifest.sha256)
    return next((why for why in found if why), None)


@contextmanager
def opened(
    repo: Path,
    ends: tuple[str, str],
    case: str | None,
    how: Measuring,
    lock_clocks: bool,
    output: Callable[[RunRecord], None],
    from_cards: Path | None = None,
) -> Iterator[Workbench]:
    """The workbench for a range, while the device is held. Raises UsageError for a range or case that is none."""
    whole = between(repo, *ends, from_cards)
    machine = environment.describe()
    chosen = _case(cards.of_checkout(repo, from_cards), environment.kind(machine), case)
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


def measuring(rounds: int, seed: int | None) -> Measuring:
    return Measuring(new_seed(seed), rounds, PATIENCE_S)


def _case(judging: Cards, device: environment.DeviceKind, case: str | None) -> ChosenCase:
    """The one that is named; else the only card's first one on this device."""
    found = cards.select(judging, device, None, (case,) if case else ())
    names = dict.fromkeys(one.card.name for one in found)
    if len(names) > 1:
        raise UsageError(f"there are several cards ({', '.join(names)}): name a case with --case, as CARD/ID")
    if not found:
        raise cards.none_for(device)
    return found[0]


# `bisect --fuzz`: one fuzz trial, run again and again at commits of a range

LEARN_S = 30.0
"""For so long a trial is run again at the bad end: where it hangs, each run takes its patience."""


class NothingFailsError(KernelgateError):
    exit_code = 2


@dataclass(frozen=True)
class TrialRuns:
    runs: int
    failed: int
    fault: str | None = None
    otherwise: str | None = None
    """Why it says nothing: the trial cannot be made, or fails in another way than at the bad end."""


@dataclass(kw_only=True)
class TrialBench(BuiltCommits):
    """The commits of a range by place, the good end first, and one trial of a card."""

    trial: Trial
    device: environment.DeviceKind
    workers: WorkerPool
    kinds: set[str | None] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{self.card.name}/{self.trial.id}"

    @property
    def repeat(self) -> str:
        return fuzz.repeat(self.card, self.trial)

    def learn(self, times: int) -> TrialRuns:
        """Runs the trial at the bad end, each time, to see in which ways it fails and how often."""
        end, runs, faults = time.monotonic() + LEARN_S, 0, list[TrialOutcome]()
        with self.process(self.range.last) as process:
            while runs < times and (not runs or time.monotonic() < end):
                outcome = process.tried(self.trial)
                if why := _untried(outcome):
                    return TrialRuns(0, 0, otherwise=why)
                runs += 1
                faults += [outcome] if outcome.fault is not None else []
        self.kinds = {one.kind_of_fault for one in faults}
        return TrialRuns(runs, len(faults), faults[0].fault if faults else None)

    def tried(self, place: int, times: int) -> TrialRuns:
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
        return replace(self, range=inner, libraries={})

    def process(self, place: int) -> TrialProcess:
        return TrialProcess(self.libraries[place], self.card, self.device, self.workers)


def _untried(outcome: TrialOutcome) -> str | None:
    if outcome.inapplicable:
        return "it is called in a way that is none for this card"
    return outcome.untried and f"the card cannot make it: {outcome.untried}"


@contextmanager
def opened_trial(
    repo: Path,
    ends: tuple[str, str],
    case: str | None,
    seed: int | None,
    limit_s: float | None,
    from_cards: Path | None = None,
) -> Iterator[TrialBench]:
    """The bench for a range and the trial that is named, else the first that fails at the bad end by itself, while the
    device is held. It passes at the good end. `limit_s`: as long as each card is fuzzed on a GPU.

    Raises UsageError for a range or trial that is none, NothingFailsError where none fails, and KernelgateError where
    the bad end cannot be tried.
    """
    whole = between(repo, *ends, from_cards)
    machine = environment.describe()
    device = environment.kind(machine)
    judging = cards.of_checkout(repo, from_cards).without_mistakes()
    if not (fuzzed := {card.name: card for card in judging.cards if card.fuzz[device]}):
        raise KernelgateError(f"no card has fuzz cases for {'a GPU' if device == 'cuda' else 'a CPU'}")
    wanted = run.by_card((case,) if case else (), list(fuzzed))
    drawn = new_seed(seed)
    memory = machine.device.memory_bytes
    unbuilt: list[str] = []
    with lock.device(machine.device.uuid), worker_pool() as started:
        for name, ids in wanted.items():
            card = fuzzed[name]
            listed = fuzz_trials.select(drawn, card, device, memory, ids)
            bench = TrialBench(whole, card, trial=listed[0], device=device, workers=started)
            if ids:
                yield bench
                return
            kept = fuzz_trials.kept_failures(fuzz_trials.corpus_beside(card), card, device)
            if why := _unbuilt(bench):
                say(why)
                unbuilt.append(why)
                continue
            if found := _first_failing(bench, (*kept, *listed), limit_s if device == "cuda" else None):
                yield replace(bench, trial=found)
                return
        if len(unbuilt) == len(wanted):
            raise KernelgateError(f"{unbuilt[0]}; name another one")
        good, bad = (whole.shas[place][:SHORT] for place in (0, -1))
        raise NothingFailsError(f"no fuzz case fails at {bad} and passes at {good} (seed {drawn})")


def _unbuilt(bench: TrialBench) -> str | None:
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
