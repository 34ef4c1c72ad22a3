"""The duel: base against head, timed in several launches, and the record that grows with each of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.errors import KernelgateError, RecordError
from kernelgate.bench.kernel.suite import SuiteCase
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

LAUNCHES = 5
ROUNDS = 100
PATIENCE_S = 300.0
"""A launch that says nothing for so long is taken to hang."""
UNKNOWN_CACHE = 64 << 20
MOST_CPU_CACHE = 32 << 20

Stop = Callable[[RunRecord], bool]
"""Given the record after a launch: is it enough?"""
Launches = Mapping[str, record.Launch]
"""One launch of every case, by id."""

_MESSAGE: TypeAdapter[Doing | Ready | CaseDone | Failed] = TypeAdapter(FromChild)


@dataclass(frozen=True)
class PairedPlan:
    """What to time. Without a base, the head is timed alone, beside the oracle."""

    base: Library | None
    head: Library
    cases: tuple[SuiteCase, ...]
    environment: record.Environment
    seed: int
    launches: int = LAUNCHES
    rounds: int = ROUNDS
    patience_s: float = PATIENCE_S

    @property
    def libraries(self) -> dict[record.Side, Library]:
        return {"head": self.head} if self.base is None else {"base": self.base, "head": self.head}

    @property
    def turns(self) -> int:
        return -(-self.rounds // ROUNDS_PER_TURN)


class LaunchError(KernelgateError):
    """A launch could not be finished."""


class LoadError(LaunchError):
    """A library could not be loaded in the company it was in."""


# ----------------------------------------------------------------------------------------------------------------------
# The run
# ----------------------------------------------------------------------------------------------------------------------


def never(_: RunRecord) -> bool:
    """Stops only after the planned number of launches."""
    return False


def run(plan: PairedPlan, skeleton: RunRecord, path: Path, stop: Stop = never, resume: bool = False) -> RunRecord:
    """Times the plan launch by launch. After each, the record in `path` holds all launches so far.

    `skeleton` is a record with whatever the caller knows (subject, fuzz, …); cases, environment and build are filled in
    here. With `resume`, the record in `path` is gone on with; a launch that was cut short is timed again. `stop` may
    end the run early. Raises LaunchError naming the launch and the case where a process crashed, hung or could not load
    its library; the launches before it stay in `path`. Raises RecordError where the record to resume does not fit.
    """
    resumed = resume and path.exists()
    current = _gone_on_with(plan, skeleton, path) if resumed else _begun(plan, skeleton)
    finished = launch_count(current)
    if finished >= plan.launches or (finished and stop(current)):
        progress.say(f"{path} holds {finished} launches already: nothing is left to time")
        return current
    progress.say(f"seed {plan.seed}")
    current = _noted(current, f"seed {plan.seed} from launch {finished + 1} on")
    together = _together(plan, current)
    with lock.device(plan.environment.device.uuid), progress.track("bench", _steps(plan, finished)) as advance:
        for number in range(finished, plan.launches):
            try:
                launches, notes = _launch(plan, number, together, advance)
            except LoadError as error:
                if not together or plan.base is None or number > finished:
                    raise
                together = False
                current = _noted(current, _alternating_because(str(error)))
                launches, notes = _launch(plan, number, together, advance)
            current = _noted(_grown(plan, current, launches), *notes)
            record.write(current, path)
            if stop(current):
                break
    return current


def launch_count(record_: RunRecord) -> int:
    """How many launches every case has."""
    return min((len(case.launches) for case in record_.cases), default=0)


def _begun(plan: PairedPlan, skeleton: RunRecord) -> RunRecord:
    begun = skeleton.model_copy(update={"environment": plan.environment, "build": builds(plan), "cases": ()})
    if plan.base is not None and plan.base.manifest.key == plan.head.manifest.key:
        begun = _noted(begun, "base and head are the same library, which is timed against itself")
    reason = clash(plan)
    return _noted(begun, _alternating_because(reason)) if reason else begun


def _gone_on_with(plan: PairedPlan, skeleton: RunRecord, path: Path) -> RunRecord:
    old = record.read(path)
    reasons = unfit(plan, old)
    if reasons:
        raise RecordError(f"{path} cannot be gone on with: {'; '.join(reasons)}; write to another file")
    kept = {"cases": old.cases, "notes": old.notes, "build": old.build, "environment": old.environment}
    return skeleton.model_copy(update={**kept, "fuzz": skeleton.fuzz or old.fuzz})


def unfit(plan: PairedPlan, old: RunRecord) -> tuple[str, ...]:
    """Why further launches of the plan cannot stand in the record `old`; empty where they can."""
    reasons = list(environment.differences(old.environment, plan.environment))
    before = {build.side: build.library_sha256 for build in old.build}
    now = {side: library.manifest.sha256 for side, library in plan.libraries.items()}
    if before != now:
        reasons.append("it was measured with other libraries")
    if [case.id for case in old.cases] != [case.id for case in plan.cases]:
        reasons.append(f"it holds other cases ({', '.join(case.id for case in old.cases) or 'none'})")
    rounds = {len(samples) for case in old.cases for launch in case.launches for samples in launch.samples_us.values()}
    if rounds - {plan.rounds}:
        reasons.append(f"its launches have {', '.join(map(str, sorted(rounds)))} rounds, not {plan.rounds}")
    return tuple(reasons)


def builds(plan: PairedPlan) -> tuple[record.Build, ...]:
    """How the libraries of the plan came to be."""
    return tuple(
        record.Build(
            side=side,
            sha=library.manifest.sha,
            seconds=library.manifest.seconds,
            cached=library.cached,
            targets=library.manifest.targets,
            library_sha256=library.manifest.sha256,
        )
        for side, library in plan.libraries.items()
    )


def _grown(plan: PairedPlan, current: RunRecord, launches: Launches) -> RunRecord:
    before = {case.id: case.launches for case in current.cases}
    cases = tuple(
        record.Case(
            id=case.id, params=case.params, work=case.work, launches=(*before.get(case.id, ()), launches[case.id])
        )
        for case in plan.cases
    )
    return current.model_copy(update={"cases": cases})


def _noted(current: RunRecord, *notes: str) -> RunRecord:
    return current.model_copy(update={"notes": tuple(dict.fromkeys((*current.notes, *notes)))})


def _steps(plan: PairedPlan, finished: int) -> int:
    return (plan.launches - finished) * len(plan.cases) * plan.turns


# ----------------------------------------------------------------------------------------------------------------------
# Together, or in processes that take turns
# ----------------------------------------------------------------------------------------------------------------------


def clash(plan: PairedPlan) -> str | None:
    """Why base and head can never stand in one process."""
    if plan.base is None or plan.base.manifest.key == plan.head.manifest.key:
        return None
    if plan.base.manifest.namespace != plan.head.manifest.namespace:
        return None
    return f"both register their operators as torch.ops.{plan.head.manifest.namespace}"


def _together(plan: PairedPlan, current: RunRecord) -> bool:
    """A run that began in alternating processes goes on so."""
    orders = {launch.order for case in current.cases for launch in case.launches}
    return clash(plan) is None and "alternating" not in orders


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
# One launch
# ----------------------------------------------------------------------------------------------------------------------


class _Runner:
    """A launch process, led step by step."""

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

    def _error(self, why: str) -> LaunchError:
        if self._doing.loading:
            return LoadError(f"{self._name} failed while {self._doing.what}: {why}")
        return LaunchError(
            f"{self._name} failed while {self._doing.what}: {why}. `kernelgate fuzz` shows which inputs a kernel fails "
            "on; earlier launches are kept, and --resume goes on after them"
        )


def _launch(plan: PairedPlan, number: int, together: bool, advance: progress.Advance) -> tuple[Launches, list[str]]:
    name = f"launch {number + 1} of {plan.launches}"
    rng = random.Random(f"{plan.seed}/{number}/turns")  # noqa: S311 - not for secrets
    launches: dict[str, record.Launch] = {}
    notes: list[str] = []
    with ExitStack() as stack:
        runners = []
        for team in _teams(plan, number, together):
            runner = _Runner(stack.enter_context(Child("kernelgate.bench.timing.worker")), name, plan.patience_s)
            runner.step(_request(plan, number, team))
            runners.append(runner)
        for case in plan.cases:
            done = _case(plan, runners, rng, partial(advance, f"{name}, {case.id}"))
            launches[case.id] = merged([answer.launch for answer in done])
            notes += [note for answer in done for note in answer.notes]
    return launches, notes


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
    return 2 * known if device == "cuda" else min(known, MOST_CPU_CACHE)


def merged(launches: Sequence[record.Launch]) -> record.Launch:
    """One launch out of those of processes that took turns; the oracle that ran beside the head is the one kept."""
    if len(launches) == 1:
        return launches[0]
    ordered = sorted(launches, key=lambda launch: "head" in launch.samples_us)
    head = ordered[-1]
    return head.model_copy(
        update={
            "order": "alternating",
            "samples_us": {side: times for launch in ordered for side, times in launch.samples_us.items()},
            "graph_us": {side: time for launch in ordered for side, time in launch.graph_us.items()},
            "outputs": {side: check for launch in ordered for side, check in launch.outputs.items()},
        }
    )
