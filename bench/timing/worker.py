"""A measured process: loads one card's libraries, calls them when it is told, and times that. Led by timing/paired.py.

It is told which inputs a call reads and where its outputs go. It knows neither what is right nor which outputs will be
compared: the verifier, another process, does. Where CUDA does not let two processes share memory, the verifier works
in here, and the record says so.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import loading, operands, triton_runtime
from kernelgate.bench.kernel.card import CaseAxes, Kernel, asked_for
from kernelgate.bench.kernel.operands import Bound
from kernelgate.bench.kernel.triton_runtime import CompiledSince
from kernelgate.bench.system import nvml, orphans
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Doing, Leader, Message, Ready
from kernelgate.bench.timing import device as gpu
from kernelgate.bench.timing import pool as memory
from kernelgate.bench.timing import protocol
from kernelgate.bench.timing import timer as timers
from kernelgate.bench.timing.pool import Arena
from kernelgate.bench.timing.protocol import Batch, BatchDone, CasePrepared, NamedInput, Start, TimingRequest
from kernelgate.bench.timing.timer import Call, Interval, Timer
from kernelgate.bench.timing.verifier import Verifier, cpu_threads, without_reference


@dataclass
class OpenedCase:
    id: str
    prepared: CasePrepared
    inputs: tuple[NamedInput, ...]
    """As they were drawn last."""
    read: Arena
    written: Arena
    axes: CaseAxes
    returning: bool
    moved: int = 0
    first_ns: int | None = None
    queued_us: float = 0.0
    stops: int = 0
    """How often the process had been stopped before the last Start."""
    returned: dict[int, object] = field(default_factory=dict)
    """What calls of this batch returned, until it is copied."""

    ready: dict[tuple[int, int], Call] = field(default_factory=dict)
    """Calls that Start may name, by `moved` and window; to prepare one takes as long as a short call."""

    def told(self, inputs: tuple[NamedInput, ...], moved: int) -> None:
        self.inputs, self.moved = inputs or self.inputs, moved
        if inputs:
            self.ready.clear()

    def probe_words(self, sample: int) -> tuple[torch.Tensor, torch.Tensor]:
        row = self.written.view(self.prepared.probes, sample)
        return row[: row.numel() // 2], row[row.numel() // 2 :]


@dataclass
class Worker:
    request: TimingRequest
    judge: Kernel
    bound: dict[record.Side, Bound]
    timer: Timer
    clock_step_us: float
    compiled: CompiledSince
    tell: Callable[[Doing], None]
    """Who hears what is done next."""
    read: nvml.Source
    verifier: Verifier
    case: OpenedCase | None = None
    called: set[record.Side] = field(default_factory=set)
    tuners: list[Any] = field(default_factory=list)
    """Of what was loaded before the garbage collector was frozen."""
    tuned: set[tuple[record.Side, str, Any]] = field(default_factory=set)
    """Before the present case: by kernel and tuning key."""
    stops: Callable[[], int] = lambda: 0

    @property
    def on_gpu(self) -> bool:
        return self.request.device == "cuda"

    def answer(self, message: protocol.ToWorker) -> Message:
        if isinstance(message, protocol.OpenCase):
            return self._open(message)
        if not isinstance(message, Batch | Start | protocol.Copy | protocol.Finish):
            return self.verifier.answer(message)
        if self.case is None:
            raise KernelgateError("no case is open")
        if isinstance(message, Batch):
            return self._batch(self.case, message)
        if isinstance(message, Start):
            return self._start(self.case, message)
        return self._finish(self.case, message) if isinstance(message, protocol.Finish) else self._end(self.case)

    def _open(self, asked: protocol.OpenCase) -> protocol.CaseOpened:
        self.tell(Doing(doing=f"mapping the inputs of {asked.id}"))
        outs = tuple(asked.prepared.outputs)
        returns = any(bound.returns(outs) for bound in self.bound.values())
        read, written = (memory.open_shared(one) for one in (asked.prepared.memory, asked.prepared.written))
        axes = CaseAxes(asked.axes)
        self.case = case = OpenedCase(asked.id, asked.prepared, asked.prepared.inputs, read, written, axes, returns)
        if asked.alone:
            [side] = self.bound
            for moved in range(memory.PLACES + 1):
                case.told((), moved)
                for at in range(asked.prepared.slots):
                    case.ready[moved, at] = self._call(case, side, at, at, at)
        self.called.clear()
        why = None
        if asked.reference:
            given = memory.arguments(case.read, case.written, case.inputs, 0, 0, case.moved)
            why = without_reference(self.judge, axes, given)
        return protocol.CaseOpened(clock_step_us=self.clock_step_us, returns=returns, no_reference=why)

    def _finish(self, case: OpenedCase, asked: protocol.Finish) -> protocol.CaseDone:
        notes = []
        if names := ", ".join(self.compiled()):
            text = f"{case.id}: {names} was compiled while measuring, for the build had not foreseen it"
            notes.append(record.Note(code="compiled_while_measuring", text=text))
        if not self.on_gpu:
            cores = f"{torch.get_num_threads()} of {len(os.sched_getaffinity(0))} cores"
            notes.append(record.Note(code="cpu_cores", text=f"the CPU kernel was timed on {cores}"))
        try:
            autotuned = self._autotuned()
        except Exception as error:  # a package's own tuner need not answer as Triton's, and no call has failed by that
            autotuned = {}
            text = f"{case.id}: what the autotuner chose cannot be read: {type(error).__name__}: {error}"
            notes.append(record.Note(text=text))
        case.told(asked.planned.inputs, asked.planned.moved)
        calls = zip(sorted(self.called), asked.planned.windows, asked.planned.slots, strict=False)
        memory_bytes = {side: self._memory_bytes(case, side, *at) for side, *at in calls} if self.on_gpu else {}
        for arena in (case.read, case.written):
            memory.close(arena, owner=False)
        self.case = None
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()
        return protocol.CaseDone(autotuned=autotuned, memory_bytes=memory_bytes, notes=tuple(notes))

    def _autotuned(self) -> dict[record.Side, str]:
        """What the autotuner has chosen for this case, such as "scale: BLOCK=1024, warps=8"."""
        found: dict[record.Side, str] = {}
        every = [*self.tuners, *triton_runtime.tuners()]
        for side, bound in self.bound.items():
            now = {(side, *at): choice for at, choice in triton_runtime.choices(every, bound.ops).items()}
            chosen = sorted(f"{at[1]}: {choice}" for at, choice in now.items() if at not in self.tuned)
            self.tuned.update(now)
            found |= {side: "; ".join(chosen)} if chosen else {}
        return found

    def _memory_bytes(self, case: OpenedCase, side: record.Side, window: int, slot: int) -> int:
        """Of one more call, after all that are timed and compared: the outputs that it is handed, and the most that it
        holds of torch's allocator at once.

        What a kernel takes from CUDA by itself, such as a workspace of its own that it keeps, is not seen.
        """
        outs = tuple(case.prepared.outputs)
        call = self._call(case, side, slot, window, slot)
        allocates = side == "reference" or self.bound[side].returns(outs)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        handed = 0 if allocates else sum(out.bytes for out in case.prepared.outputs.values())
        most = handed + torch.cuda.max_memory_allocated() - before
        case.returned.clear()
        return most

    def _batch(self, case: OpenedCase, asked: Batch) -> BatchDone:
        self._tell(case, [sample.side for sample in asked.samples], asked.what)
        case.told(asked.inputs, asked.moved)
        made: list[tuple[Call, ...]] = []
        numbers: list[range] = []
        for sample in asked.samples:
            first = numbers[-1].stop if numbers else 0
            numbers.append(range(first, first + len(sample.windows)))
            lying = zip(numbers[-1], sample.windows, sample.slots, strict=True)
            made.append(tuple(self._call(case, sample.side, *one) for one in lying))
        if asked.graph:
            captured = [self.timer.capture(calls_) for calls_ in made]
            if None in captured:
                return BatchDone()
            made = [(replay,) for replay in captured if replay]
        readings: list[Reading] = []
        intervals = [self._interval(case, asked, at, calls_, numbers[at]) for at, calls_ in enumerate(made)]
        done = self.timer.measure(intervals, meanwhile=lambda: readings.append(self.read()))
        case.returned.clear()
        if case.first_ns is None and done.started_ns:
            case.first_ns = done.started_ns[0]
        return BatchDone(
            times_us=done.times_us,
            started_us=tuple((start - (case.first_ns or 0)) / 1e3 for start in done.started_ns),
            held=done.held,
            waits=done.waits,
            readings=tuple(readings),
        )

    def _tell(self, case: OpenedCase, sides: Sequence[record.Side], what: str) -> None:
        if new := next((side for side in sides if side not in self.called), None):
            self.called.add(new)
            what = f"calling {new} for the first time on"
        self.tell(Doing(doing=f"{what} {case.id}"))

    def _start(self, case: OpenedCase, asked: Start) -> Message:
        """All calls, and then the answer: somebody else holds the clock. On a GPU they wait until all are queued."""
        self._tell(case, [asked.calls.side], "timing alone")
        case.told(asked.inputs, asked.moved)
        made = [
            case.ready.get((asked.moved, window)) or self._call(case, asked.calls.side, slot, window, slot)
            for window, slot in zip(asked.calls.windows, asked.calls.slots, strict=True)
        ]
        before, after = case.probe_words(0)
        begun_ns, case.stops = timers.now_ns(), self.stops()
        if self.on_gpu:
            gpu.wait(asked.pause_us)
            gpu.probe(before)
        for call in made:
            call()
        if self.on_gpu:
            gpu.probe(after)
        case.queued_us = (timers.now_ns() - begun_ns) / 1e3
        if not (case.returning and made):
            return self._end(case)
        if self.on_gpu:  # so that copies are queued as late for calls that wait for the device as for those that do not
            torch.cuda.synchronize()
        return Ready()

    def _end(self, case: OpenedCase) -> BatchDone:
        """Copies take as long for either side, and are none of the kernel's time."""
        self._copy(case, list(case.returned))
        if self.on_gpu:
            torch.cuda.synchronize()
        return BatchDone(queued_us=case.queued_us, stopped=self.stops() > case.stops)

    def _interval(self, case: OpenedCase, asked: Batch, at: int, made: Sequence[Call], numbers: range) -> Interval:
        copies = case.returning and asked.samples[at].side != "reference"
        if not self.on_gpu:
            return Interval(tuple(made), after=partial(self._copy, case, numbers) if copies else None)
        first_half, second_half = case.probe_words(at)

        def before() -> None:
            if asked.pause_us:
                gpu.wait(asked.pause_us)
            gpu.probe(first_half)

        def after() -> None:
            gpu.probe(second_half)
            if copies:
                self._copy(case, numbers)

        return Interval(tuple(made), before, after)

    def _call(self, case: OpenedCase, side: record.Side, number: int, window: int, slot: int) -> Call:
        given = memory.arguments(case.read, case.written, case.inputs, window, slot, case.moved)
        if side == "reference":
            return partial(self.judge.reference, case.axes, **asked_for(self.judge.reference, given))
        outs = memory.outputs(case.written, case.prepared.outputs, slot)
        bound = self.bound[side]
        call = bound.prepared(case.axes, given, outs)
        if not bound.returns(tuple(case.prepared.outputs)):
            return call

        def kept() -> None:
            case.returned[number] = call()

        return kept

    def _copy(self, case: OpenedCase, numbers: Sequence[int]) -> None:
        """Of calls that return new tensors, puts the results where the verifier looks."""
        outs = case.prepared.outputs
        for number in sorted(case.returned.keys() & numbers):
            made = operands.named(case.returned.pop(number), tuple(outs), "call()")
            for name, target in memory.outputs(case.written, outs, number).items():
                if made[name].shape != target.shape or made[name].dtype != target.dtype:
                    shapes = f"{list(made[name].shape)} {made[name].dtype}, not {list(target.shape)} {target.dtype}"
                    raise KernelgateError(f"call() returned {name} with {shapes}, which outputs() of the card says")
                target.copy_(made[name])


def make_calls(request: TimingRequest, leader: Leader) -> None:
    """Loads the libraries, and answers the leader, step by step."""
    try:
        with triton_runtime.shared([at.folder for _, at in request.libraries]) as compiled:
            if request.device == "cpu":
                torch.set_num_threads(cpu_threads(len(os.sched_getaffinity(0))))
            leader.send(Doing(doing="setting up the device"))
            timer = timers.timer(request.device)
            step_us = timers.clock_step(timer)
            leader.send(Doing(doing="reading the card"))
            judge = loading.load(request.card_file)
            bound: dict[record.Side, Bound] = {}
            for side, at in request.libraries:
                leader.send(Doing(doing=f"loading {side}", loading=True))
                bound[side] = operands.bind(at.read(), judge, side)
            with nvml.readings(request.device, request.uuid) as source:
                by_side, verifier = dict(sorted(bound.items())), Verifier(tell=leader.send)
                stops = orphans.watch_stops()
                worker = Worker(
                    request, judge, by_side, timer, step_us, compiled, leader.send, source, verifier, stops=stops
                )
                worker.tuners = triton_runtime.tuners()
                leader.send(Ready())
                gc.freeze()
                gc.disable()  # a collection takes as long as a whole sample; cases are collected when they end
                while True:
                    leader.send(worker.answer(leader.receive(protocol.WORKER_STEP)))
    except Exception as error:
        raise loading.error_message(error) from None
