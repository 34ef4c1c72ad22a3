"""One fresh process of a comparison with all libraries in it; several that take turns, where they cannot share one; and
the witness: base and head, each alone in a process without the other, timed by clocks that neither reaches.

What one library does to the other, to the clock or to the checks of a process that they share, it cannot do to the
witness. On a GPU its time is between two probes, which the verifier reads, and the leader's own clock says whether that
can be right; on a CPU it is the leader's. Every call reads inputs that its process has never seen. The witness is less
precise than the paired comparison, and there to contradict it.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt, imports
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system import environment, orphans, progress
from kernelgate.bench.system.environment import DeviceKind
from kernelgate.bench.system.worker import Message, Ready, WorkerPool
from kernelgate.bench.timing import case_timing, protocol
from kernelgate.bench.timing.case_timing import (
    CaseResult,
    CaseSamples,
    NotSharedError,
    ProcessError,
    Runner,
    Sample,
    Team,
)
from kernelgate.bench.timing.hold import LateBatch, waits_for_device

VERIFIER = "kernelgate.bench.timing.verifier:verify"
WORKER = "kernelgate.bench.timing.worker:make_calls"
MAPS_MEMORY = "kernelgate.bench.timing.verifier:map_memory"
UNKNOWN_CACHE = 64 << 20
MAX_CPU_CACHE = 32 << 20
SPARE_CORES = 4
"""With so many cores, the next processes may start while a GPU is timed; else between two batches alone."""
SPARES = 2

WITNESS_TURNS = {"cuda": 1, "cpu": 3}
"""Fresh processes of each side. On a CPU, where its code lies makes a kernel up to 15% faster or slower in a process,
and a core may be slower by as much for seconds: no number of batches of one process shows either."""
BATCHES = {"cuda": 8, "cpu": 5}
BATCH_US = {"cuda": 3_000.0, "cpu": 20_000.0}
"""Of calls in a batch: the leader's clock starts and stops with a message, which takes about 0.1 ms."""
CLOCKS_AGREE_US = 150.0
CLOCKS_AGREE_SHARE = 0.05
"""By so much, and such a share of a batch, the leader's clock may differ from the device's on one side alone."""
TOUCHED = "did not stand still, or another process stopped it, or gave it other cores or another priority"
MOST_CALLS = 384
EMPTY = 3
SPARE, SPARE_US = 1.5, 200.0
"""How much longer a hold lasts than the slower host needed to queue a batch."""


@dataclass(frozen=True)
class Measuring:
    seed: int
    rounds: int = 100
    patience_s: float = 300.0
    """A process that does not answer for so long is considered hung."""
    lock_clocks: bool = False


@dataclass
class Setup:
    """What all processes of a run share: the device, the verifier, and memory for both."""

    environment: record.Environment
    how: Measuring
    workers: WorkerPool
    own: frozenset[int] = field(default_factory=orphans.children)
    left: list[str] = field(default_factory=list)
    """The names of what libraries started and left behind, which was ended."""
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

    def end_left(self) -> None:
        """Ends what no living process has started but this one: it would go on where its side stands still."""
        self.left += orphans.end_new_children(self.own | self.workers.pids)

    def quiet(self) -> AbstractContextManager[None]:
        """While it lasts, processes that start take nothing of what is being timed."""
        spare = self.device == "cuda" and len(os.sched_getaffinity(0)) >= SPARE_CORES
        return nullcontext() if spare else self.workers.paused()

    def teams(self, measured: Sequence[Runner]) -> list[Team]:
        """One, unless each process has a verifier and memory of its own."""
        if self.hosted:
            return [Team(one, (one,), self.quiet) for one in measured]
        if self.verifier is None:
            self.verifier = Runner(self.workers.take(VERIFIER), "the verifier", self.how.patience_s)
        return [Team(self.verifier, tuple(measured), self.quiet)]


@dataclass(frozen=True)
class Turn:
    """Which process of a card this is, and what it times."""

    card: CardFacts
    libraries: dict[record.Side, Library]
    cases: tuple[CaseFacts, ...]
    number: int
    role: record.Role
    id: str
    name: str
    together: bool = True
    following: Mapping[record.Side, Library] = field(default_factory=dict)
    """What is most likely loaded next; empty where nothing is."""
    known: RunRecord | None = None
    """For the witness: the paired comparison, which says how long a call takes."""

    def rng(self, seed: int, words: str) -> random.Random:
        return random.Random(f"{seed}/{self.number}/{words}")  # noqa: S311 - not for secrets

    def split(self, seed: int) -> list[list[record.Side]]:
        """Which sides share a process, in the order in which processes start and libraries are loaded."""
        sides = list(self.libraries)
        if self.together:
            return [self.rng(seed, "load").sample(sides, len(sides))]
        return [[side] for side in (sides if self.number % 2 == 0 else reversed(sides))]


@dataclass(frozen=True)
class Timed:
    process: record.Process
    results: tuple[CaseResult, ...]
    notes: tuple[record.Note, ...]


class CrashError(ProcessError):
    """A call crashed or hung in one of the cases."""

    def __init__(self, error: ProcessError, case: CaseFacts, before: Timed) -> None:
        super().__init__(str(error))
        self.fault, self.crash, self.hung, self.sides = error.fault, error.crash, error.hung, error.sides
        self.case = case
        self.before = before
        """What of the process was finished by then."""


def crashed(setup: Setup, turn: Turn, side: record.Side, alone: CrashError) -> Timed:
    """What is recorded of a side that crashes or hangs in a process without the other."""
    case, calls = alone.case, {side: record.Calls(failed=1, crashed=alone.crash, hung=alone.hung)}
    made = record.Process(
        id=f"{turn.id}-{case.id}-{side}",
        environment=setup.environment.id,
        role="witness",
        loaded=(side,),
        timings=(record.Timing(card=turn.card.name, case=case.id, calls=calls),),
    )
    return Timed(made, (), ())


def alternating_because(reason: str) -> record.Note:
    return record.Note(
        code="alternating",
        text="base and head cannot be loaded into one process, so two processes took turns and precision is lower: up "
        f"to about 1% of difference can come from the processes themselves ({reason})",
    )


def timed(setup: Setup, turn: Turn, advance: progress.Advance) -> Timed:
    """Times the cases in fresh processes. Raises ProcessError: CrashError where a call crashes or hangs.

    Where the verifier cannot share memory, or no process can map it, it works in the measured process from now on.
    """
    try:
        return _timed(setup, turn, advance)
    except NotSharedError as refusal:
        if not refusal.by_verifier and _maps_memory(setup):
            text = f"{turn.name} says that it cannot map memory, which a process without a kernel can: {refusal}"
            raise ProcessError(text) from None
        setup.hosted = True
        done = _timed(setup, turn, advance)
        text = (
            "CUDA refuses to share memory between processes here, so inputs and references lay in the measured process "
            f"({refusal})"
        )
        return replace(done, notes=(*done.notes, record.Note(code="verified_in_process", text=text)))


def _maps_memory(setup: Setup) -> bool:
    """Whether a fresh process, which no side's code is in, maps memory of the verifier."""
    verifier = setup.teams(())[0].verifier
    probe = Runner(setup.workers.take(MAPS_MEMORY), "a process without a kernel", setup.how.patience_s)
    try:
        shared = verifier.ask(protocol.ShareMemory(device=setup.device, fd=setup.workers.fds[0]), protocol.Memory)
        probe.ask(shared, Ready)
    except NotSharedError:
        return False
    finally:
        probe.worker.__exit__()
    return True


def _timed(setup: Setup, turn: Turn, advance: progress.Advance) -> Timed:
    seed, witness = setup.how.seed, turn.role == "witness"
    rng = random.Random(f"{seed}/{turn.id}/{turn.card.name}")  # noqa: S311 - not for secrets
    split = [[side] for side in turn.libraries] if witness else turn.split(seed)
    if witness:
        rng.shuffle(split)
    results: list[CaseResult] = []
    started_at, begun = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        runners = _started(setup, turn, split, stack)
        teams = setup.teams(runners)
        if len(teams) > 1 and not witness:
            here = "base and head cannot share a process, and CUDA shares no memory between two here"
            raise ProcessError(
                f"{here}: register operators under KERNELGATE_NAMESPACE, or measure where CUDA IPC works"
            )
        crash: tuple[ProcessError, CaseFacts] | None = None
        for case in turn.cases:
            turned = partial(advance, f"{turn.name}, {case.id}")
            try:
                if witness:
                    results.append(_alone(setup, turn, teams, runners, case, rng))
                    turned()
                else:
                    results.append(_time_case(setup, turn, case, teams[0], turned))
            except ProcessError as error:
                if not error.sides:
                    raise
                crash = error, case
                if setup.verifier is not None:  # so that its memory goes back
                    setup.verifier.ask(protocol.CloseCase(), protocol.CaseChecked)
                break
    notes = [note for result in results for note in result.notes]
    setup.end_left()
    if setup.left:
        text = f"{turn.name}: it left {', '.join(setup.left)} running, which was ended"
        notes.append(record.Note(code="left_processes", text=text))
        setup.left.clear()
    spent_s = sum(one.calling_s + one.verifying_s for one in results)
    made = record.Process(
        id=turn.id,
        environment=setup.environment.id,
        role=turn.role,
        loaded=tuple(side for sides in split for side in sides),
        seed=f"{seed}/{turn.id if witness else turn.number}",
        started_at=started_at.isoformat(timespec="seconds"),
        gpu_seconds=round(spent_s, 3) if setup.device == "cuda" else None,
        wall_seconds=round(time.monotonic() - begun, 3),
        exit=0,
        timings=tuple(result.timing for result in results),
    )
    done = Timed(made, tuple(results), tuple(notes))
    if crash is not None:
        raise CrashError(*crash, done) from None
    return done


def _started(setup: Setup, turn: Turn, split: Sequence[Sequence[record.Side]], stack: ExitStack) -> list[Runner]:
    """A fresh process for each of these groups of sides, which has loaded them. They end with the stack."""
    measured: list[Runner] = []
    pythons = [turn.libraries[sides[0]].python for sides in split]
    children = [
        setup.workers.take(WORKER, imports({side: turn.libraries[side] for side in sides}), python)
        for sides, python in zip(split, pythons, strict=True)
    ]
    if turn.following and len(set(pythons)) == 1:  # the next processes start meanwhile
        setup.workers.prepare({WORKER: SPARES}, imports(turn.following), pythons[0])
    for sides, child in zip(split, children, strict=True):
        stack.callback(child.__exit__)
        name = f"{turn.name}, {sides[0]} alone" if turn.role == "witness" else turn.name
        measured.append(Runner(child, name, setup.how.patience_s, tuple(sorted(sides))))
        request = protocol.TimingRequest(
            device=setup.device,
            uuid=setup.environment.device.uuid,
            card=turn.card.name,
            card_file=turn.card.file.absolute(),
            libraries=tuple((side, LibraryAt.of(turn.libraries[side])) for side in sides),
        )
        measured[-1].send(request)
        if turn.role == "witness":  # while one loads, the other stands still
            measured[-1].answer(Ready)
            measured[-1].rest()
    if turn.role != "witness":
        for one in measured:  # they load side by side
            one.answer(Ready)
    return measured


def cache_bytes(device: DeviceKind, cache: int | None) -> int:
    """How much input data must be read between two uses of one part: twice the L2 of a GPU.

    On a CPU as much as its last level, up to what takes no noticeable time to fill.
    """
    known = UNKNOWN_CACHE if cache is None else cache
    return 2 * known if device == "cuda" else min(known, MAX_CPU_CACHE)


def asked_case(setup: Setup, turn: Turn, case: CaseFacts, fresh_calls: int | None = None) -> protocol.PrepareCase:
    return protocol.PrepareCase(
        id=case.id,
        card_file=turn.card.file.absolute(),
        axes=case.axes,
        device=setup.device,
        cache_bytes=cache_bytes(setup.device, setup.environment.device.l2_bytes),
        seed=f"{setup.secret}/{turn.id}/{case.id}",
        fds=setup.workers.fds,
        shared=not setup.hosted,
        fresh_calls=fresh_calls,
    )


def _time_case(setup: Setup, turn: Turn, case: CaseFacts, team: Team, turned: Callable[[], None]) -> CaseResult:
    """One case of one process, from inputs to timing. The first one warms the process up, too."""
    key = (turn.card.name, case.id)
    seconds = case_timing.WARM_UP_S if case is turn.cases[0] else case_timing.CASE_WARM_UP_S
    reference: Literal["try", "time", "leave"] = "try"
    if key in setup.references:
        reference = "leave" if setup.references[key] else "time"
    rng, on_gpu = turn.rng(setup.how.seed, "/".join(key)), setup.device == "cuda"
    samples = case_timing.prepared(team, asked_case(setup, turn, case), case, rng, reference)
    if "head" in turn.libraries:
        setup.references.setdefault(key, samples.no_reference)
    case_timing.warm_up(team, samples, seconds, pause_when_capped=on_gpu)
    case_timing.time_rounds(team, samples, case_timing.rounds_in_time(samples, setup.how.rounds), turned)
    if on_gpu and turn.number == 0:
        case_timing.replay_graphs(team, samples)
    return case_timing.finished(team, samples, turn.card.name, setup.device)


# The witness


@dataclass
class Alone:
    """One case of the witness: of each sample, `us` is by this process's clock, to the end of all that follows from the
    calls; `probed_us` is the calls alone, by the device's own clock, or on a CPU by this process's where the results of
    calls are copied after them."""

    samples: CaseSamples
    call_us: float
    """What one call takes, about."""
    hold_us: float = 0.0
    """How long the device waits, so that the host has queued all calls when the first begins."""
    last: dict[record.Side, LateBatch] = field(default_factory=dict)
    """Each side's last batch, all of whose calls are one part."""
    late: dict[record.Side, list[LateBatch]] = field(default_factory=dict)
    """Those of each side that came late, in a row."""
    waits: bool = False
    """Whether calls are known to wait for the device."""

    def batch(
        self, team: Team, measured: Runner, calls: int, inputs: Literal["next", "again", "new"] = "next"
    ) -> Sample:
        """A batch, whose outputs are compared, too: its time from handing it over to its end. Before and after, while
        inputs are drawn and the other side works on them, the process stands still: nothing can be computed ahead."""
        planned = team.verifier.ask(protocol.PlanCalls(count=calls, inputs=inputs), protocol.Planned)
        [side] = measured.sides
        made = protocol.SampleCalls(side=side, windows=planned.windows, slots=planned.slots)
        last: Message = protocol.Start(calls=made, inputs=planned.inputs, moved=planned.moved, pause_us=self.hold_us)
        patience_s = self.samples.patience_s([(side, calls)])
        with team.quiet():
            begun = time.perf_counter()
            called_us: float | None = None
            if measured.returns and calls:
                measured.ask(last, Ready, patience_s)
                called_us = (time.perf_counter() - begun) * 1e6
                last = protocol.Copy()
            answer = measured.ask(last, protocol.BatchDone, patience_s)
            took_us = (time.perf_counter() - begun) * 1e6
        measured.worker.touched |= answer.stopped
        self.samples.fastest_s.setdefault(side, self.call_us / 1e6)
        if measured is not team.verifier:
            measured.rest()
        self.samples.busy_us += took_us
        self.last[side] = LateBatch(self.hold_us, answer.queued_us)
        looked = protocol.CheckCalls(sides=(side,) * calls, busy_us=took_us, samples=1)
        probed = team.verifier.ask(looked, protocol.Checked).probed
        return Sample(side, took_us, None, probed_us=probed[0].us if probed else called_us)

    def empty_us(self, pairs: Sequence[tuple[Team, Runner]]) -> float:
        """What a batch without calls takes, the hold included."""
        return median(self.batch(team, one, 0).us for _ in range(EMPTY) for team, one in pairs)

    def hold_for_queue(self, side: record.Side) -> bool:
        """Whether its last batch took longer to queue than the device waited, which it does from now on. A side whose
        calls wait for the device would be late however long that is."""
        last, late = self.last[side], self.late.setdefault(side, [])
        if self.waits or waits_for_device(late):
            return False
        if last.longest_us <= last.hold_us:
            late.clear()
            return False
        late.append(last)
        self.hold_us = 0.0 if waits_for_device(late) else max(self.hold_us, SPARE * last.longest_us + SPARE_US)
        return True

    def contradiction(self, batch_us: float) -> str | None:
        """Whether the clocks disagree on one side more than on the other: its library writes where the probes do, or
        leaves to the copying of results what its calls should have done."""
        apart = self.samples.known(lambda one: None if one.probed_us is None else one.us - one.probed_us)
        found = case_timing.disagreeing(apart, CLOCKS_AGREE_US + CLOCKS_AGREE_SHARE * batch_us)
        if found is None:
            return None
        (low, least_us), (high, most_us) = found
        return (
            f"{self.samples.case.id}: timed alone, a batch of {high} takes {most_us - least_us:.0f} µs longer by the "
            f"clock of the process that waits for its results than its calls say, compared with one of {low}"
        )


def _alone(
    setup: Setup, turn: Turn, teams: Sequence[Team], runners: Sequence[Runner], case: CaseFacts, rng: random.Random
) -> CaseResult:
    """A case of the witness: batches of each side in random order, each on inputs that are drawn anew."""
    about_us = _call_us(turn, case)
    wanted = max(1, min(MOST_CALLS, round(BATCH_US[setup.device] / about_us)))
    asked = asked_case(setup, turn, case, wanted)
    opened = [case_timing.prepared(team, asked, case, rng, "leave") for team in teams]
    calls = min(one.prepared.slots for one in opened)
    noted = turn.known.notes if turn.known else ()
    waits = any(note.code == case_timing.WAITS and note.text.startswith(f"{case.id}: ") for note in noted)
    alone = Alone(opened[0], about_us, waits=waits)
    pairs = [(team, one) for team in teams for one in runners if one in team.measured]
    for count in (1, calls):
        for team, one in pairs:
            alone.batch(team, one, count)
    for team, one in pairs if setup.device == "cuda" else ():  # before that, calls compiled and allocated
        alone.batch(team, one, calls)
        alone.hold_for_queue(one.sides[0])
    empty_us = alone.empty_us(pairs)
    for _ in range(BATCHES[setup.device]):
        for at, (team, one) in enumerate(rng.sample(pairs, len(pairs))):
            setup.end_left()  # what one side has left would slow the other one
            sample = alone.batch(team, one, calls, "again" if at > 0 and len(teams) == 1 else "new")
            if setup.device == "cuda" and alone.hold_for_queue(sample.side):
                # The device waited for the host: once more.
                empty_us = alone.empty_us(pairs)
                sample = alone.batch(team, one, calls, "new")
            sample.us -= empty_us
            if setup.device == "cpu" and sample.probed_us is not None:
                sample.probed_us -= empty_us
            alone.samples.samples.append(sample)
    checked = []
    for team in teams:
        for measured in team.measured:
            case_timing.finish(team, measured, setup.device)
            if measured is not team.verifier:
                measured.rest()
        checked.append(team.verifier.ask(protocol.CloseCase(), protocol.CaseChecked))

    def call_us(sample: Sample) -> float:
        """The calls alone, by the finer clock; the time to the end of all says whether that can be right."""
        return max((sample.us if sample.probed_us is None else sample.probed_us) / calls, 1e-3)

    times_us = alone.samples.by_side(call_us)
    timing = record.Timing(
        card=turn.card.name,
        case=case.id,
        samples_us=times_us,
        inner_repeats=calls,
        calls={side: made for one in checked for side, made in one.calls.items()},
        errors={side: error for one in checked for side, error in one.errors.items()},
    )
    seconds = alone.samples.busy_us / 1e6 + sum(one.seconds for one in checked)
    said = next((f"{case.id}: {one.disturbed}" for one in checked if one.disturbed), None)
    said = said or next((f"{case.id}: {one.name}, {TOUCHED}" for one in runners if one.worker.touched), None)
    said = said or alone.contradiction(calls * min(map(median, times_us.values())))
    notes = tuple(note for one in checked for note in case_timing.verifier_notes(case, one))
    return CaseResult(timing, notes, seconds, 0.0, said)


def _call_us(turn: Turn, case: CaseFacts) -> float:
    """What one call takes, by the paired comparison; the witness sizes its batches by it, and its patience."""
    times = [
        time_us
        for one in (turn.known.processes if turn.known else ())
        for timing in one.timings
        if one.role in record.COMPARED and timing.key == CaseKey(turn.card.name, case.id)
        for side in ("base", "head")
        for time_us in timing.samples_us.get(side, ())
    ]
    return median(times) if times else 100.0
