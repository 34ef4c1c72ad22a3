"""What adds up: the record against the last release and the best ever, which are held beside the stored baseline.

Many changes below the gate are each unseen. Here they are seen together, where that is certain: no old commit can run
beside today's head, so these are times of two days, and how far times drift between days is in the interval.
"""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Line, Mark
from kernelgate.ci.judge import ratchet
from kernelgate.ci.judge.case import Direction
from kernelgate.ci.judge.history import History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report.gpu import Yardstick, judged

NAME_WIDTH = 40
"""Characters of a release's name."""
RESTS_ON = "; by times of two days, with their drift in the interval, not side by side"


def stored(measured: RunRecord, beside: Path, policy: Policy, known: History) -> tuple[Yardstick, ...]:
    """The release and the best that lie beside this baseline file. One that cannot be read is none."""
    found = []
    for kind in ("release", "best"):
        path = Path(ratchet.beside(str(beside), kind))
        try:
            held = record.read(path) if path.exists() else None
        except RecordError:
            continue
        if held is not None and baselines.is_of(held, measured):
            verdict = judge(measured, policy, held, against=path.name, history=known)
            of_file = baselines.of_record(verdict, held, measured.run.created_at)
            found.append(Yardstick(_since(kind, held), of_file))
    return tuple(found)


def _since(kind: str, held: RunRecord) -> str:
    if kind == "best":
        return "since the best ever"
    tag = held.summary.release if held.summary else None
    return f"since release {visible(tag, NAME_WIDTH)}" if tag else "since the last release"


def lines(measured: RunRecord, every: tuple[Yardstick, ...]) -> tuple[Line, ...]:
    """What is certainly slower than each, over all cases where that is certain, else in the worst case."""
    return tuple(line for one in every for line in _line(measured, one))


def _line(measured: RunRecord, one: Yardstick) -> tuple[Line, ...]:
    slower = _slower(measured, one)
    if slower is None:
        return ()
    other = [differs.name for differs in ratchet.changed(measured.environment, one.held.environment)]
    also = f"; {' and '.join(other)} changed since, too" if other else ""
    age = baselines.age_of(measured.run, one.held.run)
    return ((Mark.SLIGHT, f" {one.since}, {age}: ", *slower, RESTS_ON, also),)


def _slower(measured: RunRecord, one: Yardstick) -> Line | None:
    verdict = one.held.verdict
    means = [mean for mean in verdict.means if mean.direction is Direction.SLOWER]
    if means:
        worst = max(means, key=lambda mean: mean.change_pct)
        cases = formatting.counted(worst.cases, "case")
        said = formatting.over(worst.change_pct, worst.interval_pct, worst.direction.value, cases)
        return (said,) if len(verdict.means) == 1 else (f"{visible(worst.card, NAME_WIDTH)} ", said)
    cases_slower = [
        case
        for case in judged(measured, verdict)
        if case.case.direction is Direction.SLOWER and case.case.believed and not case.case.status.is_faster
    ]
    if not cases_slower:
        return None
    first = max(cases_slower, key=lambda case: case.case.change_pct or 0.0)
    size, interval = formatting.amount(first.case.change_pct, first.case.interval_pct)
    more = f", and {len(cases_slower) - 1} more" if len(cases_slower) > 1 else ""
    return (f"{size} slower {interval} in ", first.name, more)
