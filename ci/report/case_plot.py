"""Where everything stands in the picture of one case: processes, overall interval, margin and gate, in SVG units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Plot, Tick, Whisker
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, ProcessChange
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.report.gpu import JudgedCase

WIDTH = 360.0
LEFT, RIGHT = 62.0, 350.0
"""The frame's edges: process names stand left of it."""
TOP = 18.0
"""Room for the gate's label."""
ROW = 15.0
AXIS = 18.0
"""Room for the tick labels."""
GATE_LABEL = 108.0
"""Width of the gate's label, at most."""
MAX_TICKS = 7


def plot(one: JudgedCase, gates: Gates, label: str = "") -> Plot | None:
    """The picture of one case; None where no process has an estimate, or where none should be believed.

    `label`: of the GPU, where there are several.
    """
    case = one.case
    if case.disqualifying:
        return None
    processes = [process for process in case.per_process if math.isfinite(process.change_pct)]
    if not processes:
        return None
    scale = Scale.over(processes, case, gates)
    rows = len(processes) + (case.change_pct is not None and case.interval_pct is not None)
    bottom = TOP + ROW * rows + 6
    gate = scale.x(gates.regression_pct)
    middle = [TOP + 3 + ROW * (row + 0.5) for row in range(rows)]
    return Plot(
        case=(Code(label), ": ", one.name) if label else (one.name,),
        mark=sentences.mark(one.status),
        sentence=case.sentence[:1].upper() + case.sentence[1:],
        description=_description(processes, case, gates),
        width=WIDTH,
        height=bottom + AXIS,
        top=TOP,
        bottom=bottom,
        ticks=tuple(Tick(scale.x(value), _tick_label(value)) for value in scale.ticks()),
        zero=scale.x(0.0),
        margin=(scale.x(-gates.margin_pct), scale.x(gates.margin_pct)),
        gate=Tick(gate, f"blocks above +{formatting.threshold(gates.regression_pct)}") if gate <= RIGHT else None,
        gate_label_x=min(gate, WIDTH - GATE_LABEL / 2),
        processes=tuple(
            _whisker(f"process {number}", y, process, scale)
            for number, (y, process) in enumerate(zip(middle, processes, strict=False), start=1)
        ),
        overall=_overall(case, middle[-1], scale),
    )


@dataclass(frozen=True)
class Scale:
    """Maps percent to drawing units."""

    low: float
    high: float

    @classmethod
    def over(cls, processes: Sequence[ProcessChange], case: CaseVerdict, gates: Gates) -> Scale:
        """A range that shows zero, the margin and every estimate, and the gate unless the case is clearly faster."""
        shown = [process.change_pct for process in processes]
        shown += [bound for bound in case.interval_pct or () if math.isfinite(bound)]
        shown += [-gates.margin_pct, gates.margin_pct if max(shown) < -gates.margin_pct else gates.regression_pct]
        room = 0.08 * (max(shown) - min(shown))
        return cls(min(shown) - room, max(shown) + room)

    def x(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(LEFT + share * (RIGHT - LEFT), 1)

    def cut(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def ticks(self) -> list[float]:
        """Round numbers, a few of them: steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / MAX_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _whisker(label: str, y: float, process: ProcessChange, scale: Scale) -> Whisker:
    low, high = (bound if math.isfinite(bound) else process.change_pct for bound in (process.low_pct, process.high_pct))
    return Whisker(
        label=label,
        y=y,
        low=scale.x(scale.cut(low)),
        x=scale.x(process.change_pct),
        high=scale.x(scale.cut(high)),
        cut_low=low < scale.low,
        cut_high=high > scale.high,
    )


def _overall(case: CaseVerdict, y: float, scale: Scale) -> Whisker | None:
    if case.change_pct is None or case.interval_pct is None:
        return None
    return _whisker("overall", y, ProcessChange(case.change_pct, *case.interval_pct), scale)


def _tick_label(value: float) -> str:
    return f"{value:+g}".replace("-", "−") + "%" if abs(value) > 1e-12 else "0%"


def _description(processes: Sequence[ProcessChange], case: CaseVerdict, gates: Gates) -> str:
    each = ", ".join(formatting.percent(process.change_pct, 2, sign=True) for process in processes)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    return (
        f"Change of each process: {each}. Overall {change} {interval}. "
        f"Within ±{formatting.threshold(gates.margin_pct)} counts as the same; "
        f"above +{formatting.threshold(gates.regression_pct)} blocks."
    )
