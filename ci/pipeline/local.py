"""`kernelgate pr` and `try`: build base and head, fuzz, time, judge, and write the comment, all on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Libraries, imports
from kernelgate.bench.check import accuracy, sanitize, trial_process
from kernelgate.bench.check.fuzz import FuzzLimits
from kernelgate.bench.check.sanitize import SanitizerOptions
from kernelgate.bench.core import errors, files
from kernelgate.bench.core.errors import CannotCompileError, CardError, CompileError, KernelgateError, NoKernelError
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.cards import Cards, ChosenCase
from kernelgate.bench.kernel.commit import Compared, HowToBuild
from kernelgate.bench.kernel.watched_call import WarmProcesses
from kernelgate.bench.measure import run as verbs
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system import environment, git, interpreter, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import side_by_side
from kernelgate.bench.system.worker import WorkerPool, worker_pool
from kernelgate.bench.timing import paired, process
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge.cards import CARD_GONE, NO_CASES
from kernelgate.ci.judge.case import RecordVerdict, Status
from kernelgate.ci.judge.gate import Decision, Fault
from kernelgate.ci.judge.prior import Past
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.pipeline import prior
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report.build import of_part
from kernelgate.ci.report.gpu import Baseline, Failure, GpuReport, of_failure, of_record
from kernelgate.ci.report.links import TRY
from kernelgate.ci.report.page import write as write_page

RECORD = "run.json"
COMMENT = "comment.md"
PAGE = "page.html"
SMALL_END = "small_end"
SLOWER_SMALL = "is slower: its launch or prologue, which is most of so small a case; no other case was timed"
GONE = "the base has a card {}, and the head has not, or not under this name: nothing of it was measured"


@dataclass(frozen=True)
class MeasuringRules:
    policy: Policy
    past: Past
    cases: tuple[str, ...] = ()
    """To time, and of which the first of each card is profiled; none: as the device has it, and each card's target."""
    fuzz_s: float | None = None
    """For each card's trials, on any device; None: as the policy has it for a GPU."""
    counters: Literal["quick", "full"] = "quick"
    """Full profiles hold NVIDIA's rules."""
    witness: bool = True
    """Whether both sides are also timed alone, so that a head cannot deceive its judge."""
    smallest_first: bool = False
    """Whether a head that is slower by the gate in the first card's smallest case, timed alone, is timed no further."""


@dataclass(frozen=True)
class Compare:
    """Two states of the repository that `repo` lies in."""

    repo: Path
    base: str | None = None
    """None: the commit where the branch left the default branch."""
    head: str | None = None
    """None: the working tree."""
    cards: Path | None = None
    """A folder of cards that stand in place of both commits' own, and judge."""
    head_python: Path | None = None
    """Which Python the head is built for and runs in, where it is another than the base's."""
    cases: tuple[str, ...] = ()
    """To time, written as `kernelgate cards` lists them; none: as the device has it."""


@dataclass(frozen=True)
class LocalResult:
    report: Report
    decision: Decision
    """Of the gate, which does not know the pull request's description here."""
    verdict: RecordVerdict | None = None
    """None where the head does not compile."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What is to be left in the output folder, by name."""

    @property
    def exit_code(self) -> int:
        """As `kernelgate compare` has it, of a change that is also built."""
        return 1 if self.verdict is None else exit_code(self.verdict, self.decision.conclusion)


def run(asked: Compare, out: Path, policy: Policy) -> LocalResult:
    """Does everything that a pull request gets, for whose record, comment and page there is room in `out`; the record
    grows there. Raises KernelgateError where nothing can be found out about the change."""
    for name in (RECORD, COMMENT, PAGE):
        files.try_file(out / name)
    repo = git.root(asked.repo)
    sha = git.resolve(repo, asked.base) if asked.base else git.default_base(repo)
    if asked == Compare(asked.repo) and (past := last_change(repo, sha)):
        asked, sha = past, past.base or sha
    head = asked.head and git.resolve(repo, asked.head)
    rules = MeasuringRules(policy, prior.past(say), asked.cases)
    called = verbs.called(TRY if asked.head else None, asked.cards, asked.head_python)
    say("1/3 build")
    with worker_pool() as processes:
        # They load torch while libraries are compiled.
        processes.prepare({trial_process.WORKER: 1, environment.DESCRIBES: 1})
        only, same = ANY if asked.head_python else affected(repo, sha, head, asked.cards)
        try:
            heads, bases = _built(repo, sha, head, HowToBuild(cards=asked.cards, only=only), asked.head_python)
        except (CompileError, CardError) as error:
            failure = Failure(Fault.BUILD, str(error))
            if isinstance(error, CompileError):
                failure = Failure(Fault.BUILD, error.first, error.target, error.excerpt)
            elif asked.cards:  # it is no part of the change
                raise errors.UsageError(str(error)) from None
            with suppress(OSError):
                (out / RECORD).unlink()  # of an earlier run, which the comment is not about
            return _decided(of_failure("", failure, record.Run(base_sha=sha, head_sha=head, **called)), policy)
        except NoKernelError:
            with _judging(None, repo, sha) as before:
                if asked.cards or not before.names:
                    raise
            text = f"the base has {', '.join(before.names)} in {cards.FOLDER}, the head no card"
            raise NoKernelError(f"{text}: without one nothing is measured") from None
        with _judging(asked.cards, repo, sha) as judging:
            about = commit.judged(judging, verbs.against(heads, bases), None if asked.cards else "default branch")
            about = verbs.repeatable(about, head and head[:12], asked.cards)
            done = measured(about, processes, out / RECORD, rules, same)
    here = {*heads.built, *(one.card for one in same)}
    left = () if asked.cards else (name for name in judging.names if name not in here)
    gone = (record.Note(code=CARD_GONE, card=name, text=GONE.format(name)) for name in left)
    identity = done.run.model_copy(update=called)
    done = done.model_copy(update={"run": identity, "notes": (*done.notes, *gone)})
    known = rules.past(done)
    verdict = judge(done, policy, name=str(out / RECORD), history=known)
    against: Baseline | None = None
    since: tuple[Baseline, ...] = ()
    if stored := stored_baseline(repo / ".ci", done):
        name, baseline = stored
        against = baselines.against(done, baseline, name, policy, known)
        since = baselines.yardsticks_beside(done, repo / ".ci" / name, policy, known)
    found = _decided(of_record("", done, verdict, policy, against, since), policy)
    return replace(found, verdict=verdict, files={RECORD: record.to_json(done), **found.files})


def _built(
    repo: Path, base: str, head: str | None, how: HowToBuild, head_python: Path | None
) -> tuple[Libraries, Libraries]:
    """The libraries of head and base. Raises CompileError and CardError of the head alone: where the base fails by the
    same error, it is CannotCompileError, for the change is not to blame."""

    def of_head() -> Libraries | CompileError:
        try:
            with interpreter.using(head_python):
                return verbs.libraries(repo, head, None, how)
        except CompileError as error:
            return error

    heads, bases = side_by_side([of_head, lambda: verbs.libraries(repo, base, None, replace(how, forgiving=True))], 2)
    if isinstance(bases, CompileError):  # which a forgiving build keeps to itself
        raise bases
    if not isinstance(heads, CompileError):
        return heads, bases
    if any(heads.first in why for why in bases.absent.values()):
        raise CannotCompileError(f"neither base nor head compiles here, so nothing is compared: {heads.first}")
    raise heads


def last_change(repo: Path, base: str) -> Compare | None:
    """Where the working tree has no change of a kernel: the last commit that had one, against its parent, by the cards
    of today. None where there is none, or where it began the history."""
    builds = [card.build for card in cards.of_checkout(repo).cards]
    sources = [pattern for one in builds for pattern in (one.places if one.kind == "package" else one.sources)]
    if git.resolve(repo, "HEAD") != base or not sources or git.is_changed(repo, [*sources, cards.FOLDER]):
        return None
    sha = git.last_change(repo, sources)
    before = sha and git.parent(repo, sha)
    if not sha or not before:
        return None
    last = f"the last commit that changed one, {sha[:9]} ({git.subject(repo, sha)}), is compared with its parent"
    say(f"no kernel differs from the base: {last}")
    return Compare(repo, before, sha, repo / cards.FOLDER)


Affected = tuple[frozenset[str] | None, tuple[record.Build, ...]]
"""Cards whose libraries a change can have changed, None where that is not known; what the record says of the others."""
ANY: Affected = None, ()


def affected(repo: Path, base: str, head: str | None, from_cards: Path | None) -> Affected:
    """Found by what the cards' libraries are made from, so that nothing is compiled that is then not measured. One card
    is left where none is affected, for a record is about one."""
    try:
        after = commit.fingerprints(repo, head, from_cards)
        if len(after) < 2:
            return ANY
        before = commit.fingerprints(repo, base, from_cards)
    except KernelgateError:  # the build says it in full
        return ANY
    absent = {name for name, one in after.items() if from_cards and not one and not before.get(name)}
    same = sorted(name for name, one in after.items() if one and before.get(name) == one)
    names = after.keys() - absent - {*same}
    if not names and not same:
        return ANY
    if absent:
        say(f"left out, for neither commit has its sources: {', '.join(sorted(absent))}")
    if not names:
        names, same = {same[0]}, same[1:]
    elif same:
        say(f"not affected by the change: {', '.join(same)}")
    sides: tuple[tuple[record.Side, str | None], ...] = (("base", base), ("head", head))
    made = (
        record.Build(card=name, side=side, sha=sha, key=after[name], call_hash=after[name])
        for name in same
        for side, sha in sides
    )
    return frozenset(names), tuple(made)


@contextmanager
def _judging(folder: Path | None, repo: Path, base: str) -> Iterator[Cards]:
    """The cards of the folder, else those of the base that can be used."""
    if folder:
        yield cards.read(folder)
        return
    with git.worktree(repo, base, (cards.FOLDER,)) as tree:
        yield replace(cards.read(tree / cards.FOLDER), mistakes=())


def measured(
    about: Sequence[Compared],
    workers: WorkerPool,
    path: Path,
    rules: MeasuringRules,
    unaffected: tuple[record.Build, ...] = (),
) -> RunRecord:
    """The record of these cards, kept at `path` while it grows. A head with wrong results is not timed. `unaffected`:
    the builds of cards that the change does not touch."""
    if differing := [one for one in about if not one.same]:
        ahead = imports(differing[0].sides.named)
        workers.prepare({trial_process.WORKER: 2 if ahead else 1}, ahead)  # the base's is needed where the head fails
    machine = environment.describe(workers)
    begun = verbs.begun(about, machine)
    begun = begun.model_copy(update={"builds": (*begun.builds, *unaffected)})
    touched = [one for one in about if not one.is_one(machine)]
    every = commit.select_cases(differing, environment.kind(machine), None, rules.cases)
    begun, alike = verbs.with_same_code(begun, about, every)
    if not touched:
        say("base and head are the same libraries: nothing is measured")
        return begun
    chosen = [one for one in every if one not in alike]
    firsts = {one.card.name: one for one in reversed(chosen)}.values()
    targets = [(one, ChosenCase(one.card, one.card.target)) for one in firsts]
    profiled = [one if rules.cases or target in alike else target for one, target in targets]
    sides = {one.card.name: one.sides for one in touched}
    if chosen:  # what times and what profiles loads torch, and what the sides import, while the head is fuzzed
        workers.prepare({process.VERIFIER: 1})
        workers.prepare({process.WORKER: 1, accuracy.WORKER: 1}, imports(sides[chosen[0].card.name].named))
    out, counters = path.parent / "profile", rules.counters
    with ExitStack() as stack:
        profiler = stack.enter_context(nsight.profiling(sides, profiled, out, counters, machine.device.uuid))
        tools: Mapping[str, WarmProcesses] = {}
        if _sanitizes(chosen, machine, rules.policy):
            first = chosen[0].card
            tools = stack.enter_context(sanitize.started(first, sides[first.name].head, rules.policy.sanitizer.tools))
        stack.enter_context(lock.device(machine.device.uuid))  # through all phases
        say(f"2/3 fuzz, on {machine.device.name}")
        seed = verbs.new_seed()
        begun = checked(touched, chosen, begun, workers, rules, tools, seed)
        if begun.fuzz is not None and begun.fuzz.status == "failed":
            say("wrong results: speed is not measured")
            return begun
        if broken := {one.card: one.reason for one in begun.checks if (one.unjudged or 0) > len(one.results)}:
            chosen = [one for one in chosen if one.card.name not in broken]
            if not chosen:
                card, why = next(iter(broken.items()))
                raise KernelgateError(f"no kernel is judged: {card}: {why}")
        if not chosen and begun.cases:
            say("the machine code of every case is the same on both sides: speed is not measured")
            return begun
        if not chosen:
            cpu = environment.kind(machine) == "cpu"
            archs = sorted({target for one in touched for target in one.sides.head.manifest.targets})
            compiled = f"compiled for {', '.join(archs)}, and not run: " if archs else "not run: "
            text = f"{compiled}no card has cases for {'a machine without a GPU' if cpu else 'a GPU'}"
            say(text)
            return begun.model_copy(update={"notes": (*begun.notes, record.Note(code=NO_CASES, text=text))})
        say("3/3 bench")
        fuzzed = begun.fuzz is not None and (begun.fuzz.status != "skipped" or bool(begun.fuzz.asked))
        possible = {"witness": rules.witness, "fuzz": fuzzed, "sanitizer": environment.kind(machine) == "cuda"}
        checks = tuple(kind for kind in rules.policy.checks if possible.get(kind))
        # What the head's own card asks for is no plan that it could be held to.
        own = {one.card.name for one in touched if one.source == "head"}
        if planned := [one for one in chosen if one.card.name not in own]:
            expected = cards.expected(planned, rules.policy.processes.minimum, checks=checks)
            whole = expected.model_copy(update={"cases": (*expected.cases, *begun.cases)})
            begun = begun.model_copy(update={"expected": whole})
        how = process.Measuring(seed, **rules.policy.timing.model_dump())
        parts, most = commit.card_plans(touched, chosen), rules.policy.processes.limit
        plan = paired.PairedPlan(parts, machine, how, most, witness=rules.witness)

        def open_cases(record: RunRecord) -> frozenset[CaseKey]:
            return undecided(record, rules.policy, rules.past(record))

        small = cards.smallest(chosen[0].card, environment.kind(machine))
        if rules.smallest_first and [small] != chosen:
            few, alone = rules.policy.processes.to_block, begun.model_copy(update={"expected": None})
            ahead_of_all = replace(plan, parts=commit.card_plans(touched, [small]), processes=few)
            timed = paired.run(ahead_of_all, alone, path, open_cases, workers=workers)
            begun = begun.model_copy(update={"costs": timed.costs})
            if any(one.status is Status.REGRESSED for one in judge(timed, rules.policy).cases):
                note = record.Note(code=SMALL_END, text=f"{small.case.id} {SLOWER_SMALL}")
                return timed.model_copy(update={"notes": (*timed.notes, note)})
        timed = paired.run(plan, begun, path, open_cases, workers=workers)
        if profiler is not None:
            nsight.load(profiler)
        timed = verbs.with_accuracy(timed, touched, chosen, seed, workers)
        return nsight.with_profiles(timed, sides, profiler) if timed.processes else timed


def checked(
    touched: Sequence[Compared],
    chosen: Sequence[ChosenCase],
    begun: RunRecord,
    workers: WorkerPool,
    rules: MeasuringRules,
    tools: Mapping[str, WarmProcesses],
    seed: int,
) -> RunRecord:
    """With what fuzzing finds, and beside it compute-sanitizer, in as much time as a pull request has: neither is
    timed. `tools`: as in `sanitize`."""
    policy, machine, took = rules.policy, begun.environment, lock.stopwatch()
    asked = verbs.FuzzOptions(seed, limits=FuzzLimits(rules.fuzz_s, policy.fuzz.gpu_limit_s))
    options = SanitizerOptions(policy.sanitizer.tools, policy.sanitizer.seconds)
    # Each with when it was done.
    calls = [lambda: (verbs.fuzz_all(touched, asked, machine, workers), took())]
    if _sanitizes(chosen, machine, policy):
        calls.append(lambda: (verbs.sanitize(touched, options, machine, started=tools), took()))
    (fuzzed, fuzz_s), *beside = side_by_side(calls, len(calls))
    costs = record.with_costs((), fuzz=fuzz_s)
    for _, done_s in beside:  # what the device was held for beyond the fuzzing
        costs = record.with_costs(costs, sanitize=done_s - fuzz_s)
    checks = (*fuzzed, *(check for found, _ in beside for check in found))
    return begun.model_copy(update={"checks": checks, "costs": costs})


def _sanitizes(chosen: Sequence[ChosenCase], machine: record.Environment, policy: Policy) -> bool:
    return bool(chosen) and environment.kind(machine) == "cuda" and "sanitizer" in policy.checks


def stored_baseline(folder: Path, measured: RunRecord) -> tuple[str, RunRecord] | None:
    """The stored baseline with a case of this record, and its name: of this kind of device, or else of another, which
    is then said; None where there is none."""
    device = measured.environment.device.name
    found = []
    for path in sorted(folder.glob("baseline_*.json")) if device else ():
        try:
            baseline = record.read(path)
        except errors.RecordError as error:
            say(f"left out: {error}")
        else:
            found += [(path.name, baseline)] if baselines.is_of(baseline, measured) else []
    return min(found, key=lambda one: one[1].environment.device.name != device, default=None)


def _decided(part: GpuReport, policy: Policy) -> LocalResult:
    made = of_part(part, policy)
    files = {COMMENT: render.comment(made.report), PAGE: write_page(made, policy.gates)}
    return LocalResult(made.report, made.decision, files=files)
