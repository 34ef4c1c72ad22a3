"""A batch of calls: the verifier plans them, a measured process makes them, and the verifier looks at their outputs."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Message, WorkerError, WorkerFailedError, WorkerProcess
from kernelgate.bench.timing.protocol import (
    Batch,
    BatchDone,
    CasePrepared,
    CheckCalls,
    Checked,
    PlanCalls,
    Planned,
    SampleCalls,
)

NOT_SHARED = "SharingError"
"""What a process raises that cannot share memory."""

A = TypeVar("A", bound=Message)


class ProcessError(KernelgateError):
    """A process could not be finished."""

    def __init__(self, fault: str, advice: str = "") -> None:
        super().__init__(f"{fault}{advice}")
        self.fault = fault
        """What happened, without what to do about it in a comparison."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


class NotSharedError(Exception):
    """The measured process cannot map the verifier's memory."""


class Runner:
    """A process, led step by step."""

    def __init__(self, worker: WorkerProcess, name: str, patience_s: float) -> None:
        self._worker = worker
        self.name = name
        self._patience_s = patience_s

    def ask(self, message: Message, kind: type[A]) -> A:
        """The answer to a message, which must be of this kind. Raises ProcessError, and NotSharedError."""
        self.send(message)
        return self.answer(kind)

    def send(self, message: Message) -> None:
        """Sends a message and does not wait."""
        try:
            self._worker.send(message)
        except WorkerError as error:
            raise self._error(error) from None

    def answer(self, kind: type[A]) -> A:
        """Waits until the step that was asked for is done."""
        try:
            return self._worker.receive(kind, self._patience_s)
        except WorkerError as error:
            raise self._error(error) from None

    def _error(self, error: WorkerError) -> Exception:
        if isinstance(error, WorkerFailedError) and error.error == NOT_SHARED:
            return NotSharedError(str(error))
        fault = f"{self.name} failed while {self._worker.doing.doing}: {error}"
        if self._worker.doing.loading:
            return LoadError(fault)
        return ProcessError(
            fault,
            ". `kernelgate fuzz` shows which inputs a kernel fails on; earlier processes are kept, and --resume "
            "continues after them",
        )


QUEUE_LENGTH = 600
"""Operations queued behind one hold. The driver blocks the host at about a thousand, and a call may be several."""
AROUND_SAMPLE = 5
"""Of them, around each sample: a pause, two probes, two events."""
ATTEMPTS = 3
"""How often a batch is made again because the host was too slow to queue it."""
MAX_SAMPLES = 256
"""In one batch."""
SURE = 8.0
"""Standard errors by which two clocks must differ for one of them to be called wrong: so many, because eight batches
show their own scatter poorly."""


@dataclass(frozen=True)
class MeasuredProcess:
    """One measured process and the sides that it holds."""

    runner: Runner
    sides: tuple[record.Side, ...]


@dataclass(frozen=True)
class Team:
    """The processes that time one case together."""

    verifier: Runner
    measured: tuple[MeasuredProcess, ...]


@dataclass
class CaseSamples:
    """What one case has given so far."""

    case: CaseFacts
    prepared: CasePrepared
    rng: random.Random
    reference: bool = False
    """Whether the reference is timed, …"""
    no_reference: str | None = None
    """… and why it cannot be."""
    inner_repeats: int = 1
    pause_us: float = 0.0
    queue_length: int = QUEUE_LENGTH
    clock_step_us: float = 0.0
    samples_us: dict[record.Side, list[float]] = field(default_factory=dict)
    positions: dict[record.Side, list[int]] = field(default_factory=dict)
    previous: dict[record.Side, list[record.Side | None]] = field(default_factory=dict)
    started_us: dict[record.Side, list[float]] = field(default_factory=dict)
    sm_mhz: dict[record.Side, list[float]] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    """Taken while rounds ran, and at no other time: warming up and checking outputs are other work."""
    graph_us: dict[record.Side, float] = field(default_factory=dict)
    busy_us: float = 0.0
    """Device time of all calls."""
    notes: dict[str, record.Note] = field(default_factory=dict)
    clocks_apart: dict[record.Side, list[float]] = field(default_factory=dict)
    """Of each sample, its time by the probes over its time by the clock of the process."""

    def note(self, code: str, text: str) -> None:
        self.notes.setdefault(code, record.Note(code=code, text=f"{self.case.id}: {text}"))


@dataclass(frozen=True)
class SampleTime:
    """One sample as a batch gave it."""

    side: record.Side
    us: float
    started_us: float | None
    sm_mhz: float | None
    probed_us: float | None


def disagreeing(
    extra_us: Mapping[record.Side, Sequence[float]], allowed_us: float
) -> tuple[record.Side, record.Side, float, float] | None:
    """The sides, with their medians, on which one clock counts least and most beside another.

    None where that differs by no more than `allowed_us`, since what a clock adds to every side is its own affair, or by
    no more than chance explains: another process on the device delays some of the samples.
    """
    medians = {side: median(values) for side, values in extra_us.items() if values}
    if len(medians) < 2:
        return None
    low, high = min(medians, key=lambda side: medians[side]), max(medians, key=lambda side: medians[side])
    chance = SURE * math.hypot(*(_error_of_median(extra_us[side]) for side in (low, high)))
    apart = medians[high] - medians[low] > max(allowed_us, chance)
    return (low, high, medians[low], medians[high]) if apart else None


def _error_of_median(values: Sequence[float]) -> float:
    """Standard error, from two order statistics (Price and Bonett 2001), which are about two of it off the median."""
    ordered, n = sorted(values), len(values)
    outside = max(1, round((n + 1) / 2 - math.sqrt(n)))
    return (ordered[n - outside] - ordered[outside - 1]) / 4


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
    team: Team, case: CaseSamples, measured: MeasuredProcess, sides: Sequence[record.Side], repeats: int, how: Batch
) -> list[SampleTime]:
    """Times a sample of each of these sides in turn: `repeats` calls, each on inputs and an output of its own.

    Empty where graphs cannot be captured.
    """
    answer, checked = run_batch(team, case, measured, sides, repeats, how)
    case.readings += answer.readings
    if not answer.times_us:
        return []
    return [
        SampleTime(
            side=side,
            us=answer.times_us[at],
            started_us=probed.started_us if probed else answer.started_us[at] if answer.started_us else None,
            sm_mhz=probed.sm_mhz if probed else None,
            probed_us=probed.us if probed else None,
        )
        for at, (side, probed) in enumerate(zip(sides, checked.probed or [None] * len(sides), strict=True))
    ]


def run_batch(
    team: Team, case: CaseSamples, measured: MeasuredProcess, sides: Sequence[record.Side], repeats: int, how: Batch
) -> tuple[BatchDone, Checked]:
    """One batch from plan to check; made again, on other inputs, where the host could not queue it in time."""
    for attempt in range(ATTEMPTS):
        planned = team.verifier.ask(PlanCalls(count=repeats * len(sides)), Planned)
        samples = tuple(
            SampleCalls(
                side=side,
                windows=planned.windows[at * repeats : (at + 1) * repeats],
                slots=planned.slots[at * repeats : (at + 1) * repeats],
            )
            for at, side in enumerate(sides)
        )
        update = {"samples": samples, "inputs": planned.inputs, "pause_us": how.pause_us or case.pause_us}
        asked = how.model_copy(update=update)
        begun = time.perf_counter()
        answer = measured.runner.ask(asked, BatchDone)
        took_us = (time.perf_counter() - begun) * 1e6
        if any(len(given) not in (0, len(sides)) for given in (answer.times_us, answer.started_us)):
            raise ProcessError(f"{measured.runner.name} answered a batch with times of other samples")
        case.busy_us += sum(answer.times_us)
        if not answer.times_us:  # no graph could be captured, so no call was made
            return answer, Checked(failed=0)
        looked = CheckCalls(
            sides=tuple(side for side in sides for _ in range(repeats)),
            copied=answer.copied,
            busy_us=took_us,  # by this process's clock: the other's may be wrong so that less is compared
            samples=len(sides),
        )
        checked = team.verifier.ask(looked, Checked)
        if answer.held or attempt == ATTEMPTS - 1:
            break
    if not answer.held:
        case.queue_length = max(1, case.queue_length // 2)
        if len(sides) == 1:
            case.note("host_bound", "the host fell behind, so that the GPU may have waited for it inside samples")
    return answer, checked
