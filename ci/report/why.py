"""Why a case became slower or faster: the profiler's figures and the compiler's, base beside head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import median

from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import Case, CaseKey, Profile, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Mark, Paragraph, Piece, Section, Strong, table
from kernelgate.ci.explain import analyze, budget
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.explain.bottleneck import SURE
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.explain.recommend import Recommendation, against_change
from kernelgate.ci.judge import cards, static
from kernelgate.ci.judge.case import RecordVerdict, Status
from kernelgate.ci.policy.policy import Static
from kernelgate.ci.report.correctness import titles
from kernelgate.ci.report.gpu import JudgedCase
from kernelgate.ci.report.links import MAX_COMMAND, base_option, docs, on_cases

MAX_NAME = 60
MIN_STRENGTH = 0.1
"""Below it the profile names no bottleneck."""


@dataclass(frozen=True)
class Both:
    key: CaseKey
    base: ProfiledKernel | None
    head: ProfiledKernel

    @cached_property
    def analysed(self) -> tuple[Analysis | None, Analysis]:
        """What holds base and head back."""
        return analyze.analyze_kernel(self.base) if self.base else None, analyze.analyze_kernel(self.head)


def both_sides(record: RunRecord) -> tuple[Both, ...]:
    """Every case with a profile of its head, from the record alone."""
    heads = [one for one in record.profile if one.side == "head"]
    bases = {one.key: one for one in record.profile if one.side == "base"}
    return tuple(
        Both(one.key, _kernel(bases[one.key], record) if one.key in bases else None, _kernel(one, record))
        for one in heads
    )


def _kernel(one: Profile, record: RunRecord) -> ProfiledKernel:
    device = record.environment.device
    figures = {key: float(value) for key, value in one.metrics.items() if isinstance(value, int | float)}
    major, _, minor = (device.compute_capability or "").partition(".")
    capability = (int(major), int(minor)) if major else None
    case = next((case for case in record.cases if case.key == one.key), Case(id=one.case))
    # As hardware.py names what the tensor cores multiply; float16 where a case says nothing of the kind.
    dtype = str(case.axes.get("dtype", ""))
    dtype = "fp8" if dtype.startswith("fp8") else dtype if dtype in ("bf16", "int8") else "fp16"
    work = case.work.flops if case.work else None
    return ProfiledKernel(one.case, device.name, capability, device.sm_count, figures, (), dtype, work)


def why(record: RunRecord, verdict: RecordVerdict, cases: Sequence[JudgedCase], label: str = "") -> tuple[Line, ...]:
    """Why the first case that was profiled changed, and what to try. Where none was and a gate is passed, why not.
    `label`: of the GPU, of several."""
    profiles = {one.key: one for one in both_sides(record)}
    news = sorted((one for one in cases if one.status.is_news), key=lambda one: not one.status.is_slower)
    statuses = (*(one.status for one in news), *(mean.status for mean in verdict.means))
    past = any(status in PAST for status in statuses)
    alike = [one for one in cases if past and news and _moved_alike(one, news[0])]
    profiled = [one for one in (*news, *alike) if one.case.key in profiles]
    case = next((one for one in profiled if profiles[one.case.key].base is not None), None)
    if case is None:
        return ((Strong("Why"), *_on(label), *_not_profiled(record, news, bool(profiled))),) if past else ()
    found = profiles[case.case.key]
    split = budget_of(record, found, case)
    change = case.case.change_pct or 0.0
    likely = "" if case.status.is_news else f", likely {formatting.moved(change)}"
    # Whose profile it is, always by name: a headline may be of another case.
    where: Line = (", by the profile of ", case.name, *_on(label), f"{likely}: ")
    # Whether another kernel does the work: its figures are set beside those of the one before.
    kernels = {
        one.side: plain_name(str(one.metrics.get("kernel") or "")) for one in record.profile if one.key == found.key
    }
    kernel: Line = ()
    if (before := kernels.get("base")) and (after := kernels.get("head")) and before != after:
        kernel = ("another kernel takes most of the time, ", Code(before), " → ", Code(after), "; ")
    lines: list[Line] = [(Strong("Why"), *where, *kernel, " ".join(budget.sentences(split)))]
    if change > 0 and (action := _action(split, found, label)) is not None:
        lines.append(action)
    return tuple(lines)


PAST = (Status.REGRESSED, Status.LIKELY_SLOWER, Status.LIKELY_FASTER, Status.IMPROVED)


def _moved_alike(one: JudgedCase, worst: JudgedCase) -> bool:
    """Whether this case of the same kernel, undecided itself, went the way that the worst went."""
    case, interval = one.case, one.case.interval_pct
    if one.status is not Status.UNDECIDED or case.card != worst.case.card or not case.believed or interval is None:
        return False
    return min(interval) > 0 if (worst.case.change_pct or 0.0) > 0 else max(interval) < 0


def _not_profiled(record: RunRecord, news: Sequence[JudgedCase], of_head: bool) -> Line:
    """What is missing, and on a GPU how to see why."""
    if formatting.on_cpu(record.environment.device):
        return (": not profiled, because Nsight Compute sees no CPU kernel.",)
    lacks = "only the head was profiled" if of_head else "the run profiled other cases"
    if noted := cards.notes(record, "no_profile"):
        # Such as "no profile of head at s512: ncu cannot be started".
        lacks = formatting.sentence(noted[0].text.partition(": ")[2] or noted[0].text)
    elif not record.profile:
        lacks = "the run made no profile"
    first = (cards.called(record, one.case.key) for one in news[:1])
    command = on_cases("profile", record.run, first, base=base_option(record.run, 7))
    return (f": not profiled, because {lacks}; ", Code(command, most=MAX_COMMAND), " shows it.")


def _on(label: str) -> Line:
    return (" on ", Code(label)) if label else ()


def budget_of(record: RunRecord, found: Both, case: JudgedCase) -> Budget:
    """What the measured change of a case is made of, by its two profiles."""
    before = found.base.figures if found.base else {}
    timings = [one for process in record.processes if process.role == "paired" for one in process.timings]
    clocks = [
        [mhz for one in timings if one.key == found.key for mhz in one.sm_mhz.get(side, ()) if mhz > 0]
        for side in ("base", "head")
    ]
    # Of the SMs in MHz, while base and head were timed beside each other.
    medians = (median(clocks[0]), median(clocks[1])) if all(clocks) else None
    return budget.budget(before, found.head.figures, case.case.change_pct or 0.0, medians)


def plain_name(name: str) -> str:
    """Without template arguments and parameters, and without what stands before the last "::" but one."""
    words = ncu_reader.plain(name).replace("(anonymous namespace)::", "").split("<")[0].split("(")[0].split()
    return "::".join(words[-1].split("::")[-2:])[:MAX_NAME] if words else ""


def _action(split: Budget, found: Both, label: str) -> Line | None:
    """Against what changed, where that is most of it; where nothing is known of it, against what holds both sides back
    alike."""
    where: Line = (*_on(label), ":") if label else ()
    if split.causes:
        advice = against_change(split.causes[0], found.head) if split.is_mostly_explained else None
        return None if advice is None else _try(advice, where)
    before, after = (one.recommendations if one else () for one in found.analysed)
    alike = before and after and before[0].action == after[0].action
    if alike and found.analysed[1].bottleneck.strength >= SURE:
        return _try(after[0], (*where, " of both sides, not of the change:"))
    return None


def what_limits(record: RunRecord, label: str = "") -> tuple[Line, ...]:
    """What limits each profiled kernel, and what to try first: of a record that was made to be profiled."""
    where: Line = (Code(label), ": ") if label else ()
    found = both_sides(record)
    ids = formatting.ids((one.key for one in found), record.cards)
    lines: list[Line] = []
    for one in found:
        name, head = ids[one.key], one.analysed[1]
        if head.bottleneck.strength < MIN_STRENGTH:
            lines.append((*where, name, ": nothing in the profile stands out as what limits it."))
            continue
        lines.append((*where, name, f": {_verdicts(one)}."))
        lines += [(*where, *_try(action)) for action in head.recommendations[:1]]
    return tuple(lines)


def _try(one: Recommendation, where: Line = ()) -> Line:
    return (Strong("Try:"), *where, f" {one.action}; see ", _cookbook(one.link))


# The tables ---------------------------------------------------------------------------------------------------------


def section(record: RunRecord, cases: Sequence[JudgedCase]) -> Section | None:
    """The profiler's figures: metric, base, head, change; what explains the timing on top."""
    found = both_sides(record)
    if not found:
        return None
    alone = all(one.base is None for one in found)
    names = formatting.names(record.cases, record.cards)
    ids = formatting.ids((one.key for one in found), record.cards)
    judged = {one.case.key: one for one in cases}
    blocks: list[Block] = []
    for one in found:
        name = names.get(one.key, ids[one.key])
        head = one.analysed[1]
        known = head.bottleneck.strength >= MIN_STRENGTH
        blocks.append(Paragraph((name, f": {_verdicts(one)}.") if known else (name,)))
        texts = _texts([each for each in record.profile if each.key == one.key])
        case = judged.get(one.key)
        rows = (*_rows(one, budget_of(record, one, case) if case and case.status.is_news else None), *texts)
        # The base's column and the change are empty where there is no base.
        heads = ("metric", "#base", "#head", "#change")
        blocks.append(table(heads[::2], (row[::2] for row in rows)) if alone else table(heads, rows))
        if known:
            gains = [each.expected_gain_pct for each in head.recommendations]
            upto = ["" if gain is None else f", up to {gain:.0f}% of the time" for gain in gains]
            advice = zip(head.recommendations, upto, strict=True)
            blocks.append(Bullets(tuple((f"{each.action}{gain}; see ", _cookbook(each.link)) for each, gain in advice)))
    return Section("Profiler: head alone" if alone else "Profiler: base and head", tuple(blocks), worth=70)


def _verdicts(one: Both) -> str:
    base, head = one.analysed
    after = head.bottleneck
    now = f"{after.bottleneck.words} ({after.sureness}: {'; '.join(after.evidence)})"
    if base is None or base.bottleneck.bottleneck is after.bottleneck:
        return now
    return f"was {base.bottleneck.bottleneck.words}, is {now}"


def _rows(one: Both, split: Budget | None) -> Iterator[tuple[Piece, ...]]:
    after, before = one.head.figures, one.base.figures if one.base else {}
    first = [each.metric for each in split.causes if each.metric in after or each.metric in before] if split else []
    stalls = [key for key, _ in analyze.top_stalls(after)]
    known = [key for key in analyze.in_order(stalls, before, after) if key in after or key in before]
    for key in dict.fromkeys((*first, *known, *(key for key in chain(after, before) if not _is_known(key)))):
        old, new = before.get(key), after.get(key)
        label = Strong(metrics.label(key)) if key in first else metrics.label(key) if _is_known(key) else Code(key)
        shown = (formatting.MISSING if value is None else metrics.show(key, value) for value in (old, new))
        moved = formatting.MISSING if old != new else "0%"
        if old and new is not None:
            moved = formatting.percent(100 * (new / old - 1), 1, sign=True)
        yield (label, *shown, moved)


def _texts(profiles: Sequence[Profile]) -> Iterator[tuple[Piece, ...]]:
    """What a producer said in words rather than numbers."""
    sides = {one.side: {key: value for key, value in one.metrics.items() if isinstance(value, str)} for one in profiles}
    before, after = sides.get("base", {}), sides.get("head", {})
    for key in dict.fromkeys((*after, *before)):
        old, new = (Code(side[key]) if key in side else formatting.MISSING for side in (before, after))
        yield (Code(key), old, new, formatting.MISSING)


def _is_known(key: str) -> bool:
    return key in metrics.METRICS or metrics.is_stall(key)


def blocking(record: RunRecord, policy: Static) -> tuple[Line, ...]:
    """A remark for each thing that the compiler alone shows and the policy blocks; none on the head's own cards."""
    named, own = titles(record), cards.of_head(record)
    return tuple(
        (Mark.SLOWER, " Blocks: ", *_static_line(one, named))
        for one in static.judge(record.builds, policy)
        if one.severity == "fail" and one.card not in own
    )


def _static_line(one: static.StaticFinding, named: Mapping[str, str]) -> Line:
    return *_card(named, one.card), Code(one.kernel), " for ", Code(one.target), f": {one.message}."


def _card(named: Mapping[str, str], card: str) -> Line:
    return (f"{named[card]}, ",) if named.get(card) else ()


def static_section(record: RunRecord, policy: Static) -> Section | None:
    """What the compiler gave each kernel, base → head; what the policy minds first."""
    pairs = static.pairs(record.builds)
    if not pairs:
        return None
    columns = ("kernel", "target", "#registers", "#spilled", "#shared memory", "#occupancy", "instructions")
    marks = {"fail": Mark.SLOWER, "warn": Mark.SLIGHT}
    named, found = titles(record), static.judge(record.builds, policy)
    lines = tuple((marks[one.severity], " ", *_static_line(one, named)) for one in found)
    blocks: list[Block] = [Bullets(lines)] if lines else []
    figures = table(columns, (_static_row(pair, named) for pair in pairs))
    return Section("Registers, shared memory, instructions", (*blocks, figures), worth=70)


def _static_row(pair: static.Pair, named: Mapping[str, str]) -> tuple[Piece | Line, ...]:
    base, head = pair.base, pair.head
    occupancy = ", ".join(
        f"{formatting.arrow((base.occupancy_pct.get(gpu) if base else None), value, '%')} on the {gpu}"
        for gpu, value in head.occupancy_pct.items()
    )
    mix = ", ".join(
        f"{kind} {formatting.arrow(base.instructions.get(kind, 0) if base else None, count)}"
        for kind, count in head.instructions.items()
        if base is None or base.instructions.get(kind) != count
    )
    return (
        (*_card(named, pair.card), Code(head.name)),
        Code(head.target),
        formatting.arrow(base.registers if base else None, head.registers),
        formatting.arrow(base.spill_bytes if base else None, head.spill_bytes, " B"),
        formatting.arrow(static.shared_before(pair), head.shared_bytes, " B"),
        occupancy or formatting.MISSING,
        mix or ("unchanged" if base is not None else formatting.MISSING),
    )


def _cookbook(link: str) -> Piece:
    """`link`: the address of a heading of the cookbook."""
    heading = link.partition("#")[2]
    return docs(f"the cookbook on {heading.replace('-', ' ')}", f"CUDA_COOKBOOK.md#{heading}")
