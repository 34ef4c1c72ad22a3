"""What somebody accepted although it is too slow: who, why, and what still blocks beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernelgate.bench.record import CaseKey
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Mark, Piece
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.report.gpu import GpuReport

MAX_NAMED = 5
"""Cases that a line names; the table has them all."""


def lines(gpus: Sequence[GpuReport], decision: Decision) -> tuple[Line, ...]:
    """A line for each person and reason, and one for what nobody accepted."""
    names = {
        key: name
        for gpu in gpus
        if gpu.record is not None
        for key, name in formatting.names(gpu.record.cases, gpu.record.cards).items()
    }
    everywhere = " on every GPU" if len(gpus) > 1 else ""
    found: list[Line] = []
    for by, reason in dict.fromkeys((one.by, one.reason) for one in decision.accepted):
        cases = [one.case for one in decision.accepted if (one.by, one.reason) == (by, reason)]
        who: Line = (Mark.SLIGHT, " Accepted by ", Code(f"@{by}"), f"{everywhere}, until the next push: ")
        found.append((*who, *listed(cases, names), ". Reason: ", visible(reason)))
    left = list(dict.fromkeys(one.case for one in decision.regressions if not one.accepted))
    if found and left:
        found.append((Mark.SLOWER, " Not accepted, so this blocks: ", *listed(left, names)))
    return tuple(found)


def applies(gpu: GpuReport, decision: Decision) -> bool:
    """Whether everything that is too slow on this GPU was accepted, and nothing else blocks."""
    regressed = gpu.verdict is not None and gpu.verdict.verdict is Outcome.REGRESSED and not gpu.is_wrong
    return bool(decision.accepted) and not decision.blocks and regressed


def as_accepted(line: Line) -> Line:
    """The first line of a regression that was accepted, where nothing is about merging."""
    return (Mark.SLIGHT, " Slower, and accepted: ", *line[2:])


def listed(cases: Iterable[CaseKey], names: Mapping[CaseKey, Piece]) -> Line:
    """ "`a`, `b` and 3 more"."""
    every = list(cases)
    line: list[Piece] = []
    for number, case in enumerate(every[:MAX_NAMED]):
        line += [", " if number else "", *_named(case, names)]
    return (*line, f" and {len(every) - MAX_NAMED} more") if len(every) > MAX_NAMED else tuple(line)


def _named(case: CaseKey, names: Mapping[CaseKey, Piece]) -> Line:
    """As the table has it; else as people write it in a command."""
    if not case.id:
        return ("all cases together", *((" of ", Code(case.card)) if case.card else ()))
    return (names.get(case) or Code(f"{case.card}/{case.id}" if case.card else case.id),)
