"""Why a case became slower or faster: the profiler's figures and the compiler's, base beside head.

The two or three figures that moved in the direction that explains the timing come first, in a sentence; the table has
them on top; the rest follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.bench.explain import metrics
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import Case, CaseKey, Profile, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Block, Bullets, Code, Column, Line, Mark, Paragraph, Section, Strong, Table
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.analyze import Analysis, MetricChange
from kernelgate.ci.explain.bottleneck import SURE, WORDS
from kernelgate.ci.explain.facts import limiter
from kernelgate.ci.explain.recommend import Recommendation
from kernelgate.ci.judge import cards, static
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.policy import Static
from kernelgate.ci.report.gpu import JudgedCase

MAX_REASONS = 3
MIN_STRENGTH = 0.1
"""Below it the profile names no bottleneck."""
MIN_CHANGE = 0.05
"""A figure that moved by less explains nothing."""

MATERIAL: Mapping[str, tuple[str, float]] = {
    "bank_conflicts": ("shared_wavefronts", 0.1),
    "local_instructions": ("instructions", 0.01),
}
"""Counts that matter only as a share of something: conflicts of wavefronts, spills of instructions."""

TELLING = (
    "local_instructions",
    "bank_conflicts",
    "occupancy_pct",
    "dram_bytes",
    "l2_hit_pct",
    "tensor_pct",
    "instructions",
    "issue_pct",
)
"""Figures that explain a time, causes before symptoms."""

RATES = ("tensor_pct", "issue_pct")
"""Shares of the time: the same work over a longer time has less of each, which explains nothing."""


@dataclass(frozen=True)
class Both:
    """One case's profiles; the base's is None where there is none."""

    key: CaseKey
    base: Analysis | None
    head: Analysis


def both_sides(record: RunRecord) -> tuple[Both, ...]:
    """Every case with a profile of its head, analysed from the record alone."""
    heads = [one for one in record.profile if one.side == "head"]
    bases = {one.key: one for one in record.profile if one.side == "base"}
    return tuple(
        Both(one.key, _analysis(bases[one.key], record) if one.key in bases else None, _analysis(one, record))
        for one in heads
    )


def _analysis(one: Profile, record: RunRecord) -> Analysis:
    device = record.environment.device
    figures = {key: float(value) for key, value in one.metrics.items() if isinstance(value, int | float)}
    capability = _capability(device.compute_capability)
    case = next((case for case in record.cases if case.key == one.key), Case(id=one.case))
    dtype = _tensor_dtype(str(case.axes.get("dtype", "")))
    work = case.work.flops if case.work else None
    kernel = ProfiledKernel(one.case, device.name, capability, device.sm_count, figures, (), dtype, work)
    return analyze.analyze_kernel(kernel)


def _tensor_dtype(dtype: str) -> str:
    """As hardware.py names what the tensor cores multiply; float16 where a case says nothing of the kind."""
    name = "fp8" if dtype.startswith("fp8") else dtype
    return name if name in ("bf16", "fp8", "int8") else "fp16"


def _capability(text: str | None) -> tuple[int, int] | None:
    major, _, minor = (text or "").partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


# ----------------------------------------------------------------------------------------------------------------------
# The sentence
# ----------------------------------------------------------------------------------------------------------------------


def why(record: RunRecord, cases: Sequence[JudgedCase], label: str = "") -> tuple[Line, ...]:
    """Why the worst case changed, and what to try; nothing where no case changed or none has both profiles.

    `label`: of the GPU, where several are reported; then case and GPU are named, and of several cards the case.
    """
    profiles = {one.key: one for one in both_sides(record) if one.base is not None}
    case = next((one for one in cases if one.status.is_news and one.case.key in profiles), None)
    if case is None:
        return ()
    slower = case.status.is_slower
    several = formatting.titles_of((one.card for one in record.cases), record.cards)
    where: Line = (" ", Code(label), ", ", case.name, ":") if label else (" ", case.name, ":") if several else ()
    found = profiles[case.case.key]
    reasons = explaining(found, slower)
    lines: list[Line] = []
    if reasons:
        moved = f" {'; '.join(_reason(change, found) for change in reasons)}."
        lines.append((Strong("Why:"), *where, moved))
    if slower and found.head.recommendations and found.head.bottleneck.strength >= SURE:
        lines.append(_try(found.head.recommendations[0], where))
    return tuple(lines)


def limits(record: RunRecord, label: str = "") -> tuple[Line, ...]:
    """What limits each profiled kernel, and what to try first: of a record that was made to be profiled."""
    where: Line = (Code(label), ": ") if label else ()
    found = both_sides(record)
    ids = formatting.ids((one.key for one in found), record.cards)
    return tuple((*where, *line) for one in found for line in _limits(one, ids[one.key]))


def _limits(one: Both, name: Code) -> Iterator[Line]:
    if one.head.bottleneck.strength < MIN_STRENGTH:
        yield (name, ": nothing in the profile stands out as what limits it.")
        return
    yield (name, f": {_verdicts(one)}.")
    if one.head.recommendations:
        yield _try(one.head.recommendations[0])


def _try(one: Recommendation, where: Line = ()) -> Line:
    return (Strong("Try:"), *where, f" {one.action}; see ", Code(one.link))


def explaining(found: Both, slower: bool) -> list[MetricChange]:
    """The figures that moved as the time did, the largest move first, at most three."""
    if found.base is None:
        return []
    before, after = found.base.kernel.figures, found.head.kernel.figures
    moves: list[tuple[float, MetricChange]] = []
    for rank, key in enumerate(TELLING):
        if key not in before or key not in after or not _material(key, before, after):
            continue
        old, new = before[key], after[key]
        better = _better(key)
        size = _log_ratio(old, new)
        if key in RATES:
            size += _log_ratio(before.get("duration_us", 0.0), after.get("duration_us", 0.0))
        if abs(size) < MIN_CHANGE or (size * better > 0) == slower:
            continue
        # A cause ranks above its symptoms of the same size; counts that start at zero move without bound.
        moves.append((min(abs(size), 2.0) * 0.9**rank, MetricChange(key, old, new)))
    moves.sort(key=lambda move: -move[0])
    reasons = [change for _, change in moves[:MAX_REASONS]]
    return reasons or _longest_wait(before, after, slower)


def _longest_wait(before: Mapping[str, float], after: Mapping[str, float], slower: bool) -> list[MetricChange]:
    """The stall that took the most cycles more (or less, where the kernel became faster)."""
    sign = 1 if slower else -1
    waits = [MetricChange(key, before[key], after[key]) for key in before if metrics.is_stall(key) and key in after]
    grown = [one for one in waits if sign * _log_ratio(one.before, one.after) >= MIN_CHANGE]
    return sorted(grown, key=lambda one: sign * (one.before - one.after))[:1]


def _better(key: str) -> int:
    return metrics.BY_KEY[key].better if key in metrics.BY_KEY else metrics.DERIVED.get(key, ("", "", -1))[2]


def _material(key: str, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    if key not in MATERIAL:
        return True
    whole, least = MATERIAL[key]
    return any(side.get(whole) and side[key] / side[whole] >= least for side in (before, after))


def _log_ratio(old: float, new: float) -> float:
    floor = max(old, new) * 1e-3
    return math.log(max(new, floor) / max(old, floor)) if floor > 0 else 0.0


def _reason(change: MetricChange, found: Both) -> str:
    text = f"{_short(change.key)} {analyze.show(change.key, change.before)} → {analyze.show(change.key, change.after)}"
    sides = (found.base.kernel, found.head.kernel) if found.base else ()
    if metrics.is_stall(change.key):
        return (
            f"warps wait longer: {_wait(change)}"
            if change.after > change.before
            else f"warps wait less: {_wait(change)}"
        )
    if change.key == "occupancy_pct":
        text += _because(sides)
    elif change.key == "local_instructions":
        text += _fewer_registers(sides)
    return text


def _wait(change: MetricChange) -> str:
    return f"{metrics.label(change.key)} {change.before:.2f} → {change.after:.2f} cycles per instruction"


def _fewer_registers(sides: Sequence[ProfiledKernel]) -> str:
    """Spills come of registers that were taken away, where they were."""
    counts = [side.figures.get("registers") for side in sides]
    if len(counts) == 2 and counts[0] is not None and counts[1] is not None and counts[1] < counts[0]:
        return f", because registers fell {counts[0]:.0f} → {counts[1]:.0f}"
    return ""


def _short(key: str) -> str:
    return {"occupancy_pct": "occupancy", "local_instructions": "spill instructions"}.get(key, metrics.label(key))


def _because(sides: Sequence[ProfiledKernel]) -> str:
    """What moved the occupancy: registers or shared memory, where that is what limits the side that has less."""
    if not sides:
        return ""
    tighter = min(sides, key=lambda kernel: kernel.figures.get("occupancy_pct", 0.0))
    limits = limiter(tighter) or ""
    for key, limit, name in (
        ("registers", "registers", "registers"),
        ("shared_bytes", "shared memory", "shared memory"),
    ):
        old, new = (side.figures.get(key) for side in sides)
        if limit in limits and old is not None and new is not None and old != new:
            verb = "rose" if new > old else "fell"
            return f", because {name} {verb} {analyze.show(key, old)} → {analyze.show(key, new)}"
    return ""


# ----------------------------------------------------------------------------------------------------------------------
# The tables
# ----------------------------------------------------------------------------------------------------------------------


def section(record: RunRecord, cases: Sequence[JudgedCase]) -> Section | None:
    """The profiler's figures: metric, base, head, change; what explains the timing on top."""
    found = both_sides(record)
    if not found:
        return None
    alone = all(one.base is None for one in found)
    names = formatting.names(record.cases, record.cards)
    ids = formatting.ids((one.key for one in found), record.cards)
    statuses = {one.case.key: one.status for one in cases}
    blocks: list[Block] = []
    for one in found:
        name = names.get(one.key, ids[one.key])
        known = one.head.bottleneck.strength >= MIN_STRENGTH
        blocks.append(Paragraph((name, f": {_verdicts(one)}.")) if known else Paragraph((name,)))
        texts = _texts([each for each in record.profile if each.key == one.key])
        rows = (*_rows(one, statuses.get(one.key)), *texts)
        # The base's column and the change are empty where there is no base.
        blocks.append(Table(_columns()[::2], tuple(row[::2] for row in rows)) if alone else Table(_columns(), rows))
        if known:
            blocks.append(Bullets(tuple(_recommendation(each) for each in one.head.recommendations)))
    return Section("Profiler: head alone" if alone else "Profiler: base and head", tuple(blocks), worth=70)


def _columns() -> tuple[Column, ...]:
    return Column("metric"), Column("base", numeric=True), Column("head", numeric=True), Column("change", numeric=True)


def _verdicts(one: Both) -> str:
    after = one.head.bottleneck
    sure = analyze.sureness(after.strength)
    now = f"{WORDS[after.bottleneck]} ({sure}: {'; '.join(after.evidence)})"
    if one.base is None or one.base.bottleneck.bottleneck is after.bottleneck:
        return now
    return f"was {WORDS[one.base.bottleneck.bottleneck]}, is {now}"


def _recommendation(one: Recommendation) -> Line:
    gain = "" if one.expected_gain_pct is None else f", up to {one.expected_gain_pct:.0f}% of the time"
    return (f"{one.action}{gain}; see ", Code(one.link))


def _rows(one: Both, status: Status | None) -> Iterator[tuple[Line, ...]]:
    first = [change.key for change in explaining(one, status.is_slower)] if status and status.is_news else []
    after = dict(one.head.kernel.figures)
    before = dict(one.base.kernel.figures) if one.base else {}
    stalls = [key for key, _ in analyze.top_stalls(after)]
    known = [key for key in analyze.in_order(stalls) if key in after or key in before]
    others = [key for key in (*after, *before) if not _is_known(key)]
    for key in dict.fromkeys((*first, *known, *others)):
        old, new = before.get(key), after.get(key)
        label: Line = (metrics.label(key),) if _is_known(key) else (Code(key),)
        strong: Line = (Strong(metrics.label(key)),) if key in first else label
        yield (strong, (_shown(key, old),), (_shown(key, new),), (_moved(old, new),))


def _texts(profiles: Sequence[Profile]) -> Iterator[tuple[Line, ...]]:
    """What a producer said in words rather than numbers."""
    sides = {one.side: {key: value for key, value in one.metrics.items() if isinstance(value, str)} for one in profiles}
    before, after = sides.get("base", {}), sides.get("head", {})
    for key in dict.fromkeys((*after, *before)):
        old, new = (((Code(side[key]),) if key in side else (formatting.MISSING,)) for side in (before, after))
        yield ((Code(key),), old, new, (formatting.MISSING,))


def _is_known(key: str) -> bool:
    return key in metrics.BY_KEY or key in metrics.DERIVED or metrics.is_stall(key)


def _shown(key: str, value: float | None) -> str:
    return formatting.MISSING if value is None else analyze.show(key, value)


def _moved(old: float | None, new: float | None) -> str:
    if old is None or new is None or not old:
        return formatting.MISSING if old != new else "0%"
    return formatting.percent(100 * (new / old - 1), 1, sign=True)


def blocking(record: RunRecord, policy: Static) -> tuple[Line, ...]:
    """A remark for each thing that the compiler alone shows and the policy blocks; none on the head's own cards."""
    titles, own = _titles(record), cards.of_head(record)
    return tuple(
        (Mark.SLOWER, " Blocks: ", *_static_line(one, titles))
        for one in static.judge(record.builds, policy)
        if one.severity == "fail" and one.card not in own
    )


def _titles(record: RunRecord) -> dict[str, str]:
    """What to call the cards, where kernels of several were compiled."""
    return formatting.titles_of((build.card for build in record.builds if build.kernels), record.cards)


def _static_line(one: static.StaticFinding, titles: Mapping[str, str]) -> Line:
    return *_card(titles, one.card), Code(one.kernel), " for ", Code(one.target), f": {one.message}."


def _card(titles: Mapping[str, str], card: str) -> Line:
    return (f"{titles[card]}, ",) if titles.get(card) else ()


def static_section(record: RunRecord, policy: Static) -> Section | None:
    """What the compiler gave each kernel, base → head; what the policy minds first."""
    pairs = static.pairs(record.builds)
    if not pairs:
        return None
    columns = (
        Column("kernel"),
        Column("target"),
        Column("registers", numeric=True),
        Column("spilled", numeric=True),
        Column("shared memory", numeric=True),
        Column("occupancy", numeric=True),
        Column("instructions"),
    )
    marks = {"fail": Mark.SLOWER, "warn": Mark.SLIGHT}
    titles = _titles(record)
    found = static.judge(record.builds, policy)
    lines = tuple((marks[one.severity], " ", *_static_line(one, titles)) for one in found)
    blocks: list[Block] = [Bullets(lines)] if lines else []
    table = Table(columns, tuple(_static_row(pair, titles) for pair in pairs))
    return Section("Registers, shared memory, instructions", (*blocks, table), worth=70)


def _static_row(pair: static.Pair, titles: Mapping[str, str]) -> tuple[Line, ...]:
    base, head = pair.base, pair.head
    occupancy = ", ".join(
        f"{_sides((base.occupancy_pct.get(gpu) if base else None), value, '%')} on the {gpu}"
        for gpu, value in head.occupancy_pct.items()
    )
    kinds = [
        kind for kind in head.instructions if base is None or base.instructions.get(kind) != head.instructions[kind]
    ]
    shown = kinds if base is not None else list(head.instructions)
    mix = ", ".join(f"{k} {_sides(base.instructions.get(k, 0) if base else None, head.instructions[k])}" for k in shown)
    return (
        (*_card(titles, pair.card), Code(head.name)),
        (Code(head.target),),
        (_sides(base.registers if base else None, head.registers),),
        (_sides(base.spill_bytes if base else None, head.spill_bytes, " B"),),
        (_sides(static.shared_before(pair), head.shared_bytes, " B"),),
        (occupancy or formatting.MISSING,),
        (mix or ("unchanged" if base is not None else formatting.MISSING),),
    )


def _sides(before: float | None, after: float | None, unit: str = "") -> str:
    if after is None:
        return formatting.MISSING
    return f"{after:,g}{unit}" if before is None or before == after else f"{before:,g} → {after:,g}{unit}"
