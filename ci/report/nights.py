"""How a case's time moved on the default branch before this pull request: a line of blocks, with words beside it."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Column, Line, Link, Paragraph, Section, Strong, Table
from kernelgate.ci.judge.case import Status
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import CaseNights, GpuReport, JudgedCase

BLOCKS = "▁▂▃▅▇"
LEAST = 2
"""One time has not moved."""
MOVED = (Status.REGRESSED, Status.UNCONFIRMED, Status.SLOWER, Status.FASTER, Status.IMPROVED)


def lines(gpu: GpuReport, gates: Gates) -> tuple[Line, ...]:
    """Of the case that moved most; what did not move needs no history above the fold."""
    worst = next(iter(gpu.cases), None)
    known = gpu.nights.get(worst.case.key) if worst else None
    if worst is None or known is None or worst.status not in MOVED or len(known.times_us) < LEAST:
        return ()
    return ((Strong("Before:"), " ", *_spoken(worst, known, gates), ". ", *_page(known, "All of its past")),)


def section(gpu: GpuReport, gates: Gates) -> Section | None:
    """All cases of which the history has any."""
    shown = [(case, gpu.nights[case.case.key]) for case in gpu.cases if case.case.key in gpu.nights]
    shown = [(case, known) for case, known in shown if len(known.times_us) >= LEAST]
    if not shown:
        return None
    columns = (
        Column("default branch"),
        Column("first → last", numeric=True),
        Column("within", numeric=True),
        Column("case"),
    )
    rows = tuple(
        (
            (Code(sparkline(known.times_us, gates.margin_pct)),),
            (_ends(known),),
            (formatting.percent(_within_pct(known.times_us)),),
            (Link(_text(case), known.page),) if known.page else (case.name,),
        )
        for case, known in shown
    )
    most = max(len(known.times_us) for _, known in shown)
    told = f"The default branch's last measurements, at most {most}, on this kind of GPU: before this pull request."
    return Section("Before this pull request", (Paragraph((told,)), Table(columns, rows)), worth=30)


def sparkline(times_us: Sequence[float], margin_pct: float) -> str:
    """Lower is faster. What stays within the margin, which counts as no change, does not look like one."""
    low, high = min(times_us), max(times_us)
    room = max(high - low, low * 2 * margin_pct / 100)
    bottom = (low + high - room) / 2
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int((one - bottom) / room * len(BLOCKS)))] for one in times_us)


def _spoken(case: JudgedCase, known: CaseNights, gates: Gates) -> Line:
    """ "▁▁▁▂▇ S=512 fp16 took 321.4 → 337.1 µs in 20 measurements of the default branch, 2026-08-01 to 2026-08-20" """
    days = f", {known.first_day} to {known.last_day}" if known.first_day and known.last_day else ""
    number = formatting.counted(len(known.times_us), "measurement")
    said = f" took {_ends(known)} in the last {number} of the default branch{days}"
    within = f", all within {formatting.percent(_within_pct(known.times_us))}"
    return (Code(sparkline(known.times_us, gates.margin_pct)), " ", case.name, said, within)


def _ends(known: CaseNights) -> str:
    first, last = formatting.durations(known.times_us[0], known.times_us[-1])
    return f"{first} → {last}"


def _within_pct(times_us: Sequence[float]) -> float:
    return 100 * (max(times_us) / min(times_us) - 1)


def _page(known: CaseNights, text: str) -> Line:
    return (Link(text, known.page), ".") if known.page else ()


def _text(case: JudgedCase) -> str:
    return case.name if isinstance(case.name, str) else getattr(case.name, "text", case.case.id)
