"""What `kernelgate bisect` asks of a machine: commits of a range, built, and timed beside each other."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kernelgate.bench import record, subject
from kernelgate.bench.build.library import Library, build_record
from kernelgate.bench.errors import BuildError, CannotCompileError, UsageError
from kernelgate.bench.kernel import cards, commit, compared
from kernelgate.bench.kernel.cards import Cards, ChosenCase
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.record import RunRecord, Timing
from kernelgate.bench.system import children, clocks, environment, git, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.timing import commits as timing
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.commits import CommitsPlan
from kernelgate.bench.timing.process import Measuring, Setup
from kernelgate.bench.timing.runner import ProcessError


def span(repo: Path, good: str, bad: str) -> tuple[str, ...]:
    """The commits from `good` to `bad` along first parents. Raises UsageError where they are not on one line."""
    old, new = git.resolve(repo, good), git.resolve(repo, bad)
    if old == new:
        raise UsageError(f"{good} and {bad} are the same commit, {old[:12]}: there is nothing between them")
    if not git.is_ancestor(repo, old, new):
        turned = "; they are the other way round" if git.is_ancestor(repo, new, old) else ""
        raise UsageError(f"{good} is no ancestor of {bad}{turned}: name a good commit that {bad} came from")
    listed = git.first_parents(repo, old, new)
    before = git.parent(repo, listed[0])
    if before != old:
        instead = f": name {before[:12]}, which is" if before else ""
        raise UsageError(f"{good} came to {bad} by a merge and is not on its line of first parents{instead}")
    return (old, *listed)


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


@dataclass
class Workbench:
    """The commits of a range by place, the good end first, and one case of a card."""

    repo: Path
    shas: tuple[str, ...]
    chosen: ChosenCase
    setup: Setup
    output: Callable[[RunRecord], None]
    """Given the record whenever it has grown."""
    made: RunRecord
    libraries: dict[int, Library] = field(default_factory=dict)
    together: bool = True
    """Whether libraries share processes; once they could not, none does."""

    def build(self, place: int) -> str | None:
        """Compiles a commit; why it cannot be measured, else None."""
        built = commit.build_commit(self.repo, self.shas[place], HowToBuild(forgiving=True))
        name = self.chosen.card.name
        if name not in built.built:
            return built.absent.get(name, f"it has no card {name}")
        library = built.built[name]
        if missing := compared.lacking(compared.own_card(library), self.chosen.card):
            return f"its call() takes {', '.join(missing)}, which the card of this checkout does not give"
        self.libraries[place] = library
        builds = (*self.made.builds, build_record(library, timing.side(self.shas[place])))
        self.made = self.made.model_copy(update={"builds": builds})
        return None

    def same(self, one: int, other: int) -> bool:
        """Whether nothing that is measured differs between two that are built."""
        return self.libraries[one].same_as(self.libraries[other])

    def untouched(self) -> frozenset[int]:
        """The commits that touch nothing that the card is built from, as the checkout and both ends have it."""
        paths = set(cards.paths(Cards(self.chosen.card.file.parent, (self.chosen.card,))))
        for library in self.libraries.values():
            own = compared.own_card(library)
            paths |= set(cards.paths(Cards(own.file.parent, (own,)))) if own else set()
            paths |= {file for files in library.manifest.sources.values() for file in files}
        touching = frozenset(git.first_parents(self.repo, self.shas[0], self.shas[-1], sorted(paths)))
        name = self.chosen.card.name
        say(f"of {len(self.shas) - 1} commits after the good end, {len(touching)} touch what {name} is built from")
        return frozenset(at for at in range(1, len(self.shas)) if self.shas[at] not in touching)

    def measure(self, places: Sequence[int], number: int) -> MeasuredCommits:
        """Times these commits beside each other. Those that fail are left out, and tried alone to know them.

        Raises ProcessError where none of them fails alone.
        """
        left, faults = list(places), dict[int, str]()
        while len(left) > 1:
            sides = {timing.side(self.shas[place]): place for place in left}
            plan = CommitsPlan(
                self.chosen.card, self.chosen.case, {side: self.libraries[at] for side, at in sides.items()}
            )
            if self.together and (why := timing.clash(list(plan.libraries.values()))):
                self._apart(why)
            try:
                done = timing.timed(self.setup, plan, number, self.together)
            except ProcessError as error:
                found = {sides[side]: why for side, why in timing.at_fault(self.setup, plan, number).items()}
                if not found and not self.together:
                    raise
                if not found:
                    self._apart(str(error))
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
    root = git.root(repo)
    shas = span(root, *ends)
    machine = environment.describe()
    chosen = _case(cards.of_checkout(repo), environment.kind(machine), case)
    say(f"seed {how.seed}")
    made = RunRecord(
        run=record.Run(id=secrets.token_hex(8), producer=subject.PRODUCER, base_sha=shas[0], head_sha=shas[-1]),
        environments=(machine,),
        cards=(chosen.card.recorded,),
        cases=(chosen.recorded,),
    )
    uuid, on_gpu = machine.device.uuid, environment.kind(machine) == "cuda"
    with lock.device(uuid), clocks.locked(uuid, lock_clocks and on_gpu), children.opened() as started:
        yield Workbench(root, shas, chosen, Setup(machine, how, started), output, made)


def measuring(rounds: int, seed: int | None, pause_when_capped: bool) -> Measuring:
    drawn = secrets.randbelow(2**31) if seed is None else seed
    return Measuring(drawn, rounds, paired.PATIENCE_S, pause_when_capped, single=True)


def subjects(repo: Path, shas: Sequence[str]) -> dict[str, str]:
    """The first line of each commit's message."""
    return {sha: git.subject(git.root(repo), sha) for sha in shas}


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
    """The last commit that compiles, and the next one, which does not."""

    last: str
    broken: str
    subject: str
    why: str


def last_that_compiles(repo: Path, ends: tuple[str, str]) -> LastBuilt:
    """By halves. Raises UsageError where the good end does not compile, or the bad one does."""
    root = git.root(repo)
    shas = span(root, *ends)
    faults: dict[int, str] = {}

    def compiles(place: int) -> bool:
        say(f"building {shas[place][:12]}")
        try:
            commit.build_commit(root, shas[place])
        except CannotCompileError:
            raise  # it says nothing about the commit
        except BuildError as error:
            faults[place] = str(error)
        return place not in faults

    good, bad = 0, len(shas) - 1
    if not compiles(good):
        raise UsageError(f"{shas[good][:12]}, the good end, does not compile either: {faults[good]}")
    if compiles(bad):
        raise UsageError(f"{shas[bad][:12]}, the bad end, compiles: there is nothing to find")
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if compiles(middle) else (good, middle)
    return LastBuilt(shas[good], shas[bad], git.subject(root, shas[bad]), faults[bad])
