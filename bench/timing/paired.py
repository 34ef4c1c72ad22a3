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

from pydantic import TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides, build_records
from kernelgate.bench.errors import KernelgateError, RecordError
from kernelgate.bench.kernel import case_list
from kernelgate.bench.kernel.case_list import SuiteCase
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import environment, lock, progress
from kernelgate.bench.system.worker_process import Child, ChildError, Message
from kernelgate.bench.timing.protocol import (
    ROUNDS_PER_TURN,
    CaseDone,
    Doing,
    Failed,
    FromChild,
    Go,
    Ready,
    TimingRequest,
)

PROCESSES = 5
ROUNDS = 100
PATIENCE_S = 300.0
"""A process that does not answer for so long is considered hung."""
UNKNOWN_CACHE = 64 << 20
MAX_CPU_CACHE = 32 << 20

Stop = Callable[[RunRecord], bool]
"""Given the record after a process: is it enough?"""
_MESSAGE: TypeAdapter[Doing | Ready | CaseDone | Failed] = TypeAdapter(FromChild)


@dataclass(frozen=True)
class PairedPlan:
    """What to time. Without a base, the head is timed alone, beside the reference."""

    base: Library | None
    head: Library
    cases: tuple[SuiteCase, ...]
    environment: record.Environment
    seed: int
    processes: int = PROCESSES
    rounds: int = ROUNDS
    patience_s: float = PATIENCE_S

    @property
    def libraries(self) -> dict[record.Side, Library]:
        return dict(Sides(self.base, self.head).named)

    @property
    def turns(self) -> int:
        return -(-self.rounds // ROUNDS_PER_TURN)


class ProcessError(KernelgateError):
    """A process could not be finished."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


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
    current = _noted(current, f"seed {plan.seed} from process {finished + 1} on")
    together = _together(plan, current)
    try:
        with lock.device(plan.environment.device.uuid), progress.track("bench", _steps(plan, finished)) as advance:
            for number in range(finished, plan.processes):
                try:
                    process, notes = _process(plan, number, together, advance)
                except LoadError as error:
                    if not together or plan.base is None or number > finished:
                        raise
                    together = False
                    current = _noted(current, _alternating_because(str(error)))
                    process, notes = _process(plan, number, together, advance)
                current = _noted(_grown(current, process), *notes)
                record.write(current, path)
                if stop(current):
                    break
    except BaseException as error:
        if current.processes:
            record.write(_ended(current, "failed" if isinstance(error, KernelgateError) else "cancelled"), path)
        raise
    current = _ended(current, "complete")
    record.write(current, path)
    return current


def _ended(current: RunRecord, how: Literal["complete", "failed", "cancelled"]) -> RunRecord:
    return current.model_copy(update={"run": current.run.model_copy(update={"ended": how})})


def process_count(record_: RunRecord) -> int:
    """How many processes every case has."""
    return min((len(case.processes) for case in record.timed_cases(record_)), default=0)


def _begun(plan: PairedPlan, skeleton: RunRecord) -> RunRecord:
    begun = skeleton.model_copy(
        update={
            "environments": (plan.environment,),
            "cards": (case_list.ATTENTION,),
            "builds": builds(plan),
            "cases": tuple(map(case_list.recorded, plan.cases)),
            "processes": (),
        }
    )
    if plan.base is not None and plan.base.manifest.key == plan.head.manifest.key:
        begun = _noted(begun, "base and head are the same library, which is timed against itself")
    reason = clash(plan)
    return _noted(begun, _alternating_because(reason)) if reason else begun


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
    before = {build.side: build.library_sha256 for build in old.builds}
    now = {side: library.manifest.sha256 for side, library in plan.libraries.items()}
    if before != now:
        reasons.append("it was measured with other libraries")
    if [case.key for case in old.cases] != [case_list.recorded(case).key for case in plan.cases]:
        reasons.append(f"it holds other cases ({', '.join(map(_named, old.cases)) or 'none'})")
    timed = [timing for process in old.processes for timing in process.timings]
    rounds = {len(samples) for timing in timed for samples in timing.samples_us.values()}
    if rounds - {plan.rounds}:
        reasons.append(f"its processes have {', '.join(map(str, sorted(rounds)))} rounds, not {plan.rounds}")
    return tuple(reasons)


def _named(case: record.Case) -> str:
    """The id; with its card where that is not the one that is measured here."""
    return case.id if case.card == case_list.CARD else f"{case.id} of {case.card or 'no card'}"


def builds(plan: PairedPlan) -> tuple[record.Build, ...]:
    """How the libraries of the plan came to be."""
    return build_records(Sides(plan.base, plan.head), case_list.CARD)


def _grown(current: RunRecord, process: record.Process) -> RunRecord:
    return current.model_copy(update={"processes": (*current.processes, process)})


def _noted(current: RunRecord, *notes: str) -> RunRecord:
    known = {note.text for note in current.notes}
    new = tuple(record.Note(text=text) for text in dict.fromkeys(notes) if text not in known)
    return current.model_copy(update={"notes": (*current.notes, *new)})


def _steps(plan: PairedPlan, finished: int) -> int:
    return (plan.processes - finished) * len(plan.cases) * plan.turns


# ----------------------------------------------------------------------------------------------------------------------
# Together, or in processes that take turns
# ----------------------------------------------------------------------------------------------------------------------


def clash(plan: PairedPlan) -> str | None:
    """Why base and head cannot share a process."""
    if plan.base is None or plan.base.manifest.key == plan.head.manifest.key:
        return None
    if plan.base.manifest.namespace != plan.head.manifest.namespace:
        return None
    return f"both register their operators as torch.ops.{plan.head.manifest.namespace}"


def _together(plan: PairedPlan, current: RunRecord) -> bool:
    """A run that began with alternating processes continues with them."""
    return clash(plan) is None and all(process.role != "alternating" for process in current.processes)


def _alternating_because(reason: str) -> str:
    return (
        "base and head cannot be loaded into one process, so two processes took turns and precision is lower: up to "
        f"about 1% of difference can come from the processes themselves ({reason})"
    )


def _teams(plan: PairedPlan, number: int, together: bool) -> list[list[record.Side]]:
    """Which sides share a process, in the order in which processes start and libraries are loaded."""
    sides = list(plan.libraries)
    if together:
        return [random.Random(f"{plan.seed}/{number}/load").sample(sides, len(sides))]  # noqa: S311 - not for secrets
    return [[side] for side in (sides if number % 2 == 0 else reversed(sides))]


# ----------------------------------------------------------------------------------------------------------------------
# One process
# ----------------------------------------------------------------------------------------------------------------------


class _Runner:
    """A worker process, led step by step."""

    def __init__(self, child: Child, name: str, patience_s: float) -> None:
        self._child = child
        self._name = name
        self._patience_s = patience_s
        self._doing = Doing(what="starting", loading=True)

    def step(self, message: Message) -> Ready | CaseDone:
        """Sends a message and waits until the step that it asks for is done."""
        try:
            self._child.send(message)
            while True:
                answer = self._child.receive(_MESSAGE, self._patience_s)
                if isinstance(answer, Failed):
                    raise self._error(answer.why)
                if not isinstance(answer, Doing):
                    return answer
                self._doing = answer
        except ChildError as error:
            raise self._error(f"the process {error}") from None

    def _error(self, why: str) -> ProcessError:
        if self._doing.loading:
            return LoadError(f"{self._name} failed while {self._doing.what}: {why}")
        return ProcessError(
            f"{self._name} failed while {self._doing.what}: {why}. `kernelgate fuzz` shows which inputs a kernel fails "
            "on; earlier processes are kept, and --resume continues after them"
        )


def _process(
    plan: PairedPlan, number: int, together: bool, advance: progress.Advance
) -> tuple[record.Process, list[str]]:
    name = f"process {number + 1} of {plan.processes}"
    rng = random.Random(f"{plan.seed}/{number}/turns")  # noqa: S311 - not for secrets
    teams = _teams(plan, number, together)
    timings: list[record.Timing] = []
    notes: list[str] = []
    started_at, begun = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        runners = []
        for team in teams:
            runner = _Runner(stack.enter_context(Child("kernelgate.bench.timing.worker")), name, plan.patience_s)
            runner.step(_request(plan, number, team))
            runners.append(runner)
        for case in plan.cases:
            done = _case(plan, runners, rng, partial(advance, f"{name}, {case.id}"))
            timings.append(merged([answer.timing for answer in done]))
            notes += [note for answer in done for note in answer.notes]
    process = record.Process(
        id=str(number + 1),
        environment=plan.environment.id,
        role=_role(plan, together),
        loaded=tuple(side for team in teams for side in team),
        seed=f"{plan.seed}/{number}",
        started_at=started_at.isoformat(timespec="seconds"),
        wall_seconds=round(time.monotonic() - begun, 3),
        exit=0,
        timings=tuple(timings),
    )
    return process, notes


def _role(plan: PairedPlan, together: bool) -> record.Role:
    if plan.base is None:
        return "block"
    return "paired" if together else "alternating"


def _case(
    plan: PairedPlan, runners: Sequence[_Runner], rng: random.Random, turned: Callable[[], None]
) -> list[CaseDone]:
    """Prepares the case everywhere, lets the runners take turns in random order, and collects what they timed."""
    prepared = [runner.step(Go(inner_repeats=1)) for runner in runners]
    go = Go(inner_repeats=max(answer.inner_repeats for answer in prepared if isinstance(answer, Ready)))
    for _ in range(plan.turns):
        for runner in rng.sample(list(runners), len(runners)):
            runner.step(go)
        turned()
    return [answer for runner in runners if isinstance(answer := runner.step(go), CaseDone)]


def _request(plan: PairedPlan, number: int, team: Sequence[record.Side]) -> TimingRequest:
    device = environment.kind(plan.environment)
    return TimingRequest(
        device=device,
        uuid=plan.environment.device.uuid,
        libraries=tuple((side, plan.libraries[side].folder.absolute()) for side in team),
        cases=tuple(case.id for case in plan.cases),
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
    maps = ("samples_us", "graph_us", "calls", "errors")
    joined = {name: {k: v for timing in ordered for k, v in getattr(timing, name).items()} for name in maps}
    return ordered[-1].model_copy(update=joined)
