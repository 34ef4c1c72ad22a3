"""How fast each case is and how sure its change, folded: statistics, percentiles, launch overhead.
How much of a call is its launch also stands above the fold, where it is why a case changed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from kernelgate.bench.record import Card, Run, RunRecord, Side, TimedCase, rates, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Paragraph, Piece, Section, Strong, Table, table
from kernelgate.ci.explain import next_step
from kernelgate.ci.explain.next_step import LaunchShare
from kernelgate.ci.judge import reference, sentences
from kernelgate.ci.judge.case import MeanVerdict, Status
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import docs


def statistics(
    cases: Sequence[JudgedCase], cards: Sequence[Card] = (), means: Sequence[MeanVerdict] = ()
) -> Section | None:
    """The numbers that each verdict rests on."""
    cases = [one for one in cases if one.status is not Status.ALONE]
    if not cases:
        return None
    heads = ("case", "#change", "#interval", "#p, adjusted", "#Cliff's delta", "#could be seen", "#Mann–Whitney p",
              "#bootstrap 95%", "#rounds in processes")  # fmt: skip
    note = (
        "Changes are of time, head against base: positive is slower. p is adjusted over the cases of this record. "
        "“Could be seen” is the smallest change that this run could have shown. Mann–Whitney p and the bootstrap "
        "interval are for comparison and decide nothing alone; ",
        docs("how a verdict is reached", "statistics.md"),
        " has the model.",
    )
    named = {card: f" of {title}" for card, title in formatting.titles_of((one.card for one in means), cards).items()}
    lines: list[Line] = [(f"All cases{named.get(one.card, '')} together: ", one.sentence, ".") for one in means]
    told = (one for one in cases if one.status is not Status.UNCHANGED and one.case.sentence)
    lines += [(one.name, ": ", formatting.sentence(one.case.sentence), ".") for one in told]
    ids = formatting.ids((one.case.key for one in cases), cards)
    figures = table(heads, (_statistics_row(one, ids[one.case.key]) for one in cases))
    blocks: list[Block] = [Bullets(tuple(lines))] if lines else []
    return Section("Statistics", (*blocks, figures, Paragraph(note)), worth=60)


def _statistics_row(one: JudgedCase, id_: Code) -> tuple[Piece, ...]:
    case, rounds = one.case, f"{one.case.rounds} in {one.case.processes}"
    if case.disqualifying:
        return (id_, *((formatting.MISSING,) * 7), rounds)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    delta, least = case.cliffs_delta, case.minimum_detectable_pct
    seen = "a doubling" if (least or 0.0) >= sentences.DOUBLING else formatting.about(least or 0.0)
    return (
        id_,
        change,
        interval if case.interval_pct else formatting.MISSING,
        formatting.probability(case.p),
        formatting.MISSING if delta is None else formatting.percent(delta, 2, sign=True)[:-1],
        formatting.MISSING if least is None else seen,
        formatting.probability(case.mann_whitney_p),
        formatting.signed(0.0, case.bootstrap_pct)[1] if case.bootstrap_pct else formatting.MISSING,
        rounds,
    )


def results(gpus: Sequence[GpuReport], run: Run) -> tuple[Block, ...]:
    """The statistics in short, for a pull request's description: a table for each GPU, or that it has none; nothing
    where none has. From the judged record alone, so that one measurement always gives the same words."""
    base = (" against ", formatting.commit(run.base_sha, "")) if run.base_sha else ()
    note = ", written by kernelgate, whose comment holds the verdict. Changes are of time: positive is slower."
    blocks: list[Block] = [Paragraph(("Of ", formatting.commit(run.head_sha, "the head"), *base, note))]
    for gpu in gpus:
        section = statistics(gpu.cases, gpu.record.cards)
        tables = [block for block in section.blocks if isinstance(block, Table)] if section else []
        if not tables or len(gpus) > 1:
            said = ":" if tables else " no case was compared, or a result is wrong."
            blocks.append(Paragraph(("On ", Code(gpu.label), said)))
        blocks += tables
    return tuple(blocks) if any(isinstance(block, Table) for block in blocks) else ()


def speed(record: RunRecord, cases: Sequence[JudgedCase]) -> Section | None:
    """Times as the verdict has them, percentiles, throughput from the case's own work, and the kernel alone."""
    by_key = {case.key: case for case in timed_cases(record)}
    timed = [(one, by_key[one.case.key]) for one in cases if one.case.key in by_key]
    beside = formatting.reference(record.cards)
    if not (rows := [row for one, case in timed for side in rates.SIDES if (row := _speed_row(one, case, side))]):
        return None
    figures = ("#time", "#P95", "#P99", f"#× {beside}", "#TFLOP/s", "#GB/s", "#kernel", "#launch overhead")
    note: Line = (
        "Time of one call as the verdict has it: the median of the processes' medians; P95 and P99 are of all rounds. "
        f"“× {beside}” is the reference's time divided by the kernel's: above 1 the kernel is the faster one. “Kernel” "
        "is the same call replayed from a CUDA graph; “launch overhead” is what the time holds beyond it.",
    )
    blocks = (table(("case", "side", *figures), rows), Paragraph(note))
    return Section("Speed: percentiles, throughput, launch overhead", blocks, worth=40)


def _speed_row(judged: JudgedCase, case: TimedCase, side: Side) -> tuple[Piece, ...] | None:
    if (rate := rates.rate(case, side, judged.case.us(side))) is None:
        return None
    times = None if side == "reference" else reference.times(judged.case, side)
    return (
        judged.name,
        side,
        *formatting.durations(rate.us, rate.p95_us, rate.p99_us),
        formatting.MISSING if times is None else f"{times:.2f}",
        *(formatting.MISSING if one is None else formatting.significant(one, 3) for one in (rate.tflops, rate.gbps)),
        *formatting.durations(rate.graph_us),
        *formatting.durations(rate.overhead_us),
    )


# Launch overhead: calls made one by one, beside the same call replayed from a CUDA graph -----------------------

MEASURED = "by calls made one by one beside the same calls replayed from a CUDA graph"


def why_by_launch(record: RunRecord, cases: Sequence[JudgedCase], policy: Policy, label: str = "") -> tuple[Line, ...]:
    """That the first case that changed did so by its launch, where every process shows it."""
    news = next((one for one in cases if one.status.is_news), None)
    timed = next((one for one in timed_cases(record) if news and one.key == news.case.key), None)
    if news is None or timed is None:
        return ()
    both: tuple[Side, ...] = ("base", "head")
    pairs = [
        tuple(LaunchShare(median(one.samples_us[side]), one.timing.graph_us[side]) for side in both)
        for one in timed.processes
        if {*both} <= one.timing.graph_us.keys() & one.samples_us.keys()
    ]
    if len(pairs) < policy.processes.minimum or not next_step.is_launch_cause(pairs):
        return ()
    sides = [one for side in both if (one := rates.rate(timed, side, news.case.us(side)))]
    times = ([one.overhead_us or 0.0 for one in sides], [one.graph_us or 0.0 for one in sides])
    moved = "; the kernels alone ".join(" → ".join(formatting.durations(*us)) for us in times)
    where: Line = (" on ", Code(label)) if label else ()
    guide = docs("the cookbook on launch overhead", "CUDA_COOKBOOK.md#launch-overhead")
    return ((Strong("Why"), f", {MEASURED} in ", news.name, *where, f": the launch took {moved}; see ", guide),)
