"""One case in one process, as its leader sees it: warm up, choose how long samples are, time rounds, replay graphs."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from statistics import median
from typing import Literal, TypeVar

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.system import nvml
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Message, WorkerError, WorkerFailedError, WorkerProcess
from kernelgate.bench.timing import protocol
from kernelgate.bench.timing.protocol import Batch

NOT_SHARED = "SharingError"
"""What a process raises that cannot share memory."""
OURS = ("KernelgateError", "MemoryError")
"""Errors of a measured process that are not the kernel's."""
QUEUE_LENGTH = 600
"""Operations queued behind one hold. The driver blocks the host at about a thousand, and a call may be several."""
AROUND_SAMPLE = 5
"""Of them, around each sample: a pause, two probes, two events."""
ATTEMPTS = 3
"""How often a batch is made again because the host was too slow to queue it."""
MAX_SAMPLES = 256
SURE = 8.0
"""Standard errors by which two clocks must differ for one of them to be called wrong: so many, because eight batches
show their own scatter poorly."""
FIRST_CALLS_S = {"cuda": 300.0, "cpu": 30.0}
"""What the first calls of a side on a case may take. On a GPU they may compile, and time each of an autotuner's
configurations, which a fuzz trial does not."""
HANGS_S, HANGS_TIMES = 20.0, 20.0
"""And later ones: so long, and so many times as long as one took at least."""
WARM_UP_S = 0.5
"""Device work before the first sample of a process: until then ratios of identical code scatter several times more."""
CASE_WARM_UP_S = 0.05
"""And before the first sample of each further case."""
WARM_UP_TIMES = 4.0
"""But no more than so many times as long in all, where the host takes longer than the device: a gradient through
autograd took 5.4 s for 0.5 s of device work, in each process."""
REFERENCE_EVERY = 4
"""The reference is timed in every fourth round: nothing is decided by it."""
ROUNDS_PER_TURN = 20
"""Rounds after which processes that alternate take turns."""
ROUNDS_S = 2.0
"""What the rounds of a case take in one process, where a call or its host is so slow that 100 would take longer, …"""
LEAST_ROUNDS = 40
"""… but no fewer than these."""
STEP_SHARE = 1e-3
"""A sample is made so long that one step of the clock is less than this share of it."""
SHORTEST_US = 300.0
"""And at least so long, since on a GPU the two events around it add about 3 µs, which hide a part of any difference."""
MAX_REPEATS = 256
GRAPH_US = 2_000.0
"""Device time of one graph, long enough for its own launch not to matter."""
GRAPH_ROUNDS = 3
WAITS, REFERENCE_FAILS = "host_waits", "reference_fails"
CLOCKS_AGREE_US = 5.0
CLOCKS_AGREE_SHARE = 0.01
"""The device's clock comes in steps of up to 1 µs, and medians of its differences repeat to a fraction of that."""
CAP = "sw_power_cap"
PAUSES = (0.25, 0.5, 1.0)
"""Of a sample's length: tried one after the other while the GPU runs at its power limit. Measured on an H200: 300 µs
before samples of 700 µs take 692 W at 1875 MHz to 606 W at 1980 MHz."""

A = TypeVar("A", bound=Message)
T = TypeVar("T")


class ProcessError(KernelgateError):
    def __init__(self, fault: str, advice: str = "") -> None:
        super().__init__(f"{fault}{advice}")
        self.fault = fault
        """What happened, without what to do about it in a comparison."""
        self.crash = ""
        """How a call ended its process, where that is the kernel's doing and not the machine's, …"""
        self.hung = False
        """… or that it did not end, …"""
        self.sides: tuple[record.Side, ...] = ()
        """… and the sides that were in it."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


class NotSharedError(Exception):
    """A process says that it cannot share memory, or map the verifier's."""

    def __init__(self, text: str, by_verifier: bool) -> None:
        super().__init__(text)
        self.by_verifier = by_verifier
        """A measured process may say anything."""


@dataclass(eq=False)
class Runner:
    """A process, led step by step: the verifier, or a measured process and the sides that it holds."""

    worker: WorkerProcess
    name: str
    patience_s: float
    sides: tuple[record.Side, ...] = ()
    returns: bool = False
    """Whether some calls of the case return new tensors."""
    rests: bool = False

    def rest(self) -> None:
        """Until it is asked again, nothing of it runs."""
        self.worker.pause()
        self.rests = True

    def ask(self, message: Message, kind: type[A], calls_s: float | None = None) -> A:
        """The answer to a message, which must be of this kind. Raises ProcessError, and NotSharedError. `calls_s`: it
        makes calls, which hang when they take longer."""
        self.send(message)
        return self.answer(kind, calls_s)

    def send(self, message: Message) -> None:
        if self.rests:
            self.worker.go_on()
        self.rests = False
        try:
            self.worker.send(message)
        except WorkerError as error:
            raise self._error(error) from None

    def answer(self, kind: type[A], calls_s: float | None = None) -> A:
        try:
            return self.worker.receive(kind, calls_s or self.patience_s)
        except WorkerError as error:
            raise self._error(error, calls_s is not None) from None

    def _error(self, error: WorkerError, calls: bool = False) -> Exception:
        if isinstance(error, WorkerFailedError) and error.error == NOT_SHARED:
            return NotSharedError(str(error), by_verifier=not self.sides)
        fault = f"{self.name} failed while {self.worker.doing.doing}: {error}"
        if self.worker.doing.loading:
            return LoadError(fault)
        tries = "`kernelgate fuzz` shows which inputs a kernel fails on"
        made = ProcessError(fault, f". {tries}; earlier processes are kept, and --resume continues after them")
        raised = isinstance(error, WorkerFailedError) and error.error not in OURS and "out of memory" not in fault
        hung = error.hung and calls
        if raised or hung or self.worker.ended_by_work(error):
            made.crash = f"a call raised an error: {error}" if raised else str(error)
            made.hung, made.sides = hung, self.sides
        return made


@dataclass(frozen=True)
class Team:
    verifier: Runner
    measured: tuple[Runner, ...]
    quiet: Callable[[], AbstractContextManager[None]] = nullcontext
    """While it lasts, processes that start beside this team take nothing of the machine."""


@dataclass
class Sample:
    """One sample as a batch gave it."""

    side: record.Side
    us: float
    started_us: float | None
    sm_mhz: float | None = None
    probed_us: float | None = None
    """By the device's own clock."""
    position: int = 0
    previous: record.Side | None = None


@dataclass
class CaseSamples:
    case: CaseFacts
    prepared: protocol.CasePrepared
    rng: random.Random
    reference: bool = False
    """Whether the reference is timed, …"""
    no_reference: str | None = None
    """… and why it cannot be."""
    apart: bool = False
    """Whether base and head are in processes of their own. The reference is timed after both then: between the calls of
    one side it would leave that side alone other caches and another heap."""
    inner_repeats: int = 1
    """Calls in a sample of base or head, …"""
    reference_repeats: int = 1
    """… and of the reference, which may take many times as long and launch many times as much."""
    pause_us: float = 0.0
    queue_length: int = QUEUE_LENGTH
    clock_step_us: float = 0.0
    first_calls_s: float = 0.0
    """How long the first calls of a side may take."""
    fastest_s: dict[record.Side, float] = field(default_factory=dict)
    """What a call of each side that was called took at least: others may have compiled."""
    wall_s: float = math.inf
    """What a call took at least by this process's clock, which is more where the host is slow."""
    samples: list[Sample] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    """Taken while rounds ran, and at no other time: warming up and checking outputs are other work."""
    graph_us: dict[record.Side, float] = field(default_factory=dict)
    busy_us: float = 0.0
    notes: dict[str, record.Note] = field(default_factory=dict)

    def note(self, code: str, text: str) -> None:
        self.notes.setdefault(code, record.Note(code=code, text=f"{self.case.id}: {text}"))

    def by_side(self, part: Callable[[Sample], T]) -> dict[record.Side, tuple[T, ...]]:
        sides = sorted({one.side for one in self.samples})
        return {side: tuple(part(one) for one in self.samples if one.side == side) for side in sides}

    def known(self, part: Callable[[Sample], float | None]) -> dict[record.Side, tuple[float, ...]]:
        """Of the sides of which it is known of every sample."""
        sides = self.by_side(part).items()
        return {side: tuple(one for one in every if one is not None) for side, every in sides if None not in every}

    def patience_s(self, samples: Sequence[tuple[record.Side, int]]) -> float:
        """How long these calls may take: what takes longer hangs."""
        if any(side not in self.fastest_s for side, _ in samples):
            return self.first_calls_s
        return math.ceil(HANGS_S + HANGS_TIMES * sum(calls * self.fastest_s[side] for side, calls in samples))

    def repeats(self, side: record.Side) -> int:
        return self.reference_repeats if side == "reference" else self.inner_repeats

    @property
    def calls_us(self) -> dict[record.Side, tuple[float, ...]]:
        """Of one call, by sample."""
        return self.by_side(lambda one: one.us / self.repeats(one.side))

    @property
    def call_us(self) -> dict[record.Side, float]:
        return {side: median(times) for side, times in self.calls_us.items()}

    def sides(self, measured: Runner) -> tuple[record.Side, ...]:
        beside = self.reference and not self.apart and "head" in measured.sides
        return (*measured.sides, "reference") if beside else measured.sides


def batches(calls: Sequence[int], slots: int, queue_length: int) -> Iterator[tuple[int, int]]:
    """Cuts samples, given as numbers of calls, into batches: first and end. Each has one sample at least."""
    first = used = queued = 0
    for at, count in enumerate(calls):
        full = used + count > slots or queued + count + AROUND_SAMPLE > queue_length or at - first >= MAX_SAMPLES
        if at > first and full:
            yield first, at
            first, used, queued = at, 0, 0
        used += count
        queued += count + AROUND_SAMPLE
    if len(calls) > first:
        yield first, len(calls)


def batch(
    team: Team, case: CaseSamples, measured: Runner, samples: Sequence[tuple[record.Side, int]], how: Batch
) -> list[Sample]:
    """Times samples in turn, each a side and its number of calls, each call on inputs and an output of its own. Made
    again, on other inputs, where the host could not queue it in time. Empty where graphs cannot be captured.
    """
    sides, count = [side for side, _ in samples], sum(repeats for _, repeats in samples)
    for _ in range(ATTEMPTS):
        planned = team.verifier.ask(protocol.PlanCalls(count=count), protocol.Planned)
        windows, slots = iter(planned.windows), iter(planned.slots)
        calls = tuple(
            protocol.SampleCalls(
                side=side, windows=tuple(islice(windows, repeats)), slots=tuple(islice(slots, repeats))
            )
            for side, repeats in samples
        )
        update = {"samples": calls, "inputs": planned.inputs, "moved": planned.moved, "pause_us": case.pause_us}
        asked = how.model_copy(update=update)
        with team.quiet():
            begun = time.perf_counter()
            answer = measured.ask(asked, protocol.BatchDone, case.patience_s(samples))
            took_us = (time.perf_counter() - begun) * 1e6
        if any(len(given) not in (0, len(sides)) for given in (answer.times_us, answer.started_us)):
            raise ProcessError(f"{measured.name} answered a batch with times of other samples")
        if answer.started_us and not answer.held:
            raise ProcessError(f"{measured.name} says that a CPU waited for the host")
        case.busy_us += sum(answer.times_us)
        case.wall_s = min(case.wall_s, took_us / 1e6 / count)
        for (side, repeats), us in zip(samples, answer.times_us, strict=False):
            case.fastest_s[side] = min(us / 1e6 / repeats, case.fastest_s.get(side, math.inf))
        if not answer.times_us:  # no graph could be captured, so no call was made
            if not how.graph:
                raise ProcessError(f"{measured.name} answered a batch without times")
            return []
        of_calls = tuple(side for side, repeats in samples for _ in range(repeats))
        # Busy by this process's clock: the other's may be wrong so that less is compared.
        looked = protocol.CheckCalls(sides=of_calls, busy_us=took_us, samples=len(sides), graph=how.graph)
        probed = team.verifier.ask(looked, protocol.Checked).probed
        if answer.waits:
            case.note(WAITS, "calls wait for the GPU, so that their times hold what the host does after that")
        if answer.held or answer.waits:
            break
    else:
        case.queue_length = max(1, case.queue_length // 2)
        if len(sides) == 1:
            text = f"the host fell behind, so that the GPU may have waited for it inside samples of {sides[0]}"
            case.note("host_bound", text)
    case.readings += answer.readings
    if probed:
        return [
            Sample(side, us, probe.started_us, probe.sm_mhz, probe.us)
            for side, us, probe in zip(sides, answer.times_us, probed, strict=True)
        ]
    starts = answer.started_us or [None] * len(sides)
    return [Sample(*of_sample) for of_sample in zip(sides, answer.times_us, starts, strict=True)]


# One case


def prepared(
    team: Team,
    asked: protocol.PrepareCase,
    case: CaseFacts,
    rng: random.Random,
    reference: Literal["try", "time", "leave"],
) -> CaseSamples:
    """Draws the inputs and has every process map them. Raises NotSharedError.

    `reference`: whether it is timed, where that has to be tried first.
    """
    trusted = reference == "try" and team.verifier not in team.measured
    made = team.verifier.ask(asked.model_copy(update={"reference": trusted}), protocol.CasePrepared)
    if made.no_reference is not None:
        reference = "leave"
    alone, apart = asked.fresh_calls is not None, len(team.measured) > 1
    samples = CaseSamples(case, made, rng, apart=apart, first_calls_s=FIRST_CALLS_S[asked.device])
    for one in team.measured:
        beside = reference != "leave" and "head" in one.sides
        tried = reference == "try" and (beside or apart)
        opened = protocol.OpenCase(id=case.id, axes=case.axes, prepared=made, reference=tried, alone=alone)
        answer = one.ask(opened, protocol.CaseOpened)
        if alone and one is not team.verifier:
            one.rest()
        samples.clock_step_us = max(samples.clock_step_us, answer.clock_step_us)
        one.returns = answer.returns
        if answer.returns:
            text = "calls return new tensors: the sides write to different addresses, and what is unwritten is not seen"
            samples.note("returns_new_tensors", text)
        samples.reference |= beside and answer.no_reference is None
        if beside and answer.no_reference is not None:
            samples.no_reference = answer.no_reference
            samples.note("no_reference", f"the reference is not timed: {answer.no_reference}")
    if made.no_reference is not None:
        samples.no_reference = made.no_reference
        samples.note(REFERENCE_FAILS, f"the reference is not timed: {made.no_reference}")
    return samples


def warm_up(team: Team, case: CaseSamples, seconds: float, pause_when_capped: bool) -> None:
    """Calls each side in turn until the device has worked for `seconds`, and decides how many calls a sample has.

    Where the GPU then runs at its power limit, samples get pauses, so that it need not lower its clock.
    """
    call_us: dict[record.Side, float] = {}
    for one in team.measured:
        for side, us in _warmed(team, case, one, seconds / len(team.measured)).items():
            call_us[side] = min(us, call_us.get(side, us))
    repeats = _repeats(case, call_us, case.clock_step_us)
    case.reference_repeats = repeats.pop("reference", 1)
    [case.inner_repeats] = set(repeats.values())
    if pause_when_capped:
        for share in PAUSES:
            last = case.readings[-3:]
            if sum(CAP in reading.throttle_reasons for reading in last) * 2 <= len(last):
                break
            case.pause_us = round(share * case.inner_repeats * min(call_us[side] for side in repeats), 1)
            case.readings.clear()
            for one in team.measured:
                _warmed(team, case, one, CASE_WARM_UP_S)
        if case.pause_us:
            text = f"the GPU ran at its power limit, so each sample follows a pause of {case.pause_us:.0f} µs"
            case.note("paused", text)
    case.readings.clear()


def _warmed(team: Team, case: CaseSamples, measured: Runner, seconds: float) -> dict[record.Side, float]:
    """The time of one call of each side."""
    how = Batch(what="warming up")
    sides = case.sides(measured)
    few = min(2, case.prepared.slots)
    first = [batch(team, case, measured, [(side, 1)] * few, how) for side in sides]  # each alone: one may crash
    call_us = {side: max(1e-3, min(one.us for one in done)) for side, done in zip(sides, first, strict=True)}
    worked_us, begun = sum(one.us for done in first for one in done), time.perf_counter()
    while worked_us < seconds * 1e6 and time.perf_counter() - begun < WARM_UP_TIMES * seconds:
        repeats = _repeats(case, call_us, 0.0)
        most = max(repeats.values())
        room = min(case.prepared.slots // most, case.queue_length // (most + AROUND_SAMPLE), MAX_SAMPLES)
        left = math.ceil((seconds * 1e6 - worked_us) / sum(repeats[side] * us for side, us in call_us.items()))
        order = [*sides] * max(1, min(room // len(sides), left))
        done = []
        for first_, end in batches([repeats[side] for side in order], case.prepared.slots, case.queue_length):
            done += batch(team, case, measured, [(side, repeats[side]) for side in order[first_:end]], how)
        call_us = {
            side: max(median(one.us for one in done if one.side == side) / repeats[side], 1e-3) for side in sides
        }
        worked_us += sum(one.us for one in done)
    return call_us


def _repeats(case: CaseSamples, call_us: Mapping[record.Side, float], step_us: float) -> dict[record.Side, int]:
    """Calls in a sample of each side: base and head have as many, the reference what it needs itself."""
    fastest_us = min((us for side, us in call_us.items() if side != "reference"), default=math.inf)
    needed_us = {side: us if side == "reference" else fastest_us for side, us in call_us.items()}
    most = 1 << (case.prepared.slots.bit_length() - 1)
    return {side: min(inner_repeats(step_us, us), most) for side, us in needed_us.items()}


def inner_repeats(step_us: float, call_us: float) -> int:
    """How many calls make an interval of SHORTEST_US of which one step of the clock is less than STEP_SHARE.

    A power of two, so that processes agree on it although they estimate `call_us` anew.
    """
    needed = max(step_us / STEP_SHARE, SHORTEST_US) / call_us
    return min(MAX_REPEATS, 2 ** (math.floor(math.log2(needed)) + 1)) if needed >= 1 else 1


def rounds_in_time(case: CaseSamples, asked: int) -> int:
    """By what calls took at least: fewer turns than asked for where they take many milliseconds, or the host does."""
    call_s = max(case.wall_s, *(took for side, took in case.fastest_s.items() if side != "reference"))
    turns = int(ROUNDS_S / (2 * case.inner_repeats * call_s)) // ROUNDS_PER_TURN
    return min(asked, max(LEAST_ROUNDS, turns * ROUNDS_PER_TURN))


def time_rounds(team: Team, case: CaseSamples, rounds: int, turned: Callable[[], None]) -> None:
    """Times the rounds, in random order within each, in turns where several processes take part."""
    for first in range(0, rounds, ROUNDS_PER_TURN):
        for one in case.rng.sample(team.measured, len(team.measured)):
            _time(team, case, one, list(_order(case, one, min(ROUNDS_PER_TURN, rounds - first))))
        turned()
    if case.apart and case.reference:
        for one in team.measured:
            if "head" in one.sides:
                _time_reference(team, case, one, math.ceil(rounds / REFERENCE_EVERY))


def _time_reference(team: Team, case: CaseSamples, measured: Runner, count: int) -> None:
    first = batch(team, case, measured, [("reference", 1)] * min(2, case.prepared.slots), Batch(what="warming up"))
    call_us: dict[record.Side, float] = {"reference": max(1e-3, min(one.us for one in first))}
    case.reference_repeats = _repeats(case, call_us, case.clock_step_us)["reference"]
    _time(team, case, measured, [("reference", 0)] * count)


def _order(case: CaseSamples, measured: Runner, rounds: int) -> Iterator[tuple[record.Side, int]]:
    """Of rounds, each side with its place in the round."""
    for number in range(rounds):
        sides = case.sides(measured) if number % REFERENCE_EVERY == 0 else measured.sides
        yield from ((side, place) for place, side in enumerate(case.rng.sample(sides, len(sides))))


def _time(team: Team, case: CaseSamples, measured: Runner, order: list[tuple[record.Side, int]]) -> None:
    how = Batch(what="timing")
    while order:
        calls = [case.repeats(side) for side, _ in order]
        _, count = next(batches(calls, case.prepared.slots, case.queue_length))
        chosen, order = order[:count], order[count:]
        done = batch(team, case, measured, [(side, case.repeats(side)) for side, _ in chosen], how)
        before: record.Side | None = None  # between batches the device does other work
        for (side, place), sample in zip(chosen, done, strict=True):
            sample.position, sample.previous = place, before
            before = side
        case.samples += done


def replay_graphs(team: Team, case: CaseSamples) -> None:
    """The median time of one call of each side when many are replayed as one graph, in rounds like the samples.

    Not of kernels in place, which a graph would run again on what they have made.
    """
    if any(given.slotted for given in case.prepared.inputs):
        return
    for one in team.measured:
        sides, call_us = case.sides(one), case.call_us
        count = max(1, min(case.prepared.slots, max(8, round(GRAPH_US / min(call_us[side] for side in sides)))))
        times: dict[record.Side, list[float]] = {side: [] for side in sides}
        for _ in range(GRAPH_ROUNDS):
            for side in case.rng.sample(list(times), len(times)):
                done = batch(team, case, one, [(side, count)], Batch(what="replaying graphs of", graph=True))
                if done:
                    times[side].append(done[0].us / count)
                else:
                    times.pop(side)
        case.graph_us.update({side: median(us) for side, us in times.items()})


@dataclass(frozen=True)
class CaseResult:
    timing: record.Timing
    notes: tuple[record.Note, ...]
    calling_s: float
    """Device time of the calls, …"""
    verifying_s: float
    """… and what drawing inputs and looking at outputs took."""
    contradiction: str | None
    """What the device's own clock says against that of the measured process."""


def verifier_notes(case: CaseFacts, checked: protocol.CaseChecked) -> list[record.Note]:
    return [note.model_copy(update={"text": f"{case.id}: {note.text}"}) for note in checked.notes]


def finish(team: Team, measured: Runner, device: str) -> protocol.CaseDone:
    """Ends the case in a process. Its last calls, on a GPU, read inputs like any others: not what kernels in place
    left."""
    planned = protocol.Planned(windows=(), slots=())
    if device == "cuda":
        planned = team.verifier.ask(protocol.PlanCalls(count=len(measured.sides) + 1), protocol.Planned)
    return measured.ask(protocol.Finish(planned=planned), protocol.CaseDone)


def finished(team: Team, case: CaseSamples, card: str, device: str) -> CaseResult:
    done = [finish(team, one, device) for one in team.measured]
    checked = team.verifier.ask(protocol.CloseCase(), protocol.CaseChecked)
    notes = [*case.notes.values(), *(note for one in done for note in one.notes if note.code != REFERENCE_FAILS)]
    notes += verifier_notes(case.case, checked)
    said, clocks_apart_us = checked.disturbed, None
    if apart := clocks_apart(case):
        (low, least_us), (high, most_us) = apart
        if WAITS in case.notes:  # what the host does meanwhile is in one of the clocks
            clocks_apart_us = (most_us - least_us) / case.inner_repeats
        else:
            more = f"{least_us:.1f} µs more of {low} and {most_us:.1f} µs more of {high}"
            said = said or (
                f"by the device's own clock a sample takes {more} than by the clock of the process that made the "
                "calls: that clock is wrong"
            )
    timing = record.Timing(
        card=card,
        case=case.case.id,
        samples_us=case.calls_us,
        positions=case.by_side(lambda one: one.position),
        previous=case.by_side(lambda one: one.previous),
        started_us=case.known(lambda one: one.started_us),
        sm_mhz=case.known(lambda one: one.sm_mhz),
        inner_repeats=case.inner_repeats,
        pause_us=case.pause_us or None,
        telemetry=nvml.telemetry(case.readings),
        graph_us=dict(sorted(case.graph_us.items())) if checked.graphs else {},
        calls=checked.calls,
        errors=checked.errors,
        autotuned={side: choice for one in done for side, choice in one.autotuned.items()},
        memory_bytes={side: most for one in done for side, most in one.memory_bytes.items()},
        clock_step_us=case.clock_step_us,
        clocks_apart_us=clocks_apart_us,
    )
    said = said and f"{case.case.id}: {said}"
    return CaseResult(timing, tuple(notes), case.busy_us / 1e6, checked.seconds, said)


Apart = tuple[tuple[record.Side, float], tuple[record.Side, float]]
"""The sides on which one clock counts least and most beside another, each with the median of that, in µs."""


def clocks_apart(case: CaseSamples) -> Apart | None:
    """Whether the device's own clock, which the verifier read, and the clock of the measured process disagree.

    Both add the same to every sample; what they add must not depend on the side. The reference, which nobody who brings
    a change can write, may wait for the host within a sample, where one clock counts that and the other does not.
    """
    known = case.known(lambda one: None if one.probed_us is None else one.probed_us - one.us)
    apart = {side: extra for side, extra in known.items() if side != "reference"}
    call_us = min((case.call_us[side] for side in apart), default=0.0)
    return disagreeing(apart, CLOCKS_AGREE_US + CLOCKS_AGREE_SHARE * case.inner_repeats * call_us)


def disagreeing(extra_us: Mapping[record.Side, Sequence[float]], allowed_us: float) -> Apart | None:
    """None where that differs by no more than `allowed_us`, since what a clock adds to every side is its own affair, or
    by no more than chance explains: another process on the device delays some of the samples.
    """
    if len(extra_us) < 2:
        return None
    medians = [(side, median(values)) for side, values in extra_us.items()]
    low, high = min(medians, key=itemgetter(1)), max(medians, key=itemgetter(1))
    chance = SURE * math.hypot(*(_error_of_median(extra_us[side]) for side, _ in (low, high)))
    return (low, high) if high[1] - low[1] > max(allowed_us, chance) else None


def _error_of_median(values: Sequence[float]) -> float:
    """Standard error, from two order statistics (Price and Bonett 2001), which are about two of it off the median."""
    ordered, n = sorted(values), len(values)
    outside = max(1, round((n + 1) / 2 - math.sqrt(n)))
    return (ordered[n - outside] - ordered[outside - 1]) / 4
