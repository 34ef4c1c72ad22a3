"""The commands that measure, from the words of a call to a record or to its checks."""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from kernelgate.bench import record
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build import library as built
from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Libraries, Library, Sides
from kernelgate.bench.check import accuracy
from kernelgate.bench.check import fuzz as fuzzing
from kernelgate.bench.check import sanitize as sanitizing
from kernelgate.bench.check.fuzz import NO_LIMITS, FuzzLimits, Soak
from kernelgate.bench.check.sanitize import SanitizerOptions
from kernelgate.bench.check.trial_process import WORKER
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, NoKernelError, PreemptedError, UsageError
from kernelgate.bench.explain import tile
from kernelgate.bench.explain.tile import BlockNeeds
from kernelgate.bench.kernel import cards, commit, fuzz_trials
from kernelgate.bench.kernel.cards import Cards, ChosenCase
from kernelgate.bench.kernel.commit import Compared, HowToBuild
from kernelgate.bench.kernel.watched_call import WarmProcesses
from kernelgate.bench.record import RunRecord, rates
from kernelgate.bench.system import environment, git, interpreter, lock
from kernelgate.bench.system.beside import version as version_of
from kernelgate.bench.system.preemption import Notice
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import side_by_side
from kernelgate.bench.system.worker import WorkerPool, worker_pool
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.process import Measuring

LOG_COLUMNS = 120
"""Of a log, which has no width of its own."""


def new_seed(asked: int | None = None) -> int:
    return secrets.randbelow(2**31) if asked is None else asked


def libraries(repo: Path, ref: str | None, folder: Path | None, how: HowToBuild | None = None) -> Libraries:
    """Those in `folder`, or compiled from the commit `ref`, or from the working tree where neither is named."""
    _one_of(ref, folder)
    if folder is not None:
        return built.read_all(folder)
    return commit.build_tree(git.root(repo), how) if ref is None else commit.build_commit(repo, ref, how)


Named = tuple[str | None, Path | None]
"""A commit, or a folder of compiled libraries."""


def sides(repo: Path, base: Named, head: Named, alone: bool, from_cards: Path | None = None) -> dict[str, Sides]:
    """`from_cards`: a folder of cards that stand in place of both commits' own."""
    (ref, base_folder), (_, head_folder) = base, head
    named = ref is not None or base_folder is not None
    if alone and named:
        raise UsageError("--alone times the head without a base: leave out --base and --base-library")
    if head_folder is not None and not alone and not named:
        raise UsageError("--head-library also needs --base-library, --base or --alone")
    _one_of(*head)
    _one_of(*base)

    def of_head() -> Libraries:
        return libraries(repo, *head, HowToBuild(cards=from_cards))

    if alone:
        return {name: Sides(None, library) for name, library in of_head().built.items()}
    ref = ref if named else git.default_base(repo)
    heads, beside = side_by_side([of_head, lambda: bases(repo, ref, base_folder, from_cards)], 2)
    return against(heads, beside)


def bases(repo: Path, ref: str | None, folder: Path | None = None, from_cards: Path | None = None) -> Libraries:
    return libraries(repo, ref, folder, HowToBuild(forgiving=True, cards=from_cards))


def against(heads: Libraries, bases: Libraries) -> dict[str, Sides]:
    """Both libraries of each card of the head; alone, with the reason, where the base lacks the card or does not
    compile."""
    made = {name: Sides(bases.built.get(name), library) for name, library in heads.built.items()}
    for name in made.keys() - bases.built.keys():
        made[name] = replace(made[name], why_alone=bases.absent.get(name, f"the base commit has no card {name}"))
    return made


def beside(sides: Mapping[str, Sides], pinned: Libraries) -> dict[str, Sides]:
    """Each card's head beside the pinned commit's library of it, in the same processes. Where the pinned commit lacks
    the card, or cannot share a process with it, the head is alone, and says why. Raises UsageError for a library that
    is of no commit."""
    unknown = next((one for one in pinned.built.values() if one.manifest.sha is None), None)
    if unknown is not None:
        raise UsageError(f"{unknown.folder} does not say of which commit it is, so it cannot be the pinned one")
    made = dict[str, Sides]()
    for name, alone in sides.items():
        library = pinned.built.get(name)
        absent = pinned.absent.get(name, f"the pinned commit has no card {name}")
        why = Sides(library, alone.head).clash if library else absent
        made[name] = replace(alone, why_alone=why) if why else replace(alone, pinned=library)
    return made


def _one_of(ref: str | None, folder: Path | None) -> None:
    if ref is not None and folder is not None:
        raise UsageError(f"name either a commit ({ref}) or compiled libraries ({folder}), not both")


def with_checks(old: Sequence[record.Check], new: Sequence[record.Check]) -> tuple[record.Check, ...]:
    """The checks of a record, in which the new ones take the place of those of their kind and card."""
    made = {(check.kind, check.card) for check in new}
    return (*(check for check in old if (check.kind, check.card) not in made), *new)


@dataclass(frozen=True)
class TimingOptions:
    """What a call asks for; None leaves a thing to kernelgate."""

    processes: int
    suite: str | None = None
    case_ids: tuple[str, ...] = ()
    rounds: int = Measuring.rounds
    seed: int | None = None
    least: int = 1
    """Processes that each case must be timed in, for the record to be whole."""
    gpu: str | None = None
    """The label in the policy of the GPU that is measured, …"""
    target: str | None = None
    """… and the compute capability that it has."""
    plan_hash: str | None = None
    """Of what the default branch plans for that GPU, whatever is asked for here."""
    same: bool = False
    lock_clocks: bool = False
    resume: bool = False
    shard: record.Shard | None = None
    """Which part of the cases; None is all of them."""
    seconds: Mapping[record.CaseKey, float] = field(default_factory=dict)
    """What cases are known to take: by that they are dealt out to shards."""
    called: Mapping[str, Any] = field(default_factory=dict)
    """As `called` has it."""


def called(event: str | None, from_cards: Path | None, head_python: Path | None = None) -> dict[str, Any]:
    """How a record is made, for its `run`, so that commands to repeat it are whole."""
    made: dict[str, Any] = {"event": event} if event else {}
    if from_cards:
        made["cards"] = str(from_cards.absolute())
    if head_python or interpreter.is_named():
        made["pythons"] = tuple(str(one) for one in (interpreter.current(), head_python) if one)
    return made


def check_cases(known: Cards, suite: str | None, case_ids: tuple[str, ...]) -> None:
    """Raises UsageError for a case or suite that does not exist: before anything is compiled or started."""
    if known.cards:
        cards.select(known, "cuda", suite, case_ids)


def bench(
    about: Sequence[Compared],
    asked: TimingOptions,
    output: Path,
    undecided: paired.Undecided = paired.all_cases,
    fuzzed: Path | None = None,
    workers: WorkerPool | None = None,
    notice: Notice | None = None,
) -> record.RunRecord:
    """Times both sides into a run record at `output`, shows its times and rates, and measures both sides' accuracy.

    `undecided`: given the record after a process, the cases to time again. `fuzzed`: a record of the same head whose
    fuzz results go into this one; it may be the file at `output`. `workers`: processes that were started before.
    Raises UsageError where that record is of another head, and where there is no case for this machine; PreemptedError
    after a `notice`, with all that was finished at `output`.
    """
    notice = notice or Notice()
    machine = environment.describe(workers)
    skeleton = begun(about, machine)
    done, costs = fuzz_results(fuzzed, skeleton.run) if fuzzed else ((), ())
    every = commit.select_cases(about, environment.kind(machine), asked.suite, asked.case_ids)
    mine = of_shard(every, asked.shard, asked.seconds)
    left_out = () if asked.same else [one.card.name for one in about if one.same]
    differing = tuple(one for one in mine if one.card.name not in left_out)
    skeleton, alike = (skeleton, ()) if asked.same else with_same_code(skeleton, about, differing)
    chosen = tuple(one for one in differing if one not in alike)
    seed = new_seed(asked.seed)
    plan = paired.PairedPlan(
        parts=commit.card_plans(about, chosen),
        environment=machine,
        how=Measuring(seed, asked.rounds, lock_clocks=asked.lock_clocks),
        processes=asked.processes,
    )
    checks: tuple[record.CheckKind, ...] = ("fuzz", "witness") if done else ("witness",)
    planned = cards.expected(every, min(asked.least, asked.processes), asked.gpu, asked.target, checks)
    planned = planned.model_copy(update={"cards": tuple(one.recorded for one in about)})
    planned_as = {"gpu": asked.gpu, "plan_hash": asked.plan_hash, "shard": asked.shard, **asked.called}
    run = skeleton.run.model_copy(update=planned_as)
    skeleton = skeleton.model_copy(update={"run": run, "expected": planned, "checks": done, "costs": costs})
    if not plan.parts:
        if not every:
            raise cards.none_for(environment.kind(machine))
        of = "machine code" if alike else "library"
        if mine:
            say(f"base and head are the same {of}: nothing is measured; --same measures it all the same")
        else:
            say(f"shard {asked.shard} has none of the {len(every)} cases: nothing is measured")
        whole = skeleton.model_copy(update={"run": skeleton.run.model_copy(update={"ended": "complete"})})
        record.write(whole, output)
        return whole
    timed_record: record.RunRecord | None = None
    try:
        with lock.device(machine.device.uuid):
            timed_record = paired.run(plan, skeleton, output, undecided, asked.resume, workers, notice)
            screen = Console(stderr=True)
            with suppress(OSError):  # as say has it
                (screen if screen.is_terminal else Console(stderr=True, width=LOG_COLUMNS)).print(
                    percentiles(timed_record)
                )
            notice.heed()
            timed_record = with_accuracy(timed_record, about, chosen, seed, workers)
        record.write(timed_record, output)
    except BaseException:
        if not notice.given:
            raise
        if timed_record is not None:  # all but the accuracy; else the record already says how it ended
            run = timed_record.run.model_copy(update={"ended": "preempted"})
            record.write(timed_record.model_copy(update={"run": run}), output)
        kept = len(record.read(output).processes) if output.exists() else 0
        said = f"preempted with {kept} processes in {output}: the same command with --resume goes on"
        raise PreemptedError(said) from None
    return timed_record


def of_shard(
    every: tuple[ChosenCase, ...], shard: record.Shard | None, seconds: Mapping[record.CaseKey, float]
) -> tuple[ChosenCase, ...]:
    """Whatever the libraries are, so that all shards deal out the same cases."""
    if shard is None:
        return every
    mine = record.assigned([one.recorded.key for one in every], seconds, shard.of)[shard.number - 1]
    return tuple(one for one in every if one.recorded.key in mine)


def with_accuracy(
    made: record.RunRecord,
    about: Sequence[Compared],
    chosen: Sequence[ChosenCase],
    seed: int,
    workers: WorkerPool | None = None,
) -> record.RunRecord:
    if not (parts := accuracy.comparable(about, chosen)):
        return made
    took = lock.stopwatch()
    checks = with_checks(made.checks, accuracy.run(parts, seed, made.environment, workers))
    return made.model_copy(update={"checks": checks, "costs": record.with_costs(made.costs, accuracy=took())})


def accuracy_alone(
    about: Sequence[Compared], suite: str | None, case_ids: tuple[str, ...], seed: int | None
) -> record.RunRecord:
    """A record of accuracy and nothing else. Raises UsageError where there is no case for this machine, and where no
    card has two libraries."""
    machine = environment.describe()
    chosen = commit.select_cases(about, environment.kind(machine), suite, case_ids)
    if not accuracy.comparable(about, chosen):
        raise UsageError("no accuracy to compare: it takes a card with cases for this machine and two libraries")
    made = begun(about, machine).model_copy(update={"cases": tuple(one.recorded for one in chosen)})
    return with_accuracy(made, about, chosen, new_seed(seed))


def with_same_code(
    skeleton: record.RunRecord, about: Sequence[Compared], cases: Sequence[ChosenCase]
) -> tuple[record.RunRecord, tuple[ChosenCase, ...]]:
    """The record with the cases that need not be run, since base and head are the same machine code and what the host
    runs is the same, too, and what is to be known of them; and these cases."""
    left_out, notes = list[ChosenCase](), [*skeleton.notes]
    for one in about:
        if one.same or one.sides.base is None or one.sides.base.python != one.sides.head.python:
            continue
        base, head = built.build_records(one.sides, skeleton.environment.device)[:2]
        own = [case for case in cases if case.card.name == one.card.name]
        alike = [case for case in own if head.same_code(base, case.case.id)]
        words = ", ".join(case.case.id for case in alike) if len(alike) < len(own) else "every case"
        if not alike:
            continue
        code, text = "host_changed", f"same machine code, host changed, so measured: {words}"
        if all(head.same_call(base, case.case.id) for case in alike):
            left_out += alike
            code, text = "same_machine_code", f"same machine code on both sides, not run: {words}"
        notes.append(record.Note(code=code, card=one.card.name, text=text))
        say(f"{one.card.name}: {text}")
    recorded = tuple(one.recorded for one in left_out)
    return skeleton.model_copy(update={"cases": recorded, "notes": tuple(notes)}), tuple(left_out)


def begun(about: Sequence[Compared], machine: record.Environment) -> record.RunRecord:
    """A record of nothing yet: cards, builds, and what a reader must know of them."""
    notes = [note for one in about for note in one.notes]
    for name in (one.card.name for one in about if one.same):
        notes.append(record.Note(code="same_library", card=name, text=f"base and head of {name} are the same library"))
    base = next((one.sides.base for one in about if one.sides.base), None)
    return record.RunRecord(
        run=run_identity(base, about[0].sides.head),
        environments=(machine, *_other_pythons(about)),
        cards=tuple(one.recorded for one in about),
        builds=tuple(build for one in about for build in built.build_records(one.sides, machine.device)),
        notes=tuple(notes),
    )


def _other_pythons(about: Sequence[Compared]) -> list[record.Environment]:
    """What is installed for the sides that run in another Python than the one that judges."""
    pythons = {library.python for one in about for library in one.sides.named.values()} - {interpreter.current()}
    found = []
    for number, python in enumerate(sorted(pythons), start=1):
        with interpreter.using(python):
            found.append(environment.describe().model_copy(update={"id": str(number)}))
    return found


def block_needs(repo: Path, card: str | None, words: str, stages: int, warps: int) -> BlockNeeds:
    """What a card's tile, or so many bytes of shared memory, ask of a multiprocessor. Raises UsageError."""
    if plain := tile.plain(words, warps):
        return plain
    rows, columns = tile.sizes(words)
    asked = {"rows": rows, "columns": columns, "stages": stages, "warps": warps}
    known = cards.of_checkout(repo, tiles=[asked]).without_mistakes()
    if len(known.cards) > 1 and card is None:
        raise UsageError(f"there are several cards: name one with --card: {', '.join(known.names)}")
    if not known.cards or (card is not None and card not in known.names):
        raise UsageError(f"--tile {words}: there is no card {card or ''}; there are {', '.join(known.names) or 'none'}")
    [said] = known[card or known.names[0]].tiles
    if not isinstance(said, dict):
        raise UsageError(f"--tile {words}: {said}")
    return BlockNeeds(f"{words}, {stages} stages", said["shared_bytes"], said["threads"], said["registers"])


def builds(sides: Mapping[str, Sides]) -> tuple[record.Build, ...]:
    """All libraries with what the compiler made of their kernels. Raises KernelgateError where that is not known."""
    missing = (one.split(": ", 1) for both in sides.values() for one in built.facts_missing(both))
    if message := "; ".join(f"the registers and instructions of {side} are unknown: {why}" for side, why in missing):
        raise KernelgateError(message)
    return tuple(build for both in sides.values() for build in built.build_records(both))


def with_builds(old: Sequence[record.Build], new: Sequence[record.Build]) -> tuple[record.Build, ...]:
    """The builds of a record with the kernels of `new`; a side that has no build yet gets the new one. Raises
    UsageError where the record is about another library of the same side."""
    only = {one.card for one in new}
    nameless = next(iter(only)) if len(only) == 1 else ""  # a record may name none
    known = {(one.card or nameless, one.side): one for one in old}
    for one in new:
        before = known.get((one.card, one.side), one)
        if before.library_sha256 not in (None, one.library_sha256):
            raise UsageError(f"the record was measured with another library of the {one.side} than the one given")
        known[one.card, one.side] = before.model_copy(update={"kernels": one.kernels})
    return tuple(known.values())


def check_record(path: Path | None) -> None:
    """Raises KernelgateError where a record could not be added to, before something is done that takes long."""
    if path is not None and path.exists():
        record.read(path)


def added(
    path: Path | None, sides: Mapping[str, Sides], parts: Callable[[record.RunRecord], dict[str, object]]
) -> dict[Path, str]:
    """The record at `path` with these parts, as it is to be written; nothing where no record is asked for."""
    if path is None:
        return {}
    if path.exists():
        old = record.read(path)
    else:
        first = next(iter(sides.values()))
        old = record.RunRecord(run=run_identity(first.base, first.head), environments=(environment.describe(),))
    return {path: record.to_json(old.model_copy(update=parts(old)))}


def fuzz_results(path: Path, about: record.Run) -> tuple[tuple[record.Check, ...], tuple[record.Cost, ...]]:
    fuzzed = record.read(path)
    if fuzzed.run.head_sha != about.head_sha:
        raise UsageError(f"{path} is about commit {fuzzed.run.head_sha}, not {about.head_sha}; fuzz that one")
    kept = tuple(check for check in fuzzed.checks if check.kind == "fuzz")
    return kept, tuple(cost for cost in fuzzed.costs if cost.phase == "fuzz")


# Which measurement this is

PRODUCER = "kernelgate"


def run_identity(base: Library | None, head: Library, variables: Mapping[str, str] = os.environ) -> record.Run:
    """That of a measurement of these libraries."""
    return run_of(base.manifest.sha if base else None, head.manifest.sha, variables)


def run_of(base_sha: str | None, head_sha: str | None, variables: Mapping[str, str] = os.environ) -> record.Run:
    """The identity of a measurement; the run's numbers where GitHub Actions gives them."""
    pull = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", variables.get("GITHUB_REF", ""))
    return record.Run(
        id=secrets.token_hex(8),
        producer=PRODUCER,
        version=version_of(PRODUCER),
        event=variables.get("GITHUB_EVENT_NAME"),
        repository=variables.get("GITHUB_REPOSITORY"),
        pull_request=int(pull[1]) if pull else None,
        base_sha=base_sha,
        head_sha=head_sha,
        run_id=_number(variables.get("GITHUB_RUN_ID")),
        run_attempt=_number(variables.get("GITHUB_RUN_ATTEMPT")),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def percentiles(measured: RunRecord) -> Table:
    made = Table("case", "side", box=None, pad_edge=False)
    for title in ("median µs", "P95 µs", "P99 µs", "CV %", "graph µs", "TFLOP/s", "GB/s"):
        made.add_column(title, justify="right")
    sharing = Counter(case.id for case in measured.cases)
    for rate in rates.rates(measured):
        name = rate.key.id if sharing[rate.key.id] == 1 else f"{rate.key.card}/{rate.key.id}"
        numbers = (rate.us, rate.p95_us, rate.p99_us, rate.cv_pct, rate.graph_us, rate.tflops, rate.gbps)
        made.add_row(name, rate.side, *("–" if number is None else f"{number:.4g}" for number in numbers))
    return made


# Fuzzing and the sanitizer


@dataclass(frozen=True)
class FuzzOptions:
    """What a call asks for; None leaves a thing to kernelgate."""

    seed: int | None = None
    ids: tuple[str, ...] = ()
    """Of configurations; of one card's as CARD/ID."""
    limits: FuzzLimits = NO_LIMITS


def fuzz(repo: Path, head: Named, base: Named, asked: FuzzOptions, from_cards: Path | None = None) -> record.RunRecord:
    """Fuzzes every card's library. Skipped where there is none. A head that is not named is the working tree, a base
    none."""
    try:
        about = heads(repo, head, base, from_cards)
    except NoKernelError as error:
        return record.RunRecord(checks=(fuzzing.skipped(str(error)),))
    with worker_pool() as workers:
        workers.prepare({WORKER: 1})  # it loads torch while another process has the device
        machine = environment.describe()
        took = lock.stopwatch()
        done = fuzz_all(about, asked, machine, workers, goes_on=True)
    return record.RunRecord(
        run=run_identity(about[0].sides.base, about[0].sides.head),
        environments=(machine,),
        cards=tuple(one.recorded for one in about),
        checks=done,
        costs=record.with_costs((), fuzz=took()),
    )


def fuzz_all(
    about: Sequence[Compared],
    asked: FuzzOptions,
    machine: record.Environment,
    workers: WorkerPool | None = None,
    goes_on: bool = False,
) -> tuple[record.Check, ...]:
    """`goes_on`: past a card that cannot be fuzzed at all, whose check then says why."""
    seed, how = new_seed(asked.seed), (asked.limits, workers)
    wanted = by_card(asked.ids, [one.card.name for one in about])
    done: list[record.Check] = []
    for one in (one for one in about if one.card.name in wanted):
        name = one.card.name
        try:
            done.append(fuzzing.run(one.sides.head, one.card, seed, machine, wanted[name], how, one.sides.base))
        except KernelgateError as error:
            if isinstance(error, UsageError) or not goes_on or len(about) == 1:
                raise
            done.append(fuzzing.skipped(str(error), name).model_copy(update={"unjudged": 1}))
    return tuple(done)


def soak(
    repo: Path, head: Named, seed: int | None, seconds: float, corpus: Path | None, from_cards: Path | None = None
) -> tuple[Soak, ...]:
    """Fuzzes the cards' libraries in turn, each for its share of the time. `corpus`: None is the cache's. Raises
    NoKernelError where there is nothing to fuzz on this machine."""
    place = corpus or build_cache.cache_folder() / fuzz_trials.CORPUS
    files.try_folder(place)
    about = heads(repo, head, from_cards=from_cards)
    machine = environment.describe()
    device = environment.kind(machine)
    if not (fuzzed := [one for one in about if one.card.fuzz[device]]):
        raise NoKernelError(fuzzing.nothing_to_fuzz(about[0].card, device))
    done = []
    with worker_pool() as workers:
        for one in fuzzed:
            workers.prepare({WORKER: 1})
            done.append(Soak(one.card, place, seconds / len(fuzzed)))
            fuzzing.soak_card(one.sides.head, done[-1], new_seed(seed), machine, workers)
    return tuple(done)


def heads(repo: Path, head: Named, base: Named = (None, None), from_cards: Path | None = None) -> tuple[Compared, ...]:
    """The cards and libraries of one commit, beside the base's where one is named. Raises NoKernelError where it has
    none."""
    made = libraries(repo, *head, HowToBuild(cards=from_cards))
    alone = {name: Sides(None, one) for name, one in made.built.items()}
    beside = against(made, bases(repo, *base, from_cards)) if any(base) else alone
    if not (about := commit.judged(cards.of_checkout(repo, from_cards), beside)):
        raise NoKernelError(f"{repo} has no card in {cards.FOLDER}/")
    return repeatable(about, head[0], from_cards)


def repeatable(about: Sequence[Compared], ref: str | None, from_cards: Path | None) -> tuple[Compared, ...]:
    """So that commands which repeat what failed are about the same commit and cards."""
    given = {"--ref": ref, "--cards": from_cards and from_cards.absolute()}
    again = tuple(word for option, value in given.items() if value for word in (option, str(value)))
    return tuple(replace(one, card=one.card.model_copy(update={"again": again})) for one in about)


def sanitize(
    about: Sequence[Compared],
    asked: SanitizerOptions,
    machine: record.Environment,
    ids: Sequence[str] = (),
    started: Mapping[str, WarmProcesses] = MappingProxyType({}),
) -> tuple[record.Check, ...]:
    """The sanitizer check of each card's head, but of those whose base is the same library. `ids`: of cases. `started`:
    the tools of some cards. What keeps a check from being made is its reason, and no error."""
    chosen = commit.select_cases(about, "cuda", None, ids) if ids else ()
    done: list[record.Check] = []
    for one in (one for one in about if not one.same):
        cases = tuple(each.case for each in chosen if each.card.name == one.card.name)
        if ids and not cases:
            continue
        try:
            gpu = only_gpu()
            with lock.device(machine.device.uuid):
                which = replace(asked, cases=cases)
                done.append(sanitizing.check(one.card, one.sides, gpu, which, started.get(one.card.name)))
        except KernelgateError as error:
            done.append(sanitizing.skipped(str(error), one.card.name))
    return tuple(done)


def by_card(ids: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """What is asked of each card; of all of them all where nothing is."""
    if not ids:
        return {name: [] for name in names}
    wanted: dict[str, list[str]] = {}
    for text in ids:
        name, _, case_id = text.rpartition("/")
        if not name and len(names) > 1:
            raise UsageError(f"there are {len(names)} cards: write --case {names[0]}/{case_id}")
        if name and name not in names:
            raise UsageError(f"there is no card {name}; there are {', '.join(names)}")
        wanted.setdefault(name or names[0], []).append(case_id)
    return wanted
