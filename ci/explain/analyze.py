"""`kernelgate analyze`: what a profile says, for people and for machines. Any Nsight Compute report, no GPU needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kernelgate.bench.core import hardware
from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import Profile
from kernelgate.ci.explain import bottleneck, budget, recommend
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.explain.diagnosis import TENSOR_UNUSED_PCT, WORDS, Bottleneck, Diagnosis
from kernelgate.ci.explain.figures import show
from kernelgate.ci.explain.recommend import Recommendation


@dataclass(frozen=True)
class Roofline:
    """Rates in FLOP/s and bytes/s, intensity in FLOP for each byte of DRAM traffic; None is what cannot be known."""

    arithmetic_intensity: float | None
    achieved_flops: float | None
    peak_flops: float | None
    peak_bytes_per_second: float | None
    ridge: float | None
    """The intensity from which on arithmetic, not DRAM, is the roof."""
    roof: Literal["dram", "compute", "tensor"] | None
    percent_of_roof: float | None


def roofline_of(kernel: ProfiledKernel) -> Roofline:
    """The kernel on the roofline of the units that it uses: tensor cores, or float32 pipes, and DRAM."""
    figures = kernel.figures
    clock = figures.get("sm_mhz", 0.0) * 1e6 or None
    seconds = figures.get("duration_us", 0.0) / 1e6 or None
    tensor = _tensor_flops(kernel, clock, seconds)
    scalar = _scalar_flops(figures, clock)
    on_tensor = (tensor or 0.0) > (scalar or 0.0)
    flops = None if tensor is None and scalar is None else (tensor or 0.0) + (scalar or 0.0)
    peak = tensor_peak(kernel, clock) if on_tensor else _float_peak(kernel, clock)
    moved = figures.get("dram_bytes_per_s")
    if moved is None and seconds and "dram_bytes" in figures:
        moved = figures["dram_bytes"] / seconds
    bandwidth = _bandwidth(figures, moved)
    if moved is None and bandwidth and "dram_pct" in figures:
        moved = bandwidth * figures["dram_pct"] / 100
    intensity = flops / moved if flops is not None and moved else None
    ridge = peak / bandwidth if peak and bandwidth else None
    roof, percent = _roof(flops, peak, moved, bandwidth, on_tensor)
    return Roofline(intensity, flops, peak, bandwidth, ridge, roof, percent)


def tensor_peak(kernel: ProfiledKernel, clock: float | None) -> float | None:
    rate = hardware.tensor_rate(kernel.compute_capability, kernel.dtype)
    if rate is None or not kernel.sm_count or not clock:
        return None
    return rate * kernel.sm_count * clock


def _tensor_flops(kernel: ProfiledKernel, clock: float | None, seconds: float | None) -> float | None:
    """From the counted operations; else from the case's own; else from how busy the tensor cores were."""
    figures = kernel.figures
    counted = [figures[key] for key in ("tensor_fp16_ops", "tensor_bf16_ops") if key in figures]
    peak, busy = tensor_peak(kernel, clock), figures.get("tensor_pct")
    if counted and seconds and (sum(counted) or kernel.dtype in ("fp16", "bf16")):
        return sum(counted) / seconds
    used = busy is not None and busy >= TENSOR_UNUSED_PCT
    if kernel.work_flops and seconds and used:
        return kernel.work_flops / seconds
    if peak is None or busy is None:
        return None
    return peak * busy / 100 if used else 0.0


def _scalar_flops(figures: Mapping[str, float], clock: float | None) -> float | None:
    """A multiply-add counts as two, and float16 ones come in pairs."""
    weights = {"ffma": 2, "fadd": 1, "fmul": 1, "dfma": 2, "hfma": 4}
    known = {op: figures[f"{op}_per_cycle"] for op in weights if f"{op}_per_cycle" in figures}
    if clock is None or not known:
        return None
    return clock * sum(weights[op] * rate for op, rate in known.items())


def _float_peak(kernel: ProfiledKernel, clock: float | None) -> float | None:
    if clock is None:
        return None
    if "ffma_peak" in kernel.figures:
        return 2 * kernel.figures["ffma_peak"] * clock
    rate = hardware.fp32_rate(kernel.compute_capability)
    return None if rate is None or not kernel.sm_count else rate * kernel.sm_count * clock


def _bandwidth(figures: Mapping[str, float], moved: float | None) -> float | None:
    per_cycle, clock = figures.get("dram_bytes_per_cycle"), figures.get("memory_mhz")
    if per_cycle and clock:
        return per_cycle * clock * 1e6
    busy = figures.get("dram_pct", 0.0)
    return moved / (busy / 100) if moved and busy >= 1 else None


def _roof(
    flops: float | None, peak: float | None, moved: float | None, bandwidth: float | None, on_tensor: bool
) -> tuple[Literal["dram", "compute", "tensor"] | None, float | None]:
    compute: Literal["compute", "tensor"] = "tensor" if on_tensor else "compute"
    of_compute = 100 * flops / peak if flops and peak else None
    of_dram = 100 * moved / bandwidth if moved is not None and bandwidth else None
    if of_compute is not None and (of_dram is None or of_compute >= of_dram):
        return compute, min(100.0, of_compute)
    return ("dram", min(100.0, of_dram)) if of_dram is not None else (None, None)


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
    return Analysis(kernel, findings, roofline_of(kernel), recommend.recommend(kernel, findings))


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


@dataclass(frozen=True)
class AnalysedKernel:
    """A launch as `kernelgate analyze --json` prints it."""

    kernel: str
    duration_us: float | None
    bottleneck: Bottleneck
    confidence: float
    metrics: Mapping[str, float]
    roofline: Roofline
    recommendations: tuple[Recommendation, ...]


@dataclass(frozen=True)
class AnalysesAnswer:
    """What `kernelgate analyze --json` prints; the last three with another report alone."""

    kernels: tuple[AnalysedKernel, ...]
    against: tuple[AnalysedKernel, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    """Of each kernel that both reports have: every figure before and after."""
    budgets: tuple[dict[str, Any], ...] = ()
    """What the change of its duration is made of; None where a side has no duration."""


def to_answer(analyses: Sequence[Analysis], against: Sequence[Analysis] = ()) -> AnalysesAnswer:
    together = list(pairs(analyses, against))
    return AnalysesAnswer(
        tuple(map(_analysed, analyses)),
        tuple(map(_analysed, against)),
        tuple({"kernel": here.kernel.name, **_figures(there, here)} for here, there in together),
        tuple(_budget_as_dict(here, there) for here, there in together),
    )


def _analysed(analysis: Analysis) -> AnalysedKernel:
    kernel, found = analysis.kernel, analysis.bottleneck
    time, sure = kernel.figures.get("duration_us"), round(found.strength, 2)
    return AnalysedKernel(
        kernel.name, time, found.bottleneck, sure, kernel.figures, analysis.roofline, analysis.recommendations
    )


def _figures(before: Analysis, after: Analysis) -> dict[str, Any]:
    return {
        change.key: {"before": change.before, "after": change.after, "change_pct": change.pct}
        for change in changes(before, after)
    }


def _budget_as_dict(here: Analysis, there: Analysis) -> dict[str, Any]:
    split = budget_of(there, here)
    content = None if split is None else {**asdict(split), "words": budget.sentences(split)}
    return {"kernel": here.kernel.name, "against": there.kernel.name, "budget": content}


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


def pairs(analyses: Sequence[Analysis], against: Sequence[Analysis]) -> Iterator[tuple[Analysis, Analysis]]:
    """Launches that belong together: the n-th of a name with the n-th of that name, with its template arguments or
    without; of the rest, which one side calls otherwise, the longest with the longest."""
    waiting, found = list(against), dict[int, Analysis]()
    for whole in (True, False):

        def name(one: Analysis, whole: bool = whole) -> str:
            return one.kernel.name if whole else one.kernel.name.partition("<")[0]

        for here in analyses:
            there = next((one for one in waiting if name(one) == name(here)), None)
            if there is not None and id(here) not in found:
                waiting.remove(there)
                found[id(here)] = there
    rest = [here for here in analyses if id(here) not in found]
    if rest and waiting:
        found[id(max(rest, key=_duration))] = max(waiting, key=_duration)
    yield from ((here, found[id(here)]) for here in analyses if id(here) in found)


def _duration(one: Analysis) -> float:
    return one.kernel.figures.get("duration_us", 0.0)


def budget_of(before: Analysis, after: Analysis) -> Budget | None:
    """What the change from one launch to the other is made of; None where a side has no duration."""
    old, new = _duration(before), _duration(after)
    if not old or not new:
        return None
    clocks = [side.kernel.figures.get("sm_mhz", 0.0) for side in (before, after)]
    known = (clocks[0], clocks[1]) if all(clocks) else None
    return budget.budget(before.kernel.figures, after.kernel.figures, 100 * (new / old - 1), known)


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
    parts = ["\n".join(_lines(analysis, others.get(id(analysis)))) for analysis in analyses]
    several = max(len(analyses), len(against)) > 1 and bool(against)
    return "\n\n".join([*([_launches(analyses, against)] if several else ()), *parts])


def _launches(analyses: Sequence[Analysis], against: Sequence[Analysis]) -> str:
    """How many there are, how long all of them take, and which of them takes most."""
    old, new = (sum(map(_duration, side)) for side in (against, analyses))
    longest = max(analyses, key=_duration)
    share = f", {_duration(longest) / new:.0%} of it {ncu_reader.plain(longest.kernel.name)}" if new else ""
    return f"{len(against)} → {len(analyses)} launches, {old:.2f} → {new:.2f} µs in all{share}"


def _lines(analysis: Analysis, against: Analysis | None) -> Iterator[str]:
    kernel, finding = analysis.kernel, analysis.bottleneck
    where = f" on {kernel.device}" if kernel.device else ""
    time = kernel.figures.get("duration_us")
    yield f"{ncu_reader.plain(kernel.name)}{where}" + (f", {time:.2f} µs" if time is not None else "")
    yield f"  bottleneck: {WORDS[finding.bottleneck]} ({sureness(finding.strength)}, {finding.strength:.2f})"
    yield f"    {'; '.join(finding.evidence)}"
    place = analysis.roofline
    if place.percent_of_roof is not None and place.roof is not None:
        roof = {"dram": "DRAM bandwidth", "compute": "float32 arithmetic", "tensor": "tensor cores"}[place.roof]
        intensity = "" if place.arithmetic_intensity is None else f" at {place.arithmetic_intensity:.3g} FLOP per byte"
        yield f"  roofline: {place.percent_of_roof:.0f}% of the {roof} roof{intensity}"
    if against is not None:
        renamed = f", as {ncu_reader.plain(against.kernel.name)}" if against.kernel.name != kernel.name else ""
        yield f"  before{renamed}: {WORDS[against.bottleneck.bottleneck]}"
        if (split := budget_of(against, analysis)) is not None:
            yield f"  {split.change_pct:+.1f}%: {' '.join(budget.sentences(split))}"
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
