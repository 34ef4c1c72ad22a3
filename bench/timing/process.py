"""One process of a comparison: fresh, with all libraries in it; where they cannot share one, several take turns."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from typing import Literal, Protocol

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt, Sides
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.system import environment, orphans, progress
from kernelgate.bench.system.environment import DeviceKind
from kernelgate.bench.system.worker import Ready, WorkerPool, WorkerProcess
from kernelgate.bench.timing import case_timing
from kernelgate.bench.timing.batches import MeasuredProcess, NotSharedError, ProcessError, Runner, Team
from kernelgate.bench.timing.case_timing import CaseResult
from kernelgate.bench.timing.protocol import PrepareCase, TimingRequest

VERIFIER = "kernelgate.bench.timing.verifier:verify"
WORKER = "kernelgate.bench.timing.worker:make_calls"
FIRST = {VERIFIER: 1, WORKER: 1}
"""The processes that a comparison begins with."""
UNKNOWN_CACHE = 64 << 20
MAX_CPU_CACHE = 32 << 20
SPARE_CORES = 4
"""With so many cores, the next processes may start while one is timed."""
SPARES = 2
"""As many as the witness needs."""


class TimedPart(Protocol):
    """What a process times of one card."""

    @property
    def card(self) -> CardFacts: ...

    @property
    def libraries(self) -> dict[record.Side, Library]:
        """By side."""

    def role(self, together: bool) -> record.Role:
        """Of its processes, whose sides share one where they are `together`."""


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
    def alone(self) -> CardPlan:
        """Without the pinned commit, which may no longer run, such as with a newer torch."""
        return replace(self, sides=replace(self.sides, pinned=None))

    def alone_because(self, why: str) -> record.Note:
        text = f"the head of {self.card.name} was measured without the pinned commit: {why}"
        return record.Note(code="head_alone", card=self.card.name, text=text)

    @property
    def recorded(self) -> tuple[record.Case, ...]:
        return tuple(map(self.card.recorded_case, self.cases))

    def role(self, together: bool) -> record.Role:
        if self.sides.base is None:
            return "block"
        return "paired" if together else "alternating"


@dataclass(frozen=True)
class Timed:
    """What one process has given."""

    process: record.Process
    notes: tuple[record.Note, ...]
    calling_s: float
    """Device time of the calls, …"""
    verifying_s: float
    """… and what drawing inputs and looking at outputs took of it."""
    contradictions: tuple[str, ...] = ()
    """Clocks of the process that the device's own contradicts, a sentence each."""


@dataclass(frozen=True)
class Measuring:
    """How all processes of a run measure."""

    seed: int
    rounds: int
    patience_s: float
    pause_when_capped: bool
    single: bool
    """Whether there is one card alone."""


@dataclass
class Setup:
    """What all processes of a run share: the device, the verifier, and memory for both."""

    environment: record.Environment
    how: Measuring
    workers: WorkerPool
    own: frozenset[int] = field(default_factory=orphans.children)
    """Children of this process that were there before."""
    verifier: Runner | None = None
    hosted: bool = False
    """Whether CUDA refuses to share memory, so that the verifier works in the measured process."""
    references: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """By card and case, why the reference cannot be timed, or that it can: what the first process found out."""
    secret: str = field(default_factory=partial(secrets.token_hex, 16))
    """Inputs are drawn from it. It is in no file and no message to a measured process, which could compute them."""

    @property
    def device(self) -> DeviceKind:
        return environment.kind(self.environment)

    def worker(self) -> WorkerProcess:
        """A process that has not loaded anything yet; the next ones start meanwhile where cores are free."""
        taken = self.workers.take(WORKER)
        if self.device == "cuda" and len(os.sched_getaffinity(0)) >= SPARE_CORES:
            self.workers.prepare({WORKER: SPARES})
        return taken

    def verifying(self) -> Runner:
        if self.verifier is None:
            self.verifier = Runner(self.workers.take(VERIFIER), "the verifier", self.how.patience_s)
        return self.verifier

    def end_orphans(self, name: str) -> tuple[record.Note, ...]:
        """Ends what the libraries of a process have started and left, and says so."""
        left = orphans.end_new_children(self.own | self.workers.pids)
        text = f"{name}: it left {', '.join(left)} running, which was ended"
        return (record.Note(code="left_processes", text=text),) if left else ()


def cache_bytes(device: DeviceKind, cache: int | None) -> int:
    """How much input data must be read between two uses of one part: twice the L2 of a GPU.

    On a CPU as much as its last level, up to what takes no noticeable time to fill.
    """
    known = UNKNOWN_CACHE if cache is None else cache
    return 2 * known if device == "cuda" else min(known, MAX_CPU_CACHE)


# ----------------------------------------------------------------------------------------------------------------------
# Together, or in processes that take turns
# ----------------------------------------------------------------------------------------------------------------------


def alternating_because(reason: str) -> record.Note:
    return record.Note(
        code="alternating",
        text="base and head cannot be loaded into one process, so two processes took turns and precision is lower: up "
        f"to about 1% of difference can come from the processes themselves ({reason})",
    )


def teams(seed: int, part: TimedPart, number: int, together: bool) -> list[list[record.Side]]:
    """Which sides share a process, in the order in which processes start and libraries are loaded."""
    sides = list(part.libraries)
    if together:
        return [random.Random(f"{seed}/{number}/load").sample(sides, len(sides))]  # noqa: S311 - not for secrets
    return [[side] for side in (sides if number % 2 == 0 else reversed(sides))]


# ----------------------------------------------------------------------------------------------------------------------
# One process
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """Which process this is, and what it times."""

    part: TimedPart
    cases: tuple[CaseFacts, ...]
    number: int
    together: bool
    id: str
    name: str
    """For people."""


def timed(setup: Setup, turn: Turn, advance: progress.Advance) -> Timed:
    """Times the cases in fresh processes. Raises ProcessError."""
    return hosted_where_refused(setup, lambda: _timed(setup, turn, advance))


def hosted_where_refused(setup: Setup, time_it: Callable[[], Timed]) -> Timed:
    """What `time_it` gives; where memory cannot be shared, from now on with the verifier in the measured process."""
    try:
        return time_it()
    except NotSharedError as refusal:
        setup.hosted = True
        done = time_it()
        text = (
            "CUDA refuses to share memory between processes here, so inputs and references lay in the measured process "
            f"({refusal})"
        )
        return replace(done, notes=(*done.notes, record.Note(code="verified_in_process", text=text)))


def _timed(setup: Setup, turn: Turn, advance: progress.Advance) -> Timed:
    split = teams(setup.how.seed, turn.part, turn.number, turn.together)
    results: list[list[CaseResult]] = []
    started_at, begun = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        measured = started(setup, turn.part, split, [turn.name] * len(split), stack)
        teams_ = verified_teams(setup, measured)
        for case in turn.cases:
            turned = partial(advance, f"{turn.name}, {case.id}")
            results.append([time_case(setup, turn, case, team, turned) for team in teams_])
    every = [result for of_case in results for result in of_case]
    notes = [note for result in every for note in result.notes]
    calling_s, verifying_s = sum(one.calling_s for one in every), sum(one.verifying_s for one in every)
    notes += setup.end_orphans(turn.name)
    made = record.Process(
        id=turn.id,
        environment=setup.environment.id,
        role="block" if len(teams_) > 1 else turn.part.role(turn.together),
        loaded=tuple(side for team in split for side in team),
        seed=f"{setup.how.seed}/{turn.number}",
        started_at=started_at.isoformat(timespec="seconds"),
        gpu_seconds=round(calling_s + verifying_s, 3) if setup.device == "cuda" else None,
        wall_seconds=round(time.monotonic() - begun, 3),
        exit=0,
        timings=tuple(merged([result.timing for result in of_case]) for of_case in results),
    )
    contradictions = tuple(one.contradiction for one in every if one.contradiction)
    return Timed(made, tuple(notes), calling_s, verifying_s, contradictions)


def started(
    setup: Setup, part: TimedPart, split: Sequence[Sequence[record.Side]], names: Sequence[str], stack: ExitStack
) -> list[MeasuredProcess]:
    """A fresh process for each of these groups of sides, which has loaded them. They end with the stack."""
    measured = []
    for sides, name in zip(split, names, strict=True):
        child = setup.worker()
        stack.callback(child.__exit__)
        runner = Runner(child, name, setup.how.patience_s)
        request = TimingRequest(
            device=setup.device,
            uuid=setup.environment.device.uuid,
            card=part.card.name,
            card_file=part.card.file.absolute(),
            libraries=tuple((side, LibraryAt.of(part.libraries[side])) for side in sides),
        )
        runner.send(request)
        measured.append(MeasuredProcess(runner, tuple(sorted(sides))))
    for one in measured:  # they load side by side
        one.runner.answer(Ready)
    return measured


def verified_teams(setup: Setup, measured: Sequence[MeasuredProcess]) -> list[Team]:
    """One, unless each process has a verifier and memory of its own."""
    if setup.hosted:
        return [Team(one.runner, (one,)) for one in measured]
    return [Team(setup.verifying(), tuple(measured))]


def asked_case(setup: Setup, turn: Turn, case: CaseFacts, fresh_calls: int | None = None) -> PrepareCase:
    return PrepareCase(
        id=case.id,
        card_file=turn.part.card.file.absolute(),
        axes=case.axes,
        device=setup.device,
        cache_bytes=cache_bytes(setup.device, setup.environment.device.l2_bytes),
        seed=f"{setup.secret}/{turn.id}/{case.id}",
        fd=setup.workers.fd,
        shared=not setup.hosted,
        fresh_calls=fresh_calls,
    )


def time_case(setup: Setup, turn: Turn, case: CaseFacts, team: Team, turned: Callable[[], None]) -> CaseResult:
    """One case of one process, from inputs to timing. The first one warms the process up, too."""
    key = (turn.part.card.name, case.id)
    seconds = case_timing.WARM_UP_S if case is turn.cases[0] else case_timing.CASE_WARM_UP_S
    rng = random.Random(f"{setup.how.seed}/{turn.number}/{'/'.join(key)}")  # noqa: S311 - not for secrets
    known: Literal["time", "leave"] = "leave" if setup.references.get(key) else "time"
    reference = known if key in setup.references else "try"
    samples = case_timing.prepared(team, asked_case(setup, turn, case), case, rng, reference)
    if "head" in (side for one in team.measured for side in one.sides):
        setup.references.setdefault(key, samples.no_reference)
    case_timing.warm_up(team, samples, seconds, setup.how.pause_when_capped and setup.device == "cuda")
    case_timing.time_rounds(team, samples, setup.how.rounds, turned)
    if setup.device == "cuda" and turn.number == 0:
        case_timing.replay_graphs(team, samples)
    return case_timing.finished(team, samples, turn.part.card.name)


def merged(timings: Sequence[record.Timing]) -> record.Timing:
    """One timing out of those of processes that each had a verifier of their own."""
    if len(timings) == 1:
        return timings[0]
    ordered = sorted(timings, key=lambda timing: "head" in timing.samples_us)
    maps = (
        "samples_us",
        "positions",
        "previous",
        "started_us",
        "sm_mhz",
        "graph_us",
        "calls",
        "errors",
        "autotuned",
        "memory_bytes",
    )
    joined = {name: {k: v for timing in ordered for k, v in getattr(timing, name).items()} for name in maps}
    return ordered[-1].model_copy(update=joined)


# ----------------------------------------------------------------------------------------------------------------------
# Several commits beside each other, for a bisection
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CommitsPlan:
    """One case of these commits, by `commit:SHA`."""

    card: CardFacts
    case: CaseFacts
    libraries: dict[record.Side, Library]

    def role(self, together: bool) -> record.Role:  # noqa: ARG002 - a search has but one
        return "bisect"


def commit_side(sha: str) -> record.Side:
    return f"commit:{sha}"


def commits_clash(libraries: Sequence[Library]) -> str | None:
    """Why not all of these can share a process."""
    pairs = combinations(libraries, 2)
    # A file that two commits have in common, whose cards differ, is loaded once.
    found = (Sides(one, other).clash for one, other in pairs if one.manifest.sha256 != other.manifest.sha256)
    return next((why for why in found if why), None)


def timed_commits(setup: Setup, plan: CommitsPlan, number: int, together: bool) -> Timed:
    """Times the case of all commits in one process, or in processes that take turns. Raises ProcessError."""
    steps = -(-setup.how.rounds // case_timing.ROUNDS_PER_TURN)
    # Whichever process starts first may be slow for good, so it is drawn.
    rng = random.Random(f"{setup.how.seed}/{number}/order")  # noqa: S311 - not for secrets
    shuffled = dict(rng.sample(list(plan.libraries.items()), len(plan.libraries)))
    drawn = CommitsPlan(plan.card, plan.case, shuffled)
    name = f"process {number}"
    turn = Turn(part=drawn, cases=(plan.case,), number=number, together=together, id=f"bisect-{number}", name=name)
    with progress.track(f"bisect, {name}, {len(shuffled)} commits", steps) as advance:
        return timed(setup, turn, advance)


def commits_at_fault(setup: Setup, plan: CommitsPlan, number: int) -> Mapping[record.Side, str]:
    """Which commits cannot be timed even without the others, and why. None of them: they do not get on together."""
    found: dict[record.Side, str] = {}
    for at, (one, library) in enumerate(plan.libraries.items(), 1):
        alone = CommitsPlan(plan.card, plan.case, {one: library})
        turn = Turn(alone, (plan.case,), number, together=True, id=f"bisect-{number}-{at}", name="it")
        try:
            timed(setup, turn, lambda _: None)
        except ProcessError as error:
            found[one] = error.fault.replace(one, "it")
    return found
