"""The paired comparison: base against head, timed in several processes, and the record that grows with each of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt, Sides, build_records
from kernelgate.bench.errors import KernelgateError, RecordError
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import environment, lock, progress
from kernelgate.bench.system.worker_process import Child
from kernelgate.bench.timing.protocol import ROUNDS_PER_TURN, AskedCase, CaseDone, Go, Ready, TimingRequest
from kernelgate.bench.timing.runner import LoadError, ProcessError, Runner

__all__ = ["LoadError", "ProcessError"]

PROCESSES = 5
ROUNDS = 100
PATIENCE_S = 300.0
"""A process that does not answer for so long is considered hung."""
UNKNOWN_CACHE = 64 << 20
MAX_CPU_CACHE = 32 << 20

Stop = Callable[[RunRecord], bool]
"""Given the record after a process: is it enough?"""


@dataclass(frozen=True)
class CardPlan:
    """What to time of one card. Without a base, the head is timed alone, beside the reference."""

    card: CardFacts
    sides: Sides
    cases: tuple[CaseFacts, ...]

    @property
    def libraries(self) -> dict[record.Side, Library]:
        return dict(self.sides.named)

    @property
    def recorded(self) -> tuple[record.Case, ...]:
        return tuple(map(self.card.recorded_case, self.cases))


@dataclass(frozen=True)
class PairedPlan:
    """What to time: cards, one after the other in each turn of processes."""

    parts: tuple[CardPlan, ...]
    environment: record.Environment
    seed: int
    processes: int = PROCESSES
    rounds: int = ROUNDS
    patience_s: float = PATIENCE_S

    @property
    def turns(self) -> int:
        return -(-self.rounds // ROUNDS_PER_TURN)

    @property
    def cases(self) -> tuple[record.Case, ...]:
        return tuple(case for part in self.parts for case in part.recorded)


# ----------------------------------------------------------------------------------------------------------------------
# The run
# ----------------------------------------------------------------------------------------------------------------------


def never(_: RunRecord) -> bool:
    """Stops only after the planned number of processes."""
    return False


def run(plan: PairedPlan, skeleton: RunRecord, path: Path, stop: Stop = never, resume: bool = False) -> RunRecord:
    """Times the plan process by process. After each, the record in `path` holds all processes so far.

    `skeleton` is a record with whatever the caller knows (run, checks, …); cases, environment and builds are filled in
    here. With `resume`, the record in `path` is continued; a process that was cut short is timed again. `stop` may
    end the run early. Raises ProcessError naming the process and the case where one crashed, hung or could not load its
    library; the processes before it stay in `path`. Raises RecordError where the record to resume does not fit.
    """
    resumed = resume and path.exists()
    current = _resumed(plan, skeleton, path) if resumed else _begun(plan, skeleton)
    finished = process_count(current)
    if finished >= plan.processes or (finished and stop(current)):
        progress.say(f"{path} holds {finished} processes already: nothing to do")
        current = _ended(current, "complete")
        record.write(current, path)
        return current
    progress.say(f"seed {plan.seed}")
    current = _noted(current, _note("seed", f"seed {plan.seed} from process {finished + 1} on"))
    together = {part.card.name: _together(part, current) for part in plan.parts}
    try:
        with lock.device(plan.environment.device.uuid), progress.track("bench", _steps(plan, finished)) as advance:
            for number, part in _order(plan, current):
                current = _with_process(plan, part, number, current, together, advance)
                record.write(current, path)
                if part is plan.parts[-1] and stop(current):
                    break
    except BaseException as error:
        if current.processes:
            record.write(_ended(current, "failed" if isinstance(error, KernelgateError) else "cancelled"), path)
        raise
    current = _ended(current, "complete")
    record.write(current, path)
    return current


def _order(plan: PairedPlan, current: RunRecord) -> list[tuple[int, CardPlan]]:
    """The processes that are missing: a process of each card in turn."""
    have = {part.card.name: _count(current, part) for part in plan.parts}
    numbers = range(plan.processes)
    return [(number, part) for number in numbers for part in plan.parts if number >= have[part.card.name]]


def _count(current: RunRecord, part: CardPlan) -> int:
    """How many processes every case of a card has."""
    names = {case.key for case in part.recorded}
    return min((len(case.processes) for case in record.timed_cases(current) if case.key in names), default=0)


def _with_process(
    plan: PairedPlan,
    part: CardPlan,
    number: int,
    current: RunRecord,
    together: dict[str, bool],
    advance: progress.Advance,
) -> RunRecord:
    """The record with one process more. Sides that cannot be loaded into one process alternate from now on."""
    name = part.card.name
    try:
        process, notes = _process(plan, part, number, together[name], advance)
    except LoadError as error:
        if not together[name] or part.sides.base is None or number > 0:
            raise
        together[name] = False
        current = _noted(current, _alternating_because(str(error)))
        process, notes = _process(plan, part, number, together[name], advance)
    return _noted(_grown(current, process), *notes)


def _ended(current: RunRecord, how: Literal["complete", "failed", "cancelled"]) -> RunRecord:
    return current.model_copy(update={"run": current.run.model_copy(update={"ended": how})})


def process_count(record_: RunRecord) -> int:
    """How many processes every case has."""
    return min((len(case.processes) for case in record.timed_cases(record_)), default=0)


def _begun(plan: PairedPlan, skeleton: RunRecord) -> RunRecord:
    begun = skeleton.model_copy(
        update={
            "environments": (plan.environment,),
            "cards": _all_cards(plan, skeleton),
            "builds": (*_other_builds(plan, skeleton), *builds(plan)),
            "cases": plan.cases,
            "processes": (),
        }
    )
    for part in plan.parts:
        base = part.sides.base
        if base is not None and base.same_as(part.sides.head):
            text = f"base and head of {part.card.name} are the same library, which is timed against itself"
            begun = _noted(begun, _note("timed_against_itself", text))
        reason = clash(part)
        begun = _noted(begun, _alternating_because(reason)) if reason else begun
    return begun


def _all_cards(plan: PairedPlan, skeleton: RunRecord) -> tuple[record.Card, ...]:
    """The cards of the skeleton, which knows their source, and those of the plan that it does not have."""
    return tuple({**{p.card.name: p.card.recorded for p in plan.parts}, **{c.name: c for c in skeleton.cards}}.values())


def _other_builds(plan: PairedPlan, skeleton: RunRecord) -> tuple[record.Build, ...]:
    """Of cards that are not timed."""
    timed = {part.card.name for part in plan.parts}
    return tuple(build for build in skeleton.builds if build.card not in timed)


def _resumed(plan: PairedPlan, skeleton: RunRecord, path: Path) -> RunRecord:
    old = record.read(path)
    reasons = unfit(plan, old)
    if reasons:
        raise RecordError(f"{path} cannot be resumed: {'; '.join(reasons)}; write to another file")
    parts = ("environments", "cards", "builds", "cases", "processes", "notes")
    kept = {name: getattr(old, name) for name in parts}
    run_ = skeleton.run.model_copy(update={"resumed_from": old.run.id})
    return skeleton.model_copy(update={**kept, "run": run_, "checks": skeleton.checks or old.checks})


def unfit(plan: PairedPlan, old: RunRecord) -> tuple[str, ...]:
    """Why the record `old` cannot be continued with this plan; empty where it can."""
    reasons = list(environment.differences(old.environment, plan.environment))
    timed_cards = {part.card.name for part in plan.parts}
    before = {(one.card, one.side): one.library_sha256 for one in old.builds if one.card in timed_cards}
    now = {(one.card, one.side): one.library_sha256 for one in builds(plan)}
    if before != now:
        reasons.append("it was measured with other libraries")
    if [case.key for case in old.cases] != [case.key for case in plan.cases]:
        here = {case.card for case in plan.cases}
        reasons.append(f"it holds other cases ({', '.join(_named(case, here) for case in old.cases) or 'none'})")
    timed = [timing for process in old.processes for timing in process.timings]
    rounds = {len(samples) for timing in timed for samples in timing.samples_us.values()}
    if rounds - {plan.rounds}:
        reasons.append(f"its processes have {', '.join(map(str, sorted(rounds)))} rounds, not {plan.rounds}")
    return tuple(reasons)


def _named(case: record.Case, here: set[str]) -> str:
    """The id; with its card where that is not one that is measured here."""
    return case.id if case.card in here else f"{case.id} of {case.card or 'no card'}"


def builds(plan: PairedPlan) -> tuple[record.Build, ...]:
    """How the libraries of the plan came to be."""
    return tuple(build for part in plan.parts for build in build_records(part.sides))


def _grown(current: RunRecord, process: record.Process) -> RunRecord:
    return current.model_copy(update={"processes": (*current.processes, process)})


def _noted(current: RunRecord, *notes: record.Note) -> RunRecord:
    known = {note.text for note in current.notes}
    new = tuple({note.text: note for note in notes if note.text not in known}.values())
    return current.model_copy(update={"notes": (*current.notes, *new)})


def _note(code: str, text: str) -> record.Note:
    return record.Note(code=code, text=text)


def _steps(plan: PairedPlan, finished: int) -> int:
    return (plan.processes - finished) * len(plan.cases) * plan.turns


# ----------------------------------------------------------------------------------------------------------------------
# Together, or in processes that take turns
# ----------------------------------------------------------------------------------------------------------------------


def clash(part: CardPlan) -> str | None:
    """Why base and head cannot share a process: what one registers would answer for the other, without a word."""
    base, head = part.sides.base, part.sides.head
    if base is None or base.same_as(head):
        return None
    if head.manifest.kind == "package":
        both = sorted(set(base.manifest.operators) & set(head.manifest.operators))
        return f"both register the operator {', '.join(both)}" if both else None
    if base.manifest.namespace != head.manifest.namespace:
        return None
    return f"both register their operators as torch.ops.{head.manifest.namespace}"


def _together(part: CardPlan, current: RunRecord) -> bool:
    """A run that began with alternating processes continues with them."""
    timed = {
        timing.card for process in current.processes if process.role == "alternating" for timing in process.timings
    }
    return clash(part) is None and part.card.name not in timed


def _alternating_because(reason: str) -> record.Note:
    return _note(
        "alternating",
        "base and head cannot be loaded into one process, so two processes took turns and precision is lower: up to "
        f"about 1% of difference can come from the processes themselves ({reason})",
    )


def _teams(plan: PairedPlan, part: CardPlan, number: int, together: bool) -> list[list[record.Side]]:
    """Which sides share a process, in the order in which processes start and libraries are loaded."""
    sides = list(part.libraries)
    if together:
        return [random.Random(f"{plan.seed}/{number}/load").sample(sides, len(sides))]  # noqa: S311 - not for secrets
    return [[side] for side in (sides if number % 2 == 0 else reversed(sides))]


# ----------------------------------------------------------------------------------------------------------------------
# One process
# ----------------------------------------------------------------------------------------------------------------------


def _process(
    plan: PairedPlan, part: CardPlan, number: int, together: bool, advance: progress.Advance
) -> tuple[record.Process, list[record.Note]]:
    alone = len(plan.parts) == 1
    name = f"process {number + 1} of {plan.processes}{'' if alone else f', {part.card.name}'}"
    rng = random.Random(f"{plan.seed}/{number}/turns")  # noqa: S311 - not for secrets
    teams = _teams(plan, part, number, together)
    timings: list[record.Timing] = []
    notes: list[record.Note] = []
    started_at, begun = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        runners = []
        for team in teams:
            runner = Runner(stack.enter_context(Child("kernelgate.bench.timing.worker")), name, plan.patience_s)
            runner.step(_request(plan, part, number, team))
            runners.append(runner)
        for case in part.cases:
            done = _case(plan, runners, rng, partial(advance, f"{name}, {case.id}"))
            timings.append(merged([answer.timing for answer in done]))
            notes += [note for answer in done for note in answer.notes]
    process = record.Process(
        id=str(number + 1) if alone else f"{part.card.name}-{number + 1}",
        environment=plan.environment.id,
        role=_role(part, together),
        loaded=tuple(side for team in teams for side in team),
        seed=f"{plan.seed}/{number}",
        started_at=started_at.isoformat(timespec="seconds"),
        wall_seconds=round(time.monotonic() - begun, 3),
        exit=0,
        timings=tuple(timings),
    )
    return process, notes


def _role(part: CardPlan, together: bool) -> record.Role:
    if part.sides.base is None:
        return "block"
    return "paired" if together else "alternating"


def _case(
    plan: PairedPlan, runners: Sequence[Runner], rng: random.Random, turned: Callable[[], None]
) -> list[CaseDone]:
    """Prepares the case everywhere, lets the runners take turns in random order, and collects what they timed."""
    prepared = [runner.step(Go(inner_repeats=1)) for runner in runners]
    go = Go(inner_repeats=max(answer.inner_repeats for answer in prepared if isinstance(answer, Ready)))
    for _ in range(plan.turns):
        for runner in rng.sample(list(runners), len(runners)):
            runner.step(go)
        turned()
    return [answer for runner in runners if isinstance(answer := runner.step(go), CaseDone)]


def _request(plan: PairedPlan, part: CardPlan, number: int, team: Sequence[record.Side]) -> TimingRequest:
    device = environment.kind(plan.environment)
    return TimingRequest(
        device=device,
        uuid=plan.environment.device.uuid,
        card=part.card.name,
        card_file=part.card.file.absolute(),
        libraries=tuple((side, LibraryAt.of(part.libraries[side])) for side in team),
        cases=tuple(AskedCase(id=case.id, axes=case.axes) for case in part.cases),
        rounds=plan.rounds,
        cache_bytes=cache_bytes(device, plan.environment.device.l2_bytes),
        seed=f"{plan.seed}/{number}",
    )


def cache_bytes(device: environment.DeviceKind, cache: int | None) -> int:
    """How much input data must be read between two uses of one set: twice the L2 of a GPU.

    On a CPU as much as its last level, up to what takes no noticeable time to fill.
    """
    known = UNKNOWN_CACHE if cache is None else cache
    return 2 * known if device == "cuda" else min(known, MAX_CPU_CACHE)


def merged(timings: Sequence[record.Timing]) -> record.Timing:
    """One timing out of those of processes that took turns; the reference that ran beside the head is the one kept."""
    if len(timings) == 1:
        return timings[0]
    ordered = sorted(timings, key=lambda timing: "head" in timing.samples_us)
    maps = ("samples_us", "graph_us", "calls", "errors", "autotuned")
    joined = {name: {k: v for timing in ordered for k, v in getattr(timing, name).items()} for name in maps}
    return ordered[-1].model_copy(update=joined)
