"""`kernelgate analyze`: what a profile says, for people and for machines. Any Nsight Compute report, no GPU needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from kernelgate.bench.core import hardware
from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import CaseKey, Profile
from kernelgate.ci.explain import bottleneck, budget, recommend
from kernelgate.ci.explain.bottleneck import TENSOR_UNUSED_PCT, Bottleneck, Diagnosis
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.explain.recommend import Recommendation

Roof = Literal["dram", "compute", "tensor"]
ROOFS: Mapping[Roof, str] = {"dram": "DRAM bandwidth", "compute": "float32 arithmetic", "tensor": "tensor cores"}


@dataclass(frozen=True)
class Roofline:
    """Rates in FLOP/s and bytes/s, intensity in FLOP for each byte of DRAM traffic; None is what cannot be known."""

    arithmetic_intensity: float | None
    achieved_flops: float | None
    peak_flops: float | None
    peak_bytes_per_second: float | None
    ridge: float | None
    """The intensity from which on arithmetic, not DRAM, is the roof."""
    roof: Roof | None
    percent_of_roof: float | None


def roofline_of(kernel: ProfiledKernel) -> Roofline:
    """The kernel on the roofline of the units that it uses: tensor cores, or float32 pipes, and DRAM."""
    figures = kernel.figures
    clock = figures.get("sm_mhz", 0.0) * 1e6 or None
    seconds = figures.get("duration_us", 0.0) / 1e6 or None
    per_sm = hardware.tensor_rate(kernel.compute_capability, kernel.dtype)
    rate = (kernel.sm_count or 0) * (clock or 0.0)
    peak = tensor_peak = per_sm * rate if per_sm and rate else None
    # A multiply-add counts as two, and float16 ones come in pairs.
    weights = {"ffma": 2, "fadd": 1, "fmul": 1, "dfma": 2, "hfma": 4}
    rates = [weight * figures[f"{op}_per_cycle"] for op, weight in weights.items() if f"{op}_per_cycle" in figures]
    scalar = clock * sum(rates) if clock and rates else None
    tensor = _tensor_flops(kernel, tensor_peak, seconds)
    on_tensor = (tensor or 0.0) > (scalar or 0.0)
    flops = None if tensor is None and scalar is None else (tensor or 0.0) + (scalar or 0.0)
    if not on_tensor:
        peak = 2 * figures["ffma_peak"] * clock if clock and "ffma_peak" in figures else None
    moved = figures.get("dram_bytes_per_s")
    bandwidth = figures.get("dram_bytes_per_cycle", 0.0) * figures.get("memory_mhz", 0.0) * 1e6 or None
    shares: dict[Roof, float] = {}
    if flops and peak:
        shares["tensor" if on_tensor else "compute"] = 100 * flops / peak
    if moved is not None and bandwidth:
        shares["dram"] = 100 * moved / bandwidth
    roof = max(shares, key=lambda one: shares[one], default=None)
    return Roofline(
        arithmetic_intensity=flops / moved if flops is not None and moved else None,
        achieved_flops=flops,
        peak_flops=peak,
        peak_bytes_per_second=bandwidth,
        ridge=peak / bandwidth if peak and bandwidth else None,
        roof=roof,
        percent_of_roof=None if roof is None else min(100.0, shares[roof]),
    )


def _tensor_flops(kernel: ProfiledKernel, peak: float | None, seconds: float | None) -> float | None:
    """From the counted operations; else from the case's own; else from how busy the tensor cores were."""
    figures = kernel.figures
    counted = [figures[key] for key in ("tensor_fp16_ops", "tensor_bf16_ops") if key in figures]
    if counted and seconds and (sum(counted) or kernel.dtype in ("fp16", "bf16")):
        return sum(counted) / seconds
    busy = figures.get("tensor_pct")
    used = busy is not None and busy >= TENSOR_UNUSED_PCT
    if kernel.work_flops and seconds and used:
        return kernel.work_flops / seconds
    if peak is None or busy is None:
        return None
    return peak * busy / 100 if used else 0.0


BEFORE_STALLS = ("dram_pct", "l2_hit_pct", "bank_conflicts", "occupancy_pct")
AFTER_STALLS = ("registers", "local_instructions", "shared_bytes", "grid", "waves", "sm_mhz", "memory_mhz")
"""Beside the duration, tensor cores and the stalls: what a person is shown, in this order."""
TOP_STALLS = 3


def in_order(stalls: Iterable[str], *sides: Mapping[str, float]) -> tuple[str, ...]:
    """Every figure that is set side by side: the time, the six with these stalls among them, the rest. Tensor cores
    that nobody uses come last."""
    used = any(side.get("tensor_pct", 0.0) >= TENSOR_UNUSED_PCT for side in sides)
    first, last = (("tensor_pct",), ()) if used else ((), ("tensor_pct",))
    return ("duration_us", *first, *BEFORE_STALLS, *stalls, *AFTER_STALLS, *last)


@dataclass(frozen=True)
class Analysis:
    kernel: ProfiledKernel
    findings: tuple[Diagnosis, ...]
    roofline: Roofline
    recommendations: tuple[Recommendation, ...]

    @property
    def bottleneck(self) -> Diagnosis:
        return self.findings[0]

    @property
    def duration_us(self) -> float:
        """0 where the report does not say."""
        return self.kernel.figures.get("duration_us", 0.0)

    @property
    def answer(self) -> AnalysedKernel:
        name, figures, found = self.kernel.name, self.kernel.figures, self.bottleneck
        what = found.bottleneck, round(found.strength, 2)
        return AnalysedKernel(name, figures.get("duration_us"), *what, figures, self.roofline, self.recommendations)


def analyze(path: Path) -> tuple[Analysis, ...]:
    """Every launch of the report, in its order. Raises KernelgateError where there is nothing to read."""
    return tuple(analyze_kernel(kernel) for kernel in ncu_reader.read(path))


def analyze_kernel(kernel: ProfiledKernel) -> Analysis:
    findings = bottleneck.classify(kernel)
    return Analysis(kernel, findings, roofline_of(kernel), recommend.recommend(kernel, findings))


def top_stalls(figures: Mapping[str, float]) -> list[tuple[str, float]]:
    """In cycles per issued instruction."""
    idle = ("stall_selected", "stall_not_selected")
    waits = [(key, value) for key, value in figures.items() if metrics.is_stall(key) and key not in idle]
    return sorted(waits, key=lambda item: -item[1])[:TOP_STALLS]


# ---- Against another report ------------------------------------------------------------------------------------------


def pairs(analyses: Sequence[Analysis], against: Sequence[Analysis]) -> list[tuple[Analysis, Analysis]]:
    """Launches that belong together, this report's first: the n-th of a name with the n-th of that name, with its
    template arguments or without; of the rest the longest with the longest."""
    waiting, found = list(against), dict[int, Analysis]()
    for end in ("\0", "<"):  # no name has the first, and template arguments begin with the second
        for here in (one for one in analyses if id(one) not in found):
            name = here.kernel.name.partition(end)[0]
            same = (there for there in waiting if there.kernel.name.partition(end)[0] == name)
            if (there := next(same, None)) is not None:
                waiting.remove(there)
                found[id(here)] = there
    rest = [here for here in analyses if id(here) not in found]
    if rest and waiting:
        found[id(max(rest, key=attrgetter("duration_us")))] = max(waiting, key=attrgetter("duration_us"))
    return [(here, found[id(here)]) for here in analyses if id(here) in found]


def budget_of(before: Analysis, after: Analysis) -> Budget | None:
    if not before.duration_us or not after.duration_us:
        return None
    old, new = before.kernel.figures, after.kernel.figures
    clocks = old.get("sm_mhz", 0.0), new.get("sm_mhz", 0.0)
    change_pct = 100 * (after.duration_us / before.duration_us - 1)
    return budget.budget(old, new, change_pct, clocks if all(clocks) else None)


def changes(before: Analysis, after: Analysis) -> dict[str, dict[str, float | None]]:
    """Before and after, of the figures that both have and that people are shown, in their order."""
    old, new = before.kernel.figures, after.kernel.figures
    stalls = dict.fromkeys(key for side in (new, old) for key, _ in top_stalls(side))
    sides = {key: (old[key], new[key]) for key in in_order(stalls, old, new) if key in old and key in new}
    return {
        key: {"before": one, "after": other, "change_pct": 100 * (other / one - 1) if one else None}
        for key, (one, other) in sides.items()
    }


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


def to_answer(analyses: Sequence[Analysis], against: Sequence[Analysis] = ()) -> AnalysesAnswer:
    moved, budgets = [], []
    for here, there in pairs(analyses, against):
        split = budget_of(there, here)
        content = None if split is None else {**asdict(split), "words": budget.sentences(split)}
        moved.append({"kernel": here.kernel.name, **changes(there, here)})
        budgets.append({"kernel": here.kernel.name, "against": there.kernel.name, "budget": content})
    kernels, others = (tuple(one.answer for one in side) for side in (analyses, against))
    return AnalysesAnswer(kernels, others, tuple(moved), tuple(budgets))


# ---- For people ------------------------------------------------------------------------------------------------------


def to_text(analyses: Sequence[Analysis], against: Sequence[Analysis] = ()) -> str:
    others = {id(here): there for here, there in pairs(analyses, against)}
    parts = ["\n".join(_lines(analysis, others.get(id(analysis)))) for analysis in analyses]
    if against and max(len(analyses), len(against)) > 1:
        # How many there are, how long all of them take, and which of them takes most.
        old, new = (sum(one.duration_us for one in side) for side in (against, analyses))
        longest = max(analyses, key=attrgetter("duration_us"))
        share = f", {longest.duration_us / new:.0%} of it {ncu_reader.plain(longest.kernel.name)}" if new else ""
        parts.insert(0, f"{len(against)} → {len(analyses)} launches, {old:.2f} → {new:.2f} µs in all{share}")
    return "\n\n".join(parts)


def _lines(analysis: Analysis, against: Analysis | None) -> Iterator[str]:
    kernel, finding, place, figures = analysis.kernel, analysis.bottleneck, analysis.roofline, analysis.kernel.figures
    where = f" on {kernel.device}" if kernel.device else ""
    time = f", {figures['duration_us']:.2f} µs" if "duration_us" in figures else ""
    yield f"{ncu_reader.plain(kernel.name)}{where}{time}"
    yield f"  bottleneck: {finding.bottleneck.words} ({finding.sureness}, {finding.strength:.2f})"
    yield f"    {'; '.join(finding.evidence)}"
    if place.percent_of_roof is not None and place.roof is not None:
        intensity = "" if place.arithmetic_intensity is None else f" at {place.arithmetic_intensity:.3g} FLOP per byte"
        yield f"  roofline: {place.percent_of_roof:.0f}% of the {ROOFS[place.roof]} roof{intensity}"
    if against is not None:
        alike = against.kernel.name == kernel.name
        other = "before" if alike else f"against {ncu_reader.plain(against.kernel.name)}"
        yield f"  {other}: {against.bottleneck.bottleneck.words}"
        if (split := budget_of(against, analysis)) is not None:
            yield f"  {split.change_pct:+.1f}%: {' '.join(budget.sentences(split))}"
        old = against.kernel.figures
        for key, change in changes(against, analysis).items():
            pct = "" if change["change_pct"] is None else f"  {change['change_pct']:+.1f}%"
            yield f"    {metrics.label(key)}: {metrics.show(key, old[key])} → {metrics.show(key, figures[key])}{pct}"
    else:
        known = [key for key in in_order((), figures)[1:] if key in figures]
        if shown := [f"{metrics.label(key)} {metrics.show(key, figures[key])}" for key in known]:
            yield f"  {', '.join(shown)}"
        if stalls := [f"{metrics.label(key)} {value:.1f}" for key, value in top_stalls(figures)]:
            yield f"  waiting, in cycles per issue: {', '.join(stalls)}"
    for number, one in enumerate(analysis.recommendations, 1):
        gain = "" if one.expected_gain_pct is None else f" (up to {one.expected_gain_pct:.0f}% of the time)"
        yield f"  {number}. {one.action}{gain}"
        yield f"     {one.reason}. {one.link}"


def of_sides(
    folder: Path, profiles: Sequence[Profile]
) -> Iterator[tuple[CaseKey, tuple[Analysis, ...], tuple[Analysis, ...]]]:
    """Of each case the head, and its base, else its reference, where there is one, from the reports in `folder`."""
    reports = {(one.key, one.side): folder / one.report for one in profiles if one.report is not None}
    for (key, side), report in reports.items():
        if side == "head":
            base = reports.get((key, "base")) or reports.get((key, "reference"))
            yield key, analyze(report), analyze(base) if base else ()
