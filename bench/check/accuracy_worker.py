"""Measures accuracy in a process of its own, which holds base, head and oracle. Started and read by accuracy.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from kernelgate.bench import record
from kernelgate.bench.check import examine
from kernelgate.bench.check.accuracy import CaseMeasured, DrawnInputs
from kernelgate.bench.check.examine import KernelCallError, Subject, bits, synchronize
from kernelgate.bench.check.trial_process import CheckRequest
from kernelgate.bench.kernel import compare, loading, operands
from kernelgate.bench.kernel.card import CaseAxes
from kernelgate.bench.kernel.operands import Draw, Parts, Shapes
from kernelgate.bench.record import OutputAccuracy, UlpErrors
from kernelgate.bench.system.worker import Leader

ELEMENTS = {"cuda": 2**21, "cpu": 2**18}
"""So many of an output are compared in a draw, where a part may be checked alone: the mean error is known to well below
1%."""

EXACT = (torch.int32, torch.int64, torch.bool)
"""Of indices, counts, hashes: nothing is rounded to them."""

LEAST_DRAWS = 4
"""With fewer a case says nothing: three degrees of freedom still show a doubled error."""


class LeftOutError(Exception):
    """Why a case has no figures."""


Sides = Mapping[record.Side, Subject]


def measure(sides: Sides, asked: DrawnInputs, deadline: float) -> tuple[OutputAccuracy, ...]:
    """With fewer draws where time.perf_counter() passes the deadline. Raises LeftOutError."""
    results: list[dict[str, OutputAccuracy]] = []
    for seed in asked.seeds:
        if time.perf_counter() > deadline:
            if len(results) >= LEAST_DRAWS:
                break
            raise LeftOutError(f"the time for it ran out after {len(results)} of {len(asked.seeds)} draws")
        results.append(drawn(sides, asked, seed))
        synchronize(sides["head"].device)
    named = [name for name in results[0] if all(name in one for one in results)]
    if not named:
        raise LeftOutError("whole numbers differ, which are right or wrong and not more or less accurate")
    return tuple(_summed([one[name] for one in results]) for name in named)


def drawn(sides: Sides, asked: DrawnInputs, seed: int) -> dict[str, OutputAccuracy]:
    """One draw of inputs, given to both sides and to the oracle. What a side does not write is NaN."""
    judge, case = sides["head"].judge, CaseAxes(asked.axes)
    draw = Draw(case, sides["head"].device, seed, asked.distribution)
    given = operands.inputs(judge, case, draw)
    shapes = operands.output_shapes(judge, case, given)
    try:
        base, head = (examine.called(examine.prepared(sides[side], draw, originals=given)) for side in ("base", "head"))
    except KernelCallError as error:
        raise LeftOutError(str(error)) from None
    by_name = {name: tuple(value.shape) for name, value in given.items() if isinstance(value, torch.Tensor)}
    by_name |= {name: shape for name, (shape, _) in shapes.items()}
    # Only where no output needs all of the inputs can the oracle be asked about a part.
    parts = operands.parts(judge, by_name) if shapes and set(shapes) <= set(judge.independent) else None
    entries = _entries(parts, shapes, draw) if parts else None

    def part(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if parts is None or entries is None else parts.take(name, tensor, entries)

    right = compare.expected(judge, case, operands.changed_by_name(given, part), tuple(shapes))
    results = {}
    for name in shapes:
        of_base, of_head = part(name, base[name]), part(name, head[name])
        if of_base.shape != right[name].shape:
            raise LeftOutError(f"oracle() gave shape {list(right[name].shape)} for {name}, not {list(of_base.shape)}")
        identical = torch.equal(bits(base[name]), bits(head[name]))
        if of_base.dtype in EXACT and not identical:
            continue
        if (errors := compare.ulp_errors(of_base, of_head, right[name])) is None:
            raise LeftOutError(f"{name} has no element that is finite on both sides and in the oracle")
        results[name] = OutputAccuracy(
            case=asked.id,
            output=name,
            distribution=asked.distribution,
            base=errors[0],
            head=errors[1],
            identical=int(identical),
            elements=errors[2],
            not_finite=of_base.numel() - errors[2],
        )
    return results


def _entries(parts: Parts, shapes: Shapes, draw: Draw) -> torch.Tensor | None:
    """Some entries, others in each draw; None where all of them are few enough."""
    elements = max(torch.Size(shape).numel() for shape, _ in shapes.values())
    count = max(1, parts.count * ELEMENTS[draw.device] // max(1, elements))
    if count >= parts.count:
        return None
    return torch.randperm(parts.count, generator=draw.generator, device=draw.device)[:count].sort().values


def _summed(draws: list[OutputAccuracy]) -> OutputAccuracy:
    every: dict[str, list[UlpErrors]] = {"base": [one.base for one in draws], "head": [one.head for one in draws]}
    parts: dict[str, object] = {
        side: UlpErrors(**{name: sum((getattr(one, name) for one in errors), ()) for name in UlpErrors.model_fields})
        for side, errors in every.items()
    }
    parts |= {name: sum(getattr(one, name) for one in draws) for name in ("identical", "not_finite")}
    return draws[0].model_copy(update={**parts, "elements": min(one.elements for one in draws)})


def measure_each(request: CheckRequest, leader: Leader) -> None:
    examine.answer_each(request, leader, DrawnInputs, partial(_outcome, request.card))


def _outcome(card: Path, sides: Sides, asked: DrawnInputs) -> CaseMeasured:
    begun = time.perf_counter()
    try:
        done = CaseMeasured(outputs=measure(sides, asked, begun + asked.share_s))
    except LeftOutError as error:
        done = CaseMeasured(left_out=str(error))
    except torch.cuda.OutOfMemoryError:
        done = CaseMeasured(left_out="two sides and the oracle in float64 take more memory than the GPU has free")
    except Exception as error:
        done = CaseMeasured(left_out=str(loading.mistake_of(card, "", error)))
    if sides["head"].device != "cpu":
        torch.cuda.empty_cache()  # what the next case takes is of other sizes
    return done.model_copy(update={"seconds": time.perf_counter() - begun})
