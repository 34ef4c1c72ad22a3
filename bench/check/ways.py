"""The ways in which a fuzz trial calls a kernel, besides once with whole tensors on an idle device.

offset, gaps, transposed  each tensor in turn lies one element off, with gaps between rows, or with its last two axes
                          exchanged in memory: the kernel must be right, or refuse by an error, whatever its words
repeat                    many calls on the same inputs, each compared: what is rare, and what differs from call to call
stream                    on a stream whose inputs arrive late, while the default stream is idle
graph                     captured into a CUDA graph, replayed on other inputs
two-streams               calls on two streams at once, with inputs of their own
huge                      tensors beyond 2 GiB, of which parts are compared
between-others            calls of other cases before it and between two of it: a choice, a table or a workspace that an
                          earlier call left, and that is kept by less than all that it depends on
shared-inputs             inputs of one shape and dtype are one tensor, as in a product of a matrix with itself
two-threads               two threads call at once, each with inputs of its own: what the host keeps in static memory

`try_each` runs in a process of its own, led by trial_process.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path

import torch

from kernelgate.bench import record
from kernelgate.bench.check import examine
from kernelgate.bench.check.examine import (
    KernelCallError,
    MemoryLayout,
    ReadyCall,
    Subject,
    bits,
)
from kernelgate.bench.check.trial_process import CheckRequest, TrialOutcome
from kernelgate.bench.core.errors import KernelgateError, first_line, why
from kernelgate.bench.kernel import compare, loading, operands
from kernelgate.bench.kernel.card import CaseAxes
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.kernel.operands import Draw, Tensors
from kernelgate.bench.system.worker import Leader

REPEATS = 1600
"""Calls of the way "repeat": what is wrong in one call of 400 is missed in one run of 55."""
REPEAT_S = 2.0
"""Its calls end after this long."""
LATE_CYCLES = 20_000_000
"""For which a stream waits before its inputs arrive: about …"""
LATE_MS = 10.0
AT_ONCE = 8
"""Calls on each of two streams."""
THREAD_CALLS = 100
GAP = 8
"""Elements between rows."""
BOUNDARIES = (2**31, 2**32)
"""Bytes and elements of a tensor, around which huge trials look."""
LOOKED_AT = 24
"""Random entries that they look at besides."""


class UntriedError(Exception):
    """Why the card itself cannot make such a case."""


class InapplicableError(UntriedError):
    """Why the way is none for such a card, which is nothing that anybody must know."""


def outcome(
    fault: str | None,
    *comparisons: Comparison,
    note: str | None = None,
    repeatable: bool | None = None,
    refused: bool = False,
) -> TrialOutcome:
    """What one trial showed; its errors are the largest of all that was compared."""
    return TrialOutcome(
        fault=fault,
        max_abs_error=compare.largest([one.max_abs_error for one in comparisons]),
        error_ratio=compare.largest([one.error_ratio for one in comparisons]),
        note=note,
        repeatable=repeatable,
        refused=refused,
    )


def drawn(subject: Subject, trial: Trial, seed: int = 0) -> Draw:
    """`seed`: one of several for a trial."""
    return Draw(CaseAxes(trial.axes), subject.device, trial.seed + seed, trial.distribution)


def plain(subject: Subject, trial: Trial) -> TrialOutcome:
    """Two calls on fresh inputs each; then the first tensor of the second where it was, and the others elsewhere."""
    draw = drawn(subject, trial)
    ready = [examine.prepared(subject, draw, which) for which in (0, 1)]
    runs = [examine.run(one) for one in ready]
    found, compared = examine.fault(runs), [one.comparison for one in runs]
    if found is None and len(ready[1].inputs) > 1:
        moved = examine.moved(ready[1])
        compared.append(moved.compared(examine.called(moved), runs[1].right))
        if wrong := examine.wrong(compared[-1], runs[1].right):
            name = ready[1].inputs[0][0]
            found = f"with {name} where it was and the other inputs elsewhere: {wrong}; does it keep their addresses?"
    return outcome(found, *compared)


# Layouts --------------------------------------------------------------------------------------------------------------


def _gaps(tensor: torch.Tensor) -> MemoryLayout | None:
    if tensor.ndim < 2:  # a list of indices, such as the ends of sequences, is read as it is made
        return MemoryLayout((2,)) if tensor.ndim and tensor.is_floating_point() else None
    return MemoryLayout(torch.empty([*tensor.shape[:-1], tensor.shape[-1] + GAP], device="meta").stride())


def _transposed(tensor: torch.Tensor) -> MemoryLayout | None:
    if tensor.ndim < 2:
        return None
    swapped = torch.empty([*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]], device="meta").stride()
    return MemoryLayout((*swapped[:-2], swapped[-1], swapped[-2]))


LAYOUTS: Mapping[str, tuple[Callable[[torch.Tensor], MemoryLayout | None], str]] = {
    "offset": (lambda _: MemoryLayout(offset=1), "lies one element off an aligned address"),
    "gaps": (_gaps, "has gaps between its rows"),
    "transposed": (_transposed, "has its last two axes exchanged in memory"),
}
"""Where the tensor lies, and how to say it."""


def layout(subject: Subject, trial: Trial) -> TrialOutcome:
    place, how = LAYOUTS[trial.way]
    draw = drawn(subject, trial)
    refused: list[str] = []
    comparisons: list[Comparison] = []
    for name, one in _tensors(examine.prepared(subject, draw)).items():
        if place(one) is None:
            continue

        def only_this(other: str, tensor: torch.Tensor, name: str = name) -> MemoryLayout | None:
            return place(tensor) if other == name and tensor.is_contiguous() else None

        ready = examine.prepared(subject, draw, places=only_this)
        try:
            done = examine.run(ready)
        except KernelCallError as error:
            # An error of the device is a launch that failed, and what came back wrong is wrong: neither is a refusal.
            raised = "raised an error" in str(error) and "CUDA error" not in str(error)
            if not raised or examine.beyond_use(subject.device):
                raise KernelCallError(f"where {name} {how}, {error}") from None
            if found := examine.trespass(ready, ready.outputs):
                return outcome(f"where {name} {how}: {found}, and refused it then")
            refused.append(name)
            continue
        comparisons.append(done.comparison)
        if found := examine.fault([done]):
            return outcome(f"where {name} {how}: {found}; support that, or refuse it by an error")
    if not comparisons and not refused:
        raise InapplicableError(f"no tensor can be laid out so: {trial.way}")
    note = f"refused by an error: {', '.join(refused)}" if refused else None
    return outcome(None, *comparisons, note=note, refused=not comparisons)


def _tensors(ready: ReadyCall) -> dict[str, torch.Tensor]:
    """The inputs that are tensors, and the outputs that a call is handed, without their memory."""
    handed = {} if ready.subject.bound.returns(tuple(ready.outputs)) else ready.outputs
    tensors = {name: original for name, _, original in ready.inputs} | {name: handed[name].tensor for name in handed}
    return {name: tensor.to("meta") for name, tensor in tensors.items()}


def _judged(said: str, compared: Comparison, right: Tensors, ask: str = "") -> TrialOutcome:
    wrong = examine.wrong(compared, right)
    return outcome(wrong and f"{said}: {wrong}{ask}", compared)


# Many calls -----------------------------------------------------------------------------------------------------------


def _repeated(ready: ReadyCall, right: Tensors) -> Iterator[tuple[Comparison, bool]]:
    """Calls on the same inputs, without an end: what each gives, and whether its bits are those of the first."""
    first: Tensors = {}
    while True:
        ready.refill()  # an earlier call may have overwritten its inputs
        made = examine.called(ready)
        same = bool(first) and all(torch.equal(bits(tensor), first[name]) for name, tensor in made.items())
        if not same:
            compared = ready.compared(made, right)
        first = first or {name: bits(tensor).clone() for name, tensor in made.items()}
        yield compared, same


def repeat(subject: Subject, trial: Trial) -> TrialOutcome:
    ready = examine.prepared(subject, drawn(subject, trial))
    right = ready.right()
    each = _repeated(ready, right)
    compared, _ = next(each)
    begun, done, other = time.monotonic(), 1, 0
    while compared.passed and done < REPEATS and time.monotonic() - begun < REPEAT_S:
        try:
            compared, same = next(each)
        except examine.KernelCallError as error:
            raise examine.KernelCallError(f"{error}, in call {done + 1} after {done} right ones") from None
        done += 1
        other += not same
    fault = examine.wrong(compared, right)
    said = f"call {done} on the same inputs: {fault}" if fault and done > 1 else fault
    note = f"not the same to the bit in {other} of {done} calls on the same inputs" if other else None
    return outcome(said, compared, note=note, repeatable=not other)


def between_others(subject: Subject, trial: Trial) -> TrialOutcome:
    """Each other case is called, then this one again."""
    listed: list[tuple[Mapping[str, bool | int | float | str], int, str]] = []
    for at, other in enumerate(trial.others):
        changed = ", ".join(f"{axis}={value}" for axis, value in other.items() if trial.axes.get(axis) != value)
        listed.append((trial.axes, at, "between calls of other cases"))
        listed.append((other, at, f"called with {changed} in between"))
    listed.append((trial.axes, len(trial.others), "after calls of other cases"))
    comparisons: list[Comparison] = []
    for axes, seed, said in listed:
        draw = Draw(CaseAxes(axes), subject.device, trial.seed + seed, trial.distribution)
        done = examine.run(examine.prepared(subject, draw))
        comparisons.append(done.comparison)
        if found := examine.fault([done]):
            why = "does a call keep something by less than all that it depends on?"
            return outcome(f"{said}: {found}; {why}", *comparisons)
    return outcome(None, *comparisons)


def shared_inputs(subject: Subject, trial: Trial) -> TrialOutcome:
    """But for whole numbers beside real ones, which may be indices into another input."""
    judge, draw = subject.judge, drawn(subject, trial)
    first: dict[object, torch.Tensor] = {}

    def first_alike(one: torch.Tensor) -> torch.Tensor:
        if not one.is_floating_point() and one.dtype != draw.dtype:
            return one
        return first.setdefault((tuple(one.shape), one.stride(), one.dtype), one)

    originals = operands.inputs(judge, draw.case, draw)
    if not judge.in_place:
        originals = operands.with_state(judge, draw.case, operands.changed(originals, first_alike))
    ready = examine.prepared(subject, draw, originals=originals)
    if len(ready.inputs) == len(list(operands.tensors(originals))):
        raise InapplicableError("no two inputs are of one shape and dtype")
    done = examine.run(ready)
    found = examine.fault([done])
    return outcome(found and f"where inputs of one shape are one tensor: {found}", done.comparison)


def two_threads(subject: Subject, trial: Trial) -> TrialOutcome:
    ready = [examine.prepared(subject, drawn(subject, trial, seed)) for seed in (0, 1)]
    rights = [one.right() for one in ready]
    for one in ready:
        examine.called(one)  # the first call loads the kernel

    def compared(side: int) -> list[Comparison]:
        return [one for one, _ in islice(_repeated(ready[side], rights[side]), THREAD_CALLS)]

    try:
        with ThreadPoolExecutor(2) as pool:
            worst = examine.worst(chain.from_iterable(pool.map(compared, (0, 1))))
    except KernelCallError as error:
        raise KernelCallError(f"called from two threads at once, {error}") from None
    return _judged("called from two threads at once", worst, rights[0])


# Streams and graphs ---------------------------------------------------------------------------------------------------


def stream(subject: Subject, trial: Trial) -> TrialOutcome:
    """The inputs are poison until the stream gets to them: a launch on another stream reads it."""
    ready = examine.prepared(subject, drawn(subject, trial))
    right = ready.right()
    examine.called(ready)  # the first call loads the kernel, which waits for the device
    for buffer in (*(copy for _, copy, _ in ready.inputs), *ready.outputs.values()):
        buffer.poison()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        with examine.calling(subject):
            torch.cuda._sleep(LATE_CYCLES)  # type: ignore[no-untyped-call]
            for _, copy, original in ready.inputs:
                operands.fill(copy.tensor, original)
            returned = ready.call()
            torch.cuda.current_stream().synchronize()
        compared = ready.compared(ready.made(returned), right)
        with examine.calling(subject):
            torch.cuda.synchronize()
    return _judged("on a stream of its own", compared, right, "; does it launch on the current stream?")


def graph(subject: Subject, trial: Trial) -> TrialOutcome:
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
        return outcome(None, note=f"cannot be captured into a CUDA graph: {first_line(error)}")
    ready.refill()
    for (_, copy, _), (_, _, new) in zip(ready.inputs, later.inputs, strict=True):
        operands.fill(copy.tensor, new)
    with examine.calling(subject):
        captured.replay()
        torch.cuda.synchronize()
    return _judged("replayed from a CUDA graph", later.compared(ready.made(returned), right), right)


def two_streams(subject: Subject, trial: Trial) -> TrialOutcome:
    """Memory that calls share, such as a workspace, holds what the other stream's call wrote.

    The second stream falls back by a part of a call with each call: in step, calls could miss each other's every use.
    """
    sides = [[examine.prepared(subject, drawn(subject, trial, seed)) for _ in range(AT_ONCE)] for seed in (0, 1)]
    rights = [side[0].right() for side in sides]
    examine.called(sides[0][0])  # the first call loads the kernel
    apart = min(_cycles(ready) for ready in sides[0][1:3]) // AT_ONCE  # a process's first timed call takes 80 ms
    streams = [torch.cuda.Stream() for _ in sides]  # type: ignore[no-untyped-call]
    for cycles in (LATE_CYCLES, 4 * LATE_CYCLES, 16 * LATE_CYCLES):
        for ready in chain.from_iterable(sides):
            ready.refill()  # a call may have overwritten its inputs
        torch.cuda.synchronize()
        returned: list[tuple[ReadyCall, Tensors, object]] = []
        with examine.calling(subject):
            for one in streams:
                with torch.cuda.stream(one):
                    # So that both have calls waiting when they begin.
                    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
            begun = streams[0].record_event()
            for at in range(AT_ONCE):
                for side, right, one in zip(sides, rights, streams, strict=True):
                    with torch.cuda.stream(one):
                        if one is streams[1]:
                            torch.cuda._sleep(apart)  # type: ignore[no-untyped-call]
                        returned.append((side[at], right, side[at].call()))
            late = begun.query()  # the first calls on a stream also wait for memory
            torch.cuda.synchronize()
        if not late:
            break
    worst = examine.worst(ready.compared(ready.made(result), right) for ready, right, result in returned)
    return _judged("with calls on two streams at once", worst, rights[0])


def _cycles(ready: ReadyCall) -> int:
    """What a call takes on the device, about, as `torch.cuda._sleep` counts."""
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    with examine.calling(ready.subject):
        torch.cuda._sleep(LATE_CYCLES)  # type: ignore[no-untyped-call]
        begun.record()
        ready.call()
        ended.record()
        torch.cuda.synchronize()
    return int(begun.elapsed_time(ended) / LATE_MS * LATE_CYCLES)


# Huge tensors ---------------------------------------------------------------------------------------------------------


def huge(subject: Subject, trial: Trial) -> TrialOutcome:
    draw = drawn(subject, trial)
    judge, case = subject.judge, draw.case
    given = operands.inputs(judge, case, draw)
    shapes = operands.output_shapes(judge, case, given)
    every = {name: tuple(tensor.shape) for name, tensor in operands.tensors(given)}
    parts = operands.parts(judge, every | {name: shape for name, (shape, _) in shapes.items()})
    if parts is None or judge.in_place:
        raise UntriedError("huge outputs are compared in parts, and the card names no independent axes")
    outs = {name: examine.guarded(shape, dtype, subject.device, 0) for name, (shape, dtype) in shapes.items()}
    call = subject.bound.prepared(case, given, {name: one.tensor for name, one in outs.items()})
    ready = ReadyCall(subject, draw, given, given, (), outs, shapes, call)
    made = examine.called(ready)
    entries = torch.tensor(_entries(parts.count, made), device=subject.device)
    part = operands.changed_by_name(given, lambda name, tensor: parts.take(name, tensor, entries))
    right = compare.expected(judge, case, part, tuple(shapes))
    taken = {name: parts.take(name, tensor, entries) for name, tensor in made.items()}
    compared = compare.outputs(judge, case, taken, right, lambda: part)
    if wrong := examine.wrong(compared, right):
        first = int(entries[compared.worst[parts.axes[compared.output][0]]]) if compared.worst else 0
        wrong = f"entry {first} of {parts.count}: {wrong}"
    return outcome(wrong or examine.trespass(ready, outs), compared)


def _entries(count: int, made: Tensors) -> list[int]:
    """Of so many entries the first and the last, those at the boundaries of each output, and some at random."""
    found = {0, 1, count // 2, count - 2, count - 1}
    for tensor in made.values():
        elements = max(1, tensor.numel() // count)
        for boundary in BOUNDARIES:
            for per_entry in (elements, elements * tensor.element_size()):
                found |= {boundary // per_entry + step for step in (-1, 0, 1)}
    found |= set(torch.randint(count, (LOOKED_AT,), generator=torch.Generator().manual_seed(0)).tolist())
    return sorted(at for at in found if 0 <= at < count)


WAYS: Mapping[str, Callable[[Subject, Trial], TrialOutcome]] = {
    **dict.fromkeys(LAYOUTS, layout),
    "repeat": repeat,
    "stream": stream,
    "graph": graph,
    "two-streams": two_streams,
    "huge": huge,
    "between-others": between_others,
    "shared-inputs": shared_inputs,
    "two-threads": two_threads,
}


def try_each(request: CheckRequest, leader: Leader) -> None:
    examine.answer_each(request, leader, Trial, partial(_tried, request.card))


def _tried(card: Path, subjects: Mapping[record.Side, Subject], trial: Trial) -> TrialOutcome:
    try:
        (subject,) = subjects.values()
        return WAYS.get(trial.way, plain)(subject, trial)
    except KernelCallError as error:
        return TrialOutcome(fault=str(error))
    except UntriedError as error:
        return TrialOutcome(untried=str(error), inapplicable=isinstance(error, InapplicableError))
    except Exception as error:
        found = loading.mistake_of(card, "", error)
        if found.line is None and not isinstance(error, KernelgateError):
            return TrialOutcome(untried=f"to judge it failed, as where a kernel changes Python or torch: {why(error)}")
        return TrialOutcome(untried=f"the card failed at {found}")
