"""The paired comparison: base against head, timed in several processes, and the record that grows with each of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, build_records, imports
from kernelgate.bench.core.errors import KernelgateError, RecordError
from kernelgate.bench.kernel import axes
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.kernel.commit import CardPlan
from kernelgate.bench.record import CaseKey, Note, RunRecord
from kernelgate.bench.system import environment, isolation, lock, nvml, progress
from kernelgate.bench.system.preemption import Notice
from kernelgate.bench.system.worker import WorkerPool, worker_pool
from kernelgate.bench.timing import process
from kernelgate.bench.timing.case_timing import ROUNDS_PER_TURN, LoadError, ProcessError
from kernelgate.bench.timing.process import CrashError, Measuring, Setup, Timed, Turn

NO_WITNESS = "no_witness"
WITNESS: tuple[record.Role, ...] = ("witness",)
CONTROLS = 2
"""Cases that are decided and yet timed again beside those that are not, drawn at random."""

Undecided = Callable[[RunRecord], frozenset[CaseKey]]


@dataclass(frozen=True)
class PairedPlan:
    parts: tuple[CardPlan, ...]
    environment: record.Environment
    how: Measuring
    processes: int
    witness: bool = True
    """Whether base and head are also timed each in a process without the other."""

    @property
    def cases(self) -> tuple[record.Case, ...]:
        return tuple(case for part in self.parts for case in part.recorded)


def all_cases(current: RunRecord) -> frozenset[CaseKey]:
    return frozenset(case.key for case in current.cases)


# The run


@dataclass
class Growing:
    record: RunRecord
    path: Path

    def note(self, *notes: Note) -> None:
        self.update(notes=self._with(notes))

    def _with(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        known = {note.text for note in self.record.notes}
        new = tuple({note.text: note for note in notes if note.text not in known}.values())
        return (*self.record.notes, *new)

    def add(self, done: Timed) -> None:
        """A process, its notes, what it cost, and the clocks that were found wrong: all at once, since a notice may end
        the run between any two lines."""
        calling, verifying = (sum(getattr(one, name) for one in done.results) for name in ("calling_s", "verifying_s"))
        spent = {
            "witness" if done.process.role == "witness" else "calls": calling,
            "verifying": verifying,
            "starting": (done.process.wall_seconds or 0.0) - calling - verifying,
        }
        checks = self.record.checks
        if findings := [record.CheckFinding(text=one.contradiction) for one in done.results if one.contradiction]:
            card = min((timing.card for timing in done.process.timings), default="")
            checks = (*checks, record.Check(kind="witness", card=card, status="failed", findings=tuple(findings)))
        self.save(
            processes=(*self.record.processes, done.process),
            costs=record.with_costs(self.record.costs, **spent),
            checks=checks,
            notes=self._with(done.notes),
        )

    def end(self, how: Literal["complete", "failed", "cancelled", "preempted"]) -> None:
        self.save(run=self.record.run.model_copy(update={"ended": how}))

    def save(self, **parts: object) -> None:
        self.update(**parts)
        record.write(self.record, self.path)

    def update(self, **parts: object) -> None:
        self.record = self.record.model_copy(update=parts)


def run(
    plan: PairedPlan,
    skeleton: RunRecord,
    path: Path,
    undecided: Undecided = all_cases,
    resume: bool = False,
    workers: WorkerPool | None = None,
    notice: Notice | None = None,
) -> RunRecord:
    """Times the plan process by process. After each, the record in `path` holds all processes so far.

    `skeleton` is a record with whatever the caller knows (run, checks, …); cases, environment and builds are filled in
    here. With `resume`, the record in `path` is continued; a process that was cut short is timed again. Cases that
    `undecided` leaves out are not timed again, but for a few controls. A side that crashes or hangs without the other
    is a finding: its case is not timed any more, and of a head nothing of its card. Raises ProcessError naming the
    process and the case where one could not load its library, or was killed from outside; the processes before it stay
    in `path`. Raises RecordError where the record to resume does not fit. `workers` that were started before save their
    start. Once there is a `notice`, no further process begins, and NoticeOverError is raised.
    """
    notice = notice or Notice()
    old = record.read(path) if resume and path.exists() else None
    begun = old if old and old.processes else None
    plan, growing = _resumed(plan, skeleton, path, begun) if begun else (plan, _begun(plan, skeleton, path))
    if begun and not wanted(plan, growing.record, undecided) and not _unwitnessed(plan, growing.record):
        progress.say(f"{path} holds {process_count(growing.record)} processes already: nothing to do")
        growing.end("complete")
        return growing.record
    progress.say(f"seed {plan.how.seed}")
    number = 1 + max((_processes_of(growing.record, part) for part in plan.parts), default=0)
    growing.note(Note(code="seed", text=f"seed {plan.how.seed} from process {number} on"), *isolation.notes())
    on_gpu = environment.kind(plan.environment) == "cuda"
    if not on_gpu:
        growing.note(Note(code="load", text=f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"))
    try:
        with (
            lock.device(plan.environment.device.uuid),
            nvml.locked_clock(plan.environment.device.uuid, plan.how.lock_clocks and on_gpu) as clock,
            nullcontext(workers) if workers else worker_pool() as processes,
        ):
            processes.prepare({process.VERIFIER: 1})
            processes.prepare({process.WORKER: 1}, imports(plan.parts[0].sides.named))
            if on_gpu:
                held = (
                    one.model_copy(update={"clock_policy": clock}) if one.id == plan.environment.id else one
                    for one in growing.record.environments
                )
                growing.update(environments=tuple(held))
            setup = Setup(plan.environment, plan.how, processes)
            _time(plan, setup, growing, undecided, notice)
            _witness(plan, setup, growing, notice)
            if setup.verifier is not None:  # it holds memory of the device, which is not to be had twice
                setup.verifier.worker.__exit__()
    except BaseException as error:
        if notice.given:  # also where what was asked to end too, such as a worker, ended first
            growing.end("preempted")
        elif growing.record.processes:
            growing.end("failed" if isinstance(error, KernelgateError) else "cancelled")
        raise
    growing.end("complete")
    return growing.record


def _time(plan: PairedPlan, setup: Setup, growing: Growing, undecided: Undecided, notice: Notice) -> None:
    """Process after process, of each card in turn, until no case needs another one."""
    alternating = {  # a run that began with alternating processes continues with them
        timing.card for one in growing.record.processes if one.role == "alternating" for timing in one.timings
    }
    alternating |= {one.card.name for one in plan.parts if one.sides.clash}
    while needed := wanted(plan, growing.record, undecided):
        notice.heed()
        # Of the card that has the fewest processes: a process of each card in turn.
        open_parts = [one for one in plan.parts if any(case.key in needed for case in one.recorded)]
        part = min(open_parts, key=lambda one: _processes_of(growing.record, one))
        name, sides = part.card.name, part.sides
        number = _processes_of(growing.record, part)
        cases = chosen(plan, part, growing.record, needed)
        ordinal, card = f"{number + 1}", "" if len(plan.parts) == 1 else name
        turn = Turn(
            card=part.card,
            libraries=sides.named,
            cases=cases,
            number=number,
            role="block" if sides.base is None else "alternating" if name in alternating else "paired",
            together=name not in alternating,
            id=f"{card}-{ordinal}".lstrip("-"),
            name=f"process {ordinal} of {plan.processes}{card and f', {card}'}",
            following=_following(plan, growing.record, part, open_parts),
        )
        with progress.track(f"bench, {turn.name}", len(cases) * -(-plan.how.rounds // ROUNDS_PER_TURN)) as advance:
            try:
                _add(setup, turn, growing, notice, advance)
            except ProcessError as error:
                if notice.given:  # a worker that was asked to end, too, tells nothing of its libraries
                    raise
                if number == 0 and sides.pinned is not None:  # which may no longer run, such as with a newer torch
                    alone = replace(part, sides=replace(sides, pinned=None))
                    plan = replace(plan, parts=tuple(alone if one is part else one for one in plan.parts))
                    text = f"the head of {name} was measured without the pinned commit: {error}"
                    growing.note(Note(code="head_alone", card=name, text=text))
                    continue
                apart = isinstance(error, CrashError) or (isinstance(error, LoadError) and number == 0)
                if not apart or not turn.together or not sides.base:
                    raise
                alternating.add(name)
                growing.note(process.alternating_because(error.fault))


def _add(setup: Setup, turn: Turn, growing: Growing, notice: Notice, advance: progress.Advance) -> None:
    """Times a process into the record. Of one in which a call crashes or hangs, what was finished by then, and each
    side that does so without the other and the reference. Where neither does, the reference is left out from then on;
    raises ProcessError where it was already."""
    try:
        growing.add(process.timed(setup, turn, advance))
        return
    except CrashError as error:
        crash = error
    if notice.given:
        raise crash
    if crash.before.process.timings:
        growing.add(crash.before)
    # What hangs once may have waited for the machine, and what crashes beside the reference may be the reference.
    key = (turn.card.name, crash.case.id)
    suspected = turn.role != "witness" and "head" in crash.sides and not setup.references.get(key)
    sure = len(crash.sides) == 1 and not crash.hung and not suspected
    found = {crash.sides[0]: crash} if sure else {}
    known, setup.references = setup.references, {**setup.references, key: "calls crashed beside it"}
    for side, library in turn.libraries.items():
        if side in ("base", "head") and side not in found:
            alone = replace(turn, cases=(crash.case,), libraries={side: library}, role="block", together=True)
            alone = replace(alone, id=f"{turn.id}-{side}", name=f"{turn.name}, {side} alone", following={})
            try:
                process.timed(setup, alone, lambda _: None)
            except CrashError as error:
                found[side] = error
    if found or turn.libraries.keys() - {"base", "head"}:  # then it may be the pinned commit that crashed
        setup.references = known
    elif suspected:  # the next process leaves it out
        text = f"{crash.case.id}: the reference is not timed: beside it {crash.fault}, and not where each side is alone"
        growing.note(Note(code="no_reference", text=text))
        return
    if not found:
        raise crash
    for side, alone_ in found.items():
        growing.add(process.crashed(setup, turn, side, alone_))


def _given_up(current: RunRecord) -> frozenset[CaseKey]:
    """The cases in which a side crashed; of a head that did, all of its card."""
    crashes = [
        (timing.key, side)
        for one in current.processes
        for timing in one.timings
        for side, calls in timing.calls.items()
        if calls.crashed
    ]
    cards = {key.card for key, side in crashes if side == "head"}
    return frozenset(key for key, _ in crashes) | {case.key for case in current.cases if case.card in cards}


def _wrong_in_base(current: RunRecord) -> frozenset[CaseKey]:
    """No controls: nothing is compared with a wrong result."""
    timings = (timing for one in current.processes for timing in one.timings)
    return frozenset(one.key for one in timings if "base" in one.calls and one.calls["base"].failed)


def _following(
    plan: PairedPlan, current: RunRecord, part: CardPlan, open_parts: Sequence[CardPlan]
) -> dict[record.Side, Library]:
    """What the process after this one of `part` loads, should no case be decided by this one."""
    counts = {one.card.name: _processes_of(current, one) + (one is part) for one in plan.parts}
    left = [one for one in open_parts if counts[one.card.name] < plan.processes] or _unwitnessed(plan, current)
    return min(left, key=lambda one: counts[one.card.name]).sides.named if left else {}


def wanted(plan: PairedPlan, current: RunRecord, undecided: Undecided) -> frozenset[CaseKey]:
    counts = _counts(current)
    open_ = frozenset(case.key for case in plan.cases if counts.get(case.key, 0) < plan.processes)
    open_ -= _given_up(current)
    if not open_ or not current.processes:
        return open_
    return open_ & (undecided(current) | frozenset(key for key in open_ if not counts.get(key, 0)))


def chosen(plan: PairedPlan, part: CardPlan, current: RunRecord, needed: frozenset[CaseKey]) -> tuple[CaseFacts, ...]:
    """What the next process times: what is needed, and a few decided cases as controls, in random order.

    The first process has them in the card's order, whose first case warms up longest and is the target; a head alone
    from the smallest to the largest, so that what is wrong with it shows in the cheapest.
    """
    number = _processes_of(current, part)
    keyed = dict(zip((case.key for case in part.recorded), part.cases, strict=True))
    cases = [case for key, case in keyed.items() if key in needed]
    if number == 0:
        return tuple(cases if part.sides.base else sorted(cases, key=lambda one: axes.size(one.axes)))
    rng = random.Random(f"{plan.how.seed}/{number}/cases/{part.card.name}")  # noqa: S311 - not for secrets
    counts, left_out = _counts(current), needed | _given_up(current) | _wrong_in_base(current)
    others = [case for key, case in keyed.items() if key not in left_out and counts.get(key, 0) < plan.processes]
    cases += rng.sample(others, min(CONTROLS, len(others)))
    rng.shuffle(cases)
    return tuple(cases)


def _witness(plan: PairedPlan, setup: Setup, growing: Growing, notice: Notice) -> None:
    """Base and head of each card, each alone in a process; not where the head was wrong, which decides all."""
    left = _unwitnessed(plan, growing.record)
    for at, part in enumerate(left):
        name = part.card.name
        if _wrong(growing.record, name):
            growing.note(Note(code=NO_WITNESS, card=name, text=f"outputs of {name} were wrong: no need of a witness"))
            continue
        turns = range(_processes_of(growing.record, part, WITNESS), process.WITNESS_TURNS[setup.device])
        with progress.track(f"witness, {name}", len(turns) * len(part.cases)) as advance:
            for number in turns:
                notice.heed()
                given_up = _given_up(growing.record)
                cases = tuple(one for one in part.cases if CaseKey(name, one.id) not in given_up)
                if not cases:
                    break
                last = number + 1 == turns.stop
                words = ["witness", *([] if len(plan.parts) == 1 else [name]), *([f"{number + 1}"] if number else [])]
                turn = Turn(
                    card=part.card,
                    libraries=part.sides.named,
                    cases=cases,
                    number=number,
                    role="witness",
                    id="-".join(words),
                    name=", ".join(words),
                    together=False,
                    following={} if last and part is left[-1] else left[at + last].sides.named,
                    known=growing.record,
                )
                _add(setup, turn, growing, notice, advance)


def _wrong(current: RunRecord, card: str) -> bool:
    timings = (timing for one in current.processes for timing in one.timings if timing.card == card)
    return any(calls.failed for timing in timings for side, calls in timing.calls.items() if side == "head")


def _unwitnessed(plan: PairedPlan, current: RunRecord) -> list[CardPlan]:
    """The cards of which base and head were not yet timed alone. One library on both sides has nothing to hide."""
    if not plan.witness:
        return []
    needless = {note.card for note in current.notes if note.code == NO_WITNESS}
    turns, given_up = process.WITNESS_TURNS[environment.kind(plan.environment)], _given_up(current)
    return [
        part
        for part in plan.parts
        if part.sides.base is not None
        and not part.sides.base.same_as(part.sides.head)
        and part.card.name not in needless
        and _processes_of(current, part, WITNESS) < turns
        and any(case.key not in given_up for case in part.recorded)
    ]


# The record


def _counts(current: RunRecord) -> dict[CaseKey, int]:
    return {case.key: len(case.processes) for case in record.timed_cases(current)}


def _processes_of(current: RunRecord, part: CardPlan, roles: tuple[record.Role, ...] = record.COMPARED) -> int:
    """How many processes of these roles a card has; by default of the comparison."""
    return sum(
        process.role in roles and any(one.card == part.card.name and one.samples_us for one in process.timings)
        for process in current.processes
    )


def process_count(record_: RunRecord) -> int:
    return min((len(case.processes) for case in record.timed_cases(record_) if case.processes), default=0)


def _begun(plan: PairedPlan, skeleton: RunRecord, path: Path) -> Growing:
    timed = {part.card.name: part.card.recorded for part in plan.parts}
    others = tuple(build for build in skeleton.builds if build.card not in timed)
    parts = {
        "environments": (plan.environment, *skeleton.environments[1:]),
        "cards": tuple({**timed, **{card.name: card for card in skeleton.cards}}.values()),
        "builds": (*others, *builds(plan)),
        "cases": (*plan.cases, *skeleton.cases),  # those of the skeleton are not run
        "processes": (),
    }
    growing = Growing(skeleton.model_copy(update=parts), path)
    for part in plan.parts:
        base = part.sides.base
        if base is not None and base.same_as(part.sides.head):
            text = f"base and head of {part.card.name} are the same library, which is timed against itself"
            growing.note(Note(code="timed_against_itself", text=text))
        if part.sides.clash:
            growing.note(process.alternating_because(part.sides.clash))
    return growing


def _resumed(plan: PairedPlan, skeleton: RunRecord, path: Path, old: RunRecord) -> tuple[PairedPlan, Growing]:
    """The plan on this machine, which may be another one than before, and the record so far."""
    reasons = unfit(plan, old)
    if old.run.shard != skeleton.run.shard:
        here = f"shard {skeleton.run.shard}" if skeleton.run.shard else "all cases"
        reasons += (f"it was begun as another shard, or with another seed or policy, than {here}",)
    if reasons:
        raise RecordError(f"{path} cannot be resumed: {'; '.join(reasons)}; write to another file")
    known = next((one for one in old.environments if not environment.differences(one, plan.environment)), None)
    ids = {one.id for one in old.environments}
    id_ = known.id if known else next(str(number) for number in range(len(ids) + 1) if str(number) not in ids)
    here_now = plan.environment.model_copy(update={"id": id_})
    parts = ("environments", "cards", "builds", "cases", "processes", "costs", "notes")
    kept = {name: getattr(old, name) for name in parts}
    if known is None:
        kept["environments"] = (*old.environments, here_now)
    kept |= {"run": skeleton.run.model_copy(update={"resumed_from": old.run.id})}
    growing = Growing(skeleton.model_copy(update={**kept, "checks": skeleton.checks or old.checks}), path)
    where = f" on another {plan.environment.device.name}" if known is None else ""
    if old.run.ended == "preempted" or where:
        after = " after preemption" if old.run.ended == "preempted" else ""
        growing.note(Note(code="resumed", text=f"resumed{after}{where}, from process {len(old.processes) + 1} on"))
    return replace(plan, environment=here_now), growing


def unfit(plan: PairedPlan, old: RunRecord) -> tuple[str, ...]:
    """Why the record `old` cannot be continued with this plan; empty where it can."""
    reasons = list(environment.differences(old.environment, plan.environment, in_kind=True))
    timed_cards = {part.card.name for part in plan.parts}
    before = {(one.card, one.side): one.library_sha256 for one in old.builds if one.card in timed_cards}
    now = {(one.card, one.side): one.library_sha256 for one in builds(plan)}
    if before != now:
        reasons.append("it was measured with other libraries")
    if [case.key for case in old.cases][: len(plan.cases)] != [case.key for case in plan.cases]:
        here = {case.card for case in plan.cases}
        names = (case.id if case.card in here else f"{case.id} of {case.card or 'no card'}" for case in old.cases)
        reasons.append(f"it holds other cases ({', '.join(names) or 'none'})")
    timed = [timing for one in old.processes if one.role in record.COMPARED for timing in one.timings]
    rounds = {len(samples) for timing in timed for side, samples in timing.samples_us.items() if side != "reference"}
    if max(rounds, default=0) > plan.how.rounds:
        reasons.append(f"its processes have {', '.join(map(str, sorted(rounds)))} rounds, not {plan.how.rounds}")
    return tuple(reasons)


def builds(plan: PairedPlan) -> tuple[record.Build, ...]:
    return tuple(build for part in plan.parts for build in build_records(part.sides, plan.environment.device))
