"""Measures accuracy in a process of its own, which holds base, head and oracle. Started and read by accuracy.py."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from kernelgate.bench import record
from kernelgate.bench.check.accuracy import AccuracyRequest, CaseMeasured, DrawnInputs
from kernelgate.bench.check.examine import beyond_use, bits, synchronize
from kernelgate.bench.core.errors import first_line
from kernelgate.bench.kernel import compare, loading, operands, triton_runtime
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.compare import PairErrors
from kernelgate.bench.kernel.operands import Bound, Draw, Inputs, Parts, Shapes, Tensors
from kernelgate.bench.record import OutputAccuracy, UlpErrors
from kernelgate.bench.system.worker import Leader, Ready

ELEMENTS = {"cuda": 2**21, "cpu": 2**18}
"""Of an output, so many are compared in one draw where the card says that a part may be checked alone: their mean error
is known to a fraction of a percent."""

LEAST_DRAWS = 4
"""With fewer a case says nothing: three degrees of freedom still show a doubled error."""


class LeftOutError(Exception):
    """Why a case has no figures."""


@dataclass(frozen=True)
class Pairing:
    """The judging card, and what both commits make of it."""

    judge: Kernel
    bound: Mapping[record.Side, Bound]
    device: str


@dataclass(frozen=True)
class DrawnOutput:
    """One output of one draw."""

    errors: PairErrors | None
    identical: bool
    elements: int
    """That were looked at."""


def measure(pairing: Pairing, asked: DrawnInputs, deadline: float) -> tuple[OutputAccuracy, ...]:
    """With fewer draws where time.perf_counter() passes the deadline. Raises LeftOutError."""
    results: list[dict[str, DrawnOutput]] = []
    for seed in asked.seeds:
        if time.perf_counter() > deadline:
            if len(results) >= LEAST_DRAWS:
                break
            raise LeftOutError(f"the time for it ran out after {len(results)} of {len(asked.seeds)} draws")
        results.append(drawn(pairing, asked, seed))
        synchronize(pairing.device)
    outputs = tuple(_summed(asked, name, [one[name] for one in results]) for name in results[0])
    if not outputs:
        raise LeftOutError("its outputs are float64, as precise as the oracle")
    return outputs


def drawn(pairing: Pairing, asked: DrawnInputs, seed: int) -> dict[str, DrawnOutput]:
    """One draw of inputs, given to both sides and to the oracle."""
    judge, case = pairing.judge, CaseAxes(asked.axes)
    draw = Draw(case, pairing.device, seed, asked.distribution)
    given = operands.inputs(judge, case, draw)
    shapes = operands.output_shapes(judge, case, given)
    base, head = (_outputs(pairing, side, case, given, shapes) for side in ("base", "head"))
    parts = _parts(judge, given, shapes)
    entries = _entries(parts, shapes, draw) if parts else None

    def part(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if parts is None or entries is None else parts.take(name, tensor, entries)

    right = compare.expected(judge, case, operands.changed_by_name(given, part), tuple(shapes))
    kept = [name for name, (_, dtype) in shapes.items() if compare.has_ulp(dtype)]
    results = {}
    for name in kept:
        of_base, of_head = part(name, base[name]), part(name, head[name])
        if of_base.shape != right[name].shape:
            raise LeftOutError(f"oracle() gave shape {list(right[name].shape)} for {name}, not {list(of_base.shape)}")
        identical = torch.equal(bits(base[name]), bits(head[name]))
        results[name] = DrawnOutput(compare.ulp_errors(of_base, of_head, right[name]), identical, of_base.numel())
    return results


def _outputs(pairing: Pairing, side: record.Side, case: CaseAxes, given: Inputs, shapes: Shapes) -> Tensors:
    """Of one side's call on copies of the inputs. What it does not write is NaN."""
    judge, bound = pairing.judge, pairing.bound[side]
    copied = operands.changed(given, torch.clone)
    outs = operands.empty_outputs(judge, shapes, pairing.device)
    for tensor in outs.values():
        tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
    call = bound.prepared(case, copied, outs)
    try:
        returned = call()
        synchronize(pairing.device)
    except Exception as error:
        raise LeftOutError(f"the {side} raised an error: {first_line(loading.error_message(error))}") from None
    handed = outs or {name: copied[name] for name in shapes}
    made = operands.results(bound, returned, copied, handed, tuple(judge.in_place))
    odd = next((name for name, one in made.items() if (tuple(one.shape), one.dtype) != shapes[name]), None)
    if odd is not None:
        raise LeftOutError(f"the {side} returned {odd} in another shape or dtype than outputs() says")
    return made


def _parts(judge: Kernel, given: Inputs, shapes: Shapes) -> Parts | None:
    """How the oracle can be asked about a part of the outputs; None where it must compute all of them."""
    if not shapes or any(name not in judge.independent for name in shapes):
        return None
    by_name = {name: tuple(value.shape) for name, value in given.items() if isinstance(value, torch.Tensor)}
    return operands.parts(judge, {**by_name, **{name: shape for name, (shape, _) in shapes.items()}})


def _entries(parts: Parts, shapes: Shapes, draw: Draw) -> torch.Tensor | None:
    """Some entries, others in each draw; None where all of them are few enough."""
    elements = max(torch.Size(shape).numel() for shape, _ in shapes.values())
    count = max(1, parts.count * ELEMENTS[draw.device] // max(1, elements))
    if count >= parts.count:
        return None
    order = torch.randperm(parts.count, generator=draw.generator, device=draw.device)
    return order[:count].sort().values


def _summed(asked: DrawnInputs, name: str, results: list[DrawnOutput]) -> OutputAccuracy:
    found = [one.errors for one in results if one.errors is not None]
    if len(found) < len(results):
        raise LeftOutError(f"{name} has no element that is finite on both sides and in the oracle")

    def side(which: record.Side) -> UlpErrors:
        errors = [one.base if which == "base" else one.head for one in found]
        return UlpErrors(
            mean=tuple(one.mean for one in errors),
            maximum=tuple(one.maximum for one in errors),
            bias=tuple(one.bias for one in errors),
            outward=tuple(one.outward for one in errors),
        )

    return OutputAccuracy(
        case=asked.case,
        output=name,
        distribution=asked.distribution,
        base=side("base"),
        head=side("head"),
        identical=sum(one.identical for one in results),
        elements=min(one.elements for one in found),
        not_finite=sum(one.elements for one in results) - sum(one.elements for one in found),
    )


def measure_each(request: AccuracyRequest, leader: Leader) -> None:
    """Loads both libraries, then measures case after case, until one leaves the device beyond use."""
    with triton_runtime.shared([at.folder for _, at in request.libraries]):
        judge = loading.load(request.card)
        bound = {side: operands.bind(at.read(), judge, side) for side, at in request.libraries}
        pairing = Pairing(judge, bound, request.device)
        leader.send(Ready())
        outcome = None
        while outcome is None or not outcome.last:
            outcome = _outcome(pairing, request.card, leader.receive(DrawnInputs))
            leader.send(outcome)


def _outcome(pairing: Pairing, card: Path, asked: DrawnInputs) -> CaseMeasured:
    begun = time.perf_counter()
    outputs: tuple[OutputAccuracy, ...] = ()
    left_out: str | None = None
    try:
        with triton_runtime.one_config(asked.case) if "triton" in sys.modules else nullcontext():
            outputs = measure(pairing, asked, begun + asked.share_s)
    except LeftOutError as error:
        left_out = str(error)
    except Exception as error:
        left_out = str(loading.mistake_of(card, "", error))
    took_s = time.perf_counter() - begun
    last = left_out is not None and beyond_use(pairing.device)
    return CaseMeasured(outputs=outputs, left_out=left_out, seconds=took_s, last=last)
