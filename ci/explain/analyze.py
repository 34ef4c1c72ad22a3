"""`kernelgate analyze`: what a profile says, for people and for machines. Any Nsight Compute report, no GPU needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import Profile
from kernelgate.ci.explain import bottleneck, recommend, roofline
from kernelgate.ci.explain.bottleneck import WORDS, Diagnosis
from kernelgate.ci.explain.facts import TENSOR_UNUSED_PCT
from kernelgate.ci.explain.figures import show
from kernelgate.ci.explain.recommend import Recommendation
from kernelgate.ci.explain.roofline import Roofline

SHOWN = (
    "tensor_pct",
    "dram_pct",
    "l2_hit_pct",
    "bank_conflicts",
    "occupancy_pct",
    "registers",
    "local_instructions",
    "shared_bytes",
    "grid",
    "waves",
    "sm_mhz",
    "memory_mhz",
)
"""Beside the duration and the stalls: what a person is shown, in this order."""
TOP_STALLS = 3


def in_order(stalls: Iterable[str], *sides: Mapping[str, float]) -> tuple[str, ...]:
    """Every figure that is set side by side: the time, the six with these stalls among them, the rest."""
    shown = _shown(*sides)
    return ("duration_us", *shown[:5], *stalls, *shown[5:])


def _shown(*sides: Mapping[str, float]) -> tuple[str, ...]:
    """Tensor cores that nobody uses come last."""
    used = max((side.get("tensor_pct", 0.0) for side in sides), default=0.0) >= TENSOR_UNUSED_PCT
    return SHOWN if used else (*(key for key in SHOWN if key != "tensor_pct"), "tensor_pct")


@dataclass(frozen=True)
class Analysis:
    """One launch of a kernel, judged."""

    kernel: ProfiledKernel
    findings: tuple[Diagnosis, ...]
    roofline: Roofline
    recommendations: tuple[Recommendation, ...]

    @property
    def bottleneck(self) -> Diagnosis:
        return self.findings[0]


def analyze(path: Path) -> tuple[Analysis, ...]:
    """Every launch of the report, in its order. Raises ReportError where there is nothing to read."""
    return tuple(analyze_kernel(kernel) for kernel in ncu_reader.read(path))


def analyze_kernel(kernel: ProfiledKernel) -> Analysis:
    findings = bottleneck.classify(kernel)
    return Analysis(kernel, findings, roofline.place(kernel), recommend.recommend(kernel, findings))


def top_stalls(figures: Mapping[str, float], most: int = TOP_STALLS) -> list[tuple[str, float]]:
    """The largest reasons to wait, in cycles per issued instruction."""
    waiting = {
        key: value
        for key, value in figures.items()
        if metrics.is_stall(key) and key not in ("stall_selected", "stall_not_selected")
    }
    return sorted(waiting.items(), key=lambda item: -item[1])[:most]


# ----------------------------------------------------------------------------------------------------------------------
# For machines
# ----------------------------------------------------------------------------------------------------------------------


def to_json(analyses: Sequence[Analysis], against: Sequence[Analysis] = ()) -> str:
    """One object with `kernels`; with another report also `against`, the same for that one, and `changes`."""
    content: dict[str, Any] = {"kernels": [_as_dict(analysis) for analysis in analyses]}
    if against:
        content["against"] = [_as_dict(analysis) for analysis in against]
        content["changes"] = [
            {"kernel": here.kernel.name, **{change.key: change.as_dict() for change in changes(there, here)}}
            for here, there in pairs(analyses, against)
        ]
    return json.dumps(content, indent=2, allow_nan=False)


def _as_dict(analysis: Analysis) -> dict[str, Any]:
    finding = analysis.bottleneck
    return {
        "kernel": analysis.kernel.name,
        "duration_us": analysis.kernel.figures.get("duration_us"),
        "bottleneck": finding.bottleneck.value,
        "confidence": round(finding.strength, 2),
        "metrics": dict(analysis.kernel.figures),
        "roofline": asdict(analysis.roofline),
        "recommendations": [asdict(one) for one in analysis.recommendations],
    }


# ----------------------------------------------------------------------------------------------------------------------
# Against another report
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricChange:
    key: str
    before: float
    after: float

    @property
    def pct(self) -> float | None:
        return 100 * (self.after / self.before - 1) if self.before else None

    def as_dict(self) -> dict[str, float | None]:
        return {"before": self.before, "after": self.after, "change_pct": self.pct}


def pairs(analyses: Sequence[Analysis], against: Sequence[Analysis]) -> Iterator[tuple[Analysis, Analysis]]:
    """Launches that belong together: the n-th of a name with the n-th of that name; two single launches always."""
    if len(analyses) == len(against) == 1:
        yield analyses[0], against[0]
        return
    waiting = list(against)
    for here in analyses:
        there = next((one for one in waiting if one.kernel.name == here.kernel.name), None)
        if there is not None:
            waiting.remove(there)
            yield here, there


def changes(before: Analysis, after: Analysis) -> list[MetricChange]:
    """The figures that both have and that people are shown, in their order."""
    old, new = before.kernel.figures, after.kernel.figures
    stalls = dict.fromkeys(key for side in (new, old) for key, _ in top_stalls(dict(side)))
    keys = in_order(stalls, old, new)
    return [MetricChange(key, old[key], new[key]) for key in keys if key in old and key in new]


# ----------------------------------------------------------------------------------------------------------------------
# For people
# ----------------------------------------------------------------------------------------------------------------------


def to_text(analyses: Sequence[Analysis], against: Sequence[Analysis] = ()) -> str:
    others = {id(here): there for here, there in pairs(analyses, against)} if against else {}
    return "\n\n".join("\n".join(_lines(analysis, others.get(id(analysis)))) for analysis in analyses)


def _lines(analysis: Analysis, against: Analysis | None) -> Iterator[str]:
    kernel, finding = analysis.kernel, analysis.bottleneck
    where = f" on {kernel.device}" if kernel.device else ""
    time = kernel.figures.get("duration_us")
    yield f"{ncu_reader.plain(kernel.name)}{where}" + (f", {time:.2f} µs" if time is not None else "")
    yield f"  bottleneck: {WORDS[finding.bottleneck]} ({sureness(finding.strength)}, {finding.strength:.2f})"
    yield f"    {'; '.join(finding.evidence)}"
    yield from _roofline_lines(analysis.roofline)
    if against is not None:
        yield f"  before: {WORDS[against.bottleneck.bottleneck]}"
        for change in changes(against, analysis):
            pct = "" if change.pct is None else f"  {change.pct:+.1f}%"
            sides = f"{show(change.key, change.before)} → {show(change.key, change.after)}"
            yield f"    {metrics.label(change.key)}: {sides}{pct}"
    else:
        figures = dict(kernel.figures)
        shown = [f"{metrics.label(key)} {show(key, figures[key])}" for key in _shown(figures) if key in figures]
        if shown:
            yield f"  {', '.join(shown)}"
        stalls = [f"{metrics.label(key)} {value:.1f}" for key, value in top_stalls(figures)]
        if stalls:
            yield f"  waiting, in cycles per issue: {', '.join(stalls)}"
    for number, one in enumerate(analysis.recommendations, 1):
        gain = "" if one.expected_gain_pct is None else f" (up to {one.expected_gain_pct:.0f}% of the time)"
        yield f"  {number}. {one.action}{gain}"
        yield f"     {one.reason}. {one.link}"


def sides_to_text(folder: Path, profiles: Sequence[Profile]) -> Iterator[str]:
    """Each case's head, beside its base where there is one, from the reports in `folder`."""
    for head in profiles:
        if head.side != "head" or head.report is None:
            continue
        base = next((one for one in profiles if one.key == head.key and one.side == "base" and one.report), None)
        before = analyze(folder / base.report) if base is not None and base.report else ()
        yield to_text(analyze(folder / head.report), before)


def sureness(strength: float) -> str:
    return "clear" if strength >= 0.8 else "likely" if strength >= 0.5 else "a guess"


def _roofline_lines(place: Roofline) -> Iterator[str]:
    if place.percent_of_roof is None or place.roof is None:
        return
    roof = {"dram": "DRAM bandwidth", "compute": "float32 arithmetic", "tensor": "tensor cores"}[place.roof]
    intensity = "" if place.arithmetic_intensity is None else f" at {place.arithmetic_intensity:.3g} FLOP per byte"
    yield f"  roofline: {place.percent_of_roof:.0f}% of the {roof} roof{intensity}"
