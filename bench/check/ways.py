"""The ways in which a fuzz trial calls a kernel, besides once with whole tensors on an idle device.

offset, gaps, transposed  each tensor in turn lies one element off, with gaps between rows, or with its last two axes
                          exchanged in memory: the kernel must be right, or refuse by an error that names the tensor
empty                     an axis is 0: right, or refused by name
repeat                    many calls on the same inputs, each compared: what is rare, and what differs from call to call
stream                    on a stream whose inputs arrive late, while the default stream is idle
graph                     captured into a CUDA graph, replayed on other inputs
two-streams               calls on two streams at once, with inputs of their own
huge                      tensors beyond 2 GiB, of which parts are compared

Those beside other calls are in concurrent_calls.py. `try_each` runs in a process of its own, led by trials.py.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import torch

from kernelgate.bench.check import concurrent_calls, examine
from kernelgate.bench.check.examine import (
    Examined,
    InapplicableError,
    KernelCallError,
    MemoryLayout,
    ReadyCall,
    Subject,
    UntriedError,
    beyond_use,
    bits,
    drawn,
    guarded,
    same_bits,
)
from kernelgate.bench.check.trials import FuzzRequest, TrialOutcome
from kernelgate.bench.core.errors import first_line
from kernelgate.bench.kernel import calls, compare, loading, operands, triton_runtime
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.fuzz_trials import WAY, Trial
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.system.worker import Leader, Ready

REPEATS = 1600
"""Calls of the way "repeat": what is wrong in one call of 400 is missed in one run of 55."""
REPEAT_S = 2.0
"""Its calls end after this long."""
LATE_CYCLES = 20_000_000
"""For which a stream waits before its inputs arrive: about 10 ms."""
AT_ONCE = 8
"""Calls on each of two streams."""
GAP = 8
"""Elements between rows."""
BOUNDARIES = (2**31, 2**32)
"""Bytes and elements of a tensor, around which huge trials look."""
LOOKED_AT = 24
"""Random entries that they look at besides."""


def examined(subject: Subject, trial: Trial) -> Examined:
    """Tries one trial. Raises KernelCallError where the kernel does, UntriedError where the card cannot make it."""
    return WAYS.get(trial.way, plain)(subject, trial)


def plain(subject: Subject, trial: Trial) -> Examined:
    """Two calls on fresh inputs each."""
    draw = drawn(subject, trial)
    runs = [examine.run(examine.prepared(subject, draw, which)) for which in (0, 1)]
    return Examined(examine.fault(runs), tuple(one.comparison for one in runs))


# Layouts --------------------------------------------------------------------------------------------------------------


def _offset(_: torch.Tensor) -> MemoryLayout | None:
    return MemoryLayout(offset=1)


def _gaps(tensor: torch.Tensor) -> MemoryLayout | None:
    if tensor.ndim == 0:
        return None
    rows = [*tensor.shape[:-1], tensor.shape[-1] + GAP]
    strides = torch.empty(rows, device="meta").stride()
    return MemoryLayout((2,)) if tensor.ndim == 1 else MemoryLayout(strides)


def _transposed(tensor: torch.Tensor) -> MemoryLayout | None:
    if tensor.ndim < 2:
        return None
    swapped = torch.empty([*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]], device="meta").stride()
    return MemoryLayout((*swapped[:-2], swapped[-1], swapped[-2]))


LAYOUTS: Mapping[str, tuple[Callable[[torch.Tensor], MemoryLayout | None], str]] = {
    "offset": (_offset, "lies one element off an aligned address"),
    "gaps": (_gaps, "has gaps between its rows"),
    "transposed": (_transposed, "has its last two axes exchanged in memory"),
}
"""Where the tensor lies, and how to say it."""


def layout(subject: Subject, trial: Trial) -> Examined:
    place, how = LAYOUTS[trial.way]
    draw = drawn(subject, trial)
    refused: list[str] = []
    comparisons: list[Comparison] = []
    for name, shape in _tensors(examine.prepared(subject, draw)).items():
        if place(torch.empty(shape, device="meta")) is None:
            continue

        def only_this(other: str, tensor: torch.Tensor, name: str = name) -> MemoryLayout | None:
            return place(tensor) if other == name and tensor.is_contiguous() else None

        ready = examine.prepared(subject, draw, places=only_this)
        try:
            done = examine.run(ready)
        except KernelCallError as error:
            if not _names(str(error), [name]):
                raise KernelCallError(f"where {name} {how}, {error}, which does not name {name}") from None
            refused.append(name)
            continue
        comparisons.append(done.comparison)
        found = examine.fault([done])
        if found:
            return Examined(f"where {name} {how}: {found}; support that, or refuse it by an error that names {name}")
    if not comparisons and not refused:
        raise InapplicableError(f"no tensor can be laid out so: {trial.way}")
    return Examined(None, tuple(comparisons), f"refused by name: {', '.join(refused)}" if refused else None)


def empty(subject: Subject, trial: Trial) -> Examined:
    draw = drawn(subject, trial)
    ready = examine.prepared(subject, draw)
    right = ready.right()
    try:
        made = examine.called(ready)
    except KernelCallError as error:
        words = [*_tensors(ready), *draw.case]
        if not _names(str(error), words):
            raise KernelCallError(f"{error}, which names none of {', '.join(words)}") from None
        return Examined(note=str(error))
    compared = ready.compared(made, right)
    shape = made[compared.output].shape
    return Examined(examine.wrong(compared, shape) or _trespass(ready), (compared,))


def _trespass(ready: ReadyCall) -> str | None:
    found = examine.trespass(ready, ready.outputs)
    return found and f"the kernel wrote to {found}"


def _tensors(ready: ReadyCall) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs that are tensors, and of the outputs that a call is handed."""
    handed = () if ready.subject.bound.returns(tuple(ready.shapes)) else ready.outputs
    inputs = {name: tuple(original.shape) for name, _, original in ready.inputs}
    return inputs | {name: ready.shapes[name][0] for name in handed}


def _names(message: str, words: list[str]) -> bool:
    """Whether an error names one of these; of a list's tensor, the list."""
    return any(re.search(rf"(?<!\w){re.escape(word.partition('[')[0])}(?!\w)", message) for word in words)


# Many calls -----------------------------------------------------------------------------------------------------------


def repeat(subject: Subject, trial: Trial) -> Examined:
    ready = examine.prepared(subject, drawn(subject, trial))
    right = ready.right()
    made = examine.called(ready)
    compared = ready.compared(made, right)
    first = {name: bits(tensor).clone() for name, tensor in made.items()}
    begun, done, other = time.monotonic(), 1, 0
    while compared.passed and done < REPEATS and time.monotonic() - begun < REPEAT_S:
        ready.refill()
        made = examine.called(ready)
        done += 1
        if not same_bits(made, first):
            other += 1
            compared = ready.compared(made, right)
    fault = examine.wrong(compared, made[compared.output].shape)
    said = f"call {done} on the same inputs: {fault}" if fault and done > 1 else fault
    note = f"not the same to the bit in {other} of {done} calls on the same inputs" if other else None
    return Examined(said, (compared,), note, repeatable=not other)


# Streams and graphs ---------------------------------------------------------------------------------------------------


def stream(subject: Subject, trial: Trial) -> Examined:
    """The inputs are poison until the stream gets to them: a launch on another stream reads it."""
    ready = examine.prepared(subject, drawn(subject, trial))
    right = ready.right()
    examine.called(ready)  # the first call loads the kernel, which waits for the device
    for _, copy, _ in ready.inputs:
        copy.poison()
    for buffer in ready.outputs.values():
        buffer.poison()
    torch.cuda.synchronize()
    with _calling(), torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        torch.cuda._sleep(LATE_CYCLES)  # type: ignore[no-untyped-call]
        for _, copy, original in ready.inputs:
            operands.fill(copy.tensor, original)
        returned = ready.call()
        torch.cuda.current_stream().synchronize()
        compared = ready.compared(ready.made(returned), right)
        torch.cuda.synchronize()
    wrong = examine.wrong(compared, right[compared.output].shape)
    return Examined(wrong and f"on a stream of its own: {wrong}; does it launch on the current stream?", (compared,))


def graph(subject: Subject, trial: Trial) -> Examined:
    """Captured on one set of inputs, replayed on another."""
    ready, later = (examine.prepared(subject, drawn(subject, trial, seed)) for seed in (0, 1))
    right = later.right()
    examine.called(ready)
    captured = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(captured):
            returned = ready.call()
    except Exception as error:
        torch.cuda.synchronize()
        return Examined(note=f"cannot be captured into a CUDA graph: {first_line(error)}")
    ready.refill()
    for (_, copy, _), (_, _, new) in zip(ready.inputs, later.inputs, strict=True):
        operands.fill(copy.tensor, new)
    with _calling():
        captured.replay()
        torch.cuda.synchronize()
    compared = later.compared(ready.made(returned), right)
    wrong = examine.wrong(compared, right[compared.output].shape)
    return Examined(wrong and f"replayed from a CUDA graph: {wrong}", (compared,))


def two_streams(subject: Subject, trial: Trial) -> Examined:
    """Memory that calls share, such as a workspace, holds what the other stream's call wrote."""
    sides = [[examine.prepared(subject, drawn(subject, trial, seed)) for _ in range(AT_ONCE)] for seed in (0, 1)]
    rights = [side[0].right() for side in sides]
    examine.called(sides[0][0])
    streams = [torch.cuda.Stream() for _ in sides]  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    returned: list[list[object]] = [[], []]
    with _calling():
        for one in streams:
            with torch.cuda.stream(one):
                # So that both have calls waiting when they begin.
                torch.cuda._sleep(LATE_CYCLES)  # type: ignore[no-untyped-call]
        for at in range(AT_ONCE):
            for side, one in enumerate(streams):
                with torch.cuda.stream(one):
                    returned[side].append(sides[side][at].call())
        torch.cuda.synchronize()
    compared = [
        ready.compared(ready.made(result), right)
        for side, right, results in zip(sides, rights, returned, strict=True)
        for ready, result in zip(side, results, strict=True)
    ]
    worst = max(compared, key=lambda one: (not one.passed, one.error_ratio or 0.0))
    wrong = examine.wrong(worst, rights[0][worst.output].shape)
    return Examined(wrong and f"with calls on two streams at once: {wrong}", (worst,))


class _calling:  # noqa: N801 - a context manager that reads like a word
    """An error inside is the kernel's."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, KernelCallError):
            raise KernelCallError(f"the kernel raised an error: {first_line(loading.error_message(error))}") from None


# Huge tensors ---------------------------------------------------------------------------------------------------------


def huge(subject: Subject, trial: Trial) -> Examined:
    draw = drawn(subject, trial)
    judge, case = subject.judge, draw.case
    given = operands.inputs(judge, case, draw)
    shapes = operands.output_shapes(judge, case, given)
    every = {name: tuple(tensor.shape) for name, tensor in operands.tensors(given)}
    parts = operands.parts(judge, every | {name: shape for name, (shape, _) in shapes.items()})
    if parts is None or judge.in_place:
        raise UntriedError("huge outputs are compared in parts, and the card names no independent axes")
    outs = {name: guarded(shape, dtype, subject.device, 0) for name, (shape, dtype) in shapes.items()}
    call = subject.bound.prepared(case, given, {name: one.tensor for name, one in outs.items()})
    ready = ReadyCall(subject, draw, given, given, (), outs, shapes, call)
    made = examine.called(ready)
    entries = torch.tensor(_entries(parts.count, made), device=subject.device)
    part = operands.changed_by_name(given, lambda name, tensor: parts.take(name, tensor, entries))
    right = compare.expected(judge, case, part, tuple(shapes))
    compared = ready.compared({name: parts.take(name, tensor, entries) for name, tensor in made.items()}, right)
    wrong = examine.wrong(compared, right[compared.output].shape)
    if wrong:
        first = int(entries[compared.worst[parts.axes[compared.output][0]]]) if compared.worst else 0
        wrong = f"entry {first} of {parts.count}: {wrong}"
    return Examined(wrong or _trespass(ready), (compared,))


def _entries(count: int, made: Tensors) -> list[int]:
    """Of so many entries the first and the last, those at the boundaries of each output, and some at random."""
    found = {0, 1, count // 2, count - 2, count - 1}
    for tensor in made.values():
        elements = max(1, tensor.numel() // count)
        for boundary in BOUNDARIES:
            for per_entry in (elements, elements * tensor.element_size()):
                found |= {boundary // per_entry + step for step in (-1, 0, 1)}
    generator = torch.Generator().manual_seed(0)
    found |= set(torch.randint(count, (LOOKED_AT,), generator=generator).tolist())
    return sorted(at for at in found if 0 <= at < count)


WAYS: Mapping[str, Callable[[Subject, Trial], Examined]] = {
    **dict.fromkeys(LAYOUTS, layout),
    "empty": empty,
    "repeat": repeat,
    "stream": stream,
    "graph": graph,
    "two-streams": two_streams,
    "huge": huge,
    "between-others": concurrent_calls.between_others,
    "shared-inputs": concurrent_calls.shared_inputs,
    "two-threads": concurrent_calls.two_threads,
}


def try_each(request: FuzzRequest, leader: Leader) -> None:
    """Loads the library, then tries trials until one leaves the device beyond use."""
    with triton_runtime.shared([request.library.folder]):
        judge = loading.load(request.card)
        subject = Subject(judge, calls.bind(request.library.read(), judge, "head"), request.device)
        leader.send(Ready())
        outcome = None
        while outcome is None or not outcome.last:
            outcome = _tried(subject, request, leader.receive(Trial))
            leader.send(outcome)


def _tried(subject: Subject, request: FuzzRequest, trial: Trial) -> TrialOutcome:
    fault: str | None = None
    untried: str | None = None
    inapplicable = False
    try:
        with triton_runtime.one_config(trial.id) if "triton" in sys.modules else nullcontext():
            done = examined(subject, trial)
            return TrialOutcome(
                fault=done.fault,
                max_abs_error=compare.largest([one.max_abs_error for one in done.comparisons]),
                error_ratio=compare.largest([one.error_ratio for one in done.comparisons]),
                note=done.note,
                repeatable=done.repeatable,
            )
    except KernelCallError as error:
        fault = str(error)
    except UntriedError as error:
        untried, inapplicable = str(error), isinstance(error, InapplicableError)
    except Exception as error:
        mistake = str(loading.mistake_of(request.card, "", error))
        if WAY in trial.axes:
            untried = mistake
        else:  # what a card lists itself, it must be able to make
            fault = f"not checked: {mistake}"
    last = beyond_use(request.device)
    return TrialOutcome(fault=fault, untried=untried, inapplicable=inapplicable, last=last)
