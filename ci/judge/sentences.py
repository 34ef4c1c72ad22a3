"""The words for one judged case: the same in the terminal, the comment, the check and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Mark
from kernelgate.ci.judge.case import CaseVerdict, Direction, Status
from kernelgate.ci.judge.policy import Gates, Policy

STATUS: Mapping[Status, tuple[Mark, str]] = {
    Status.REGRESSED: (Mark.SLOWER, "regressed"),
    Status.SLOWER: (Mark.SLIGHT, "slower but not past the gate"),
    Status.UNDECIDED: (Mark.UNKNOWN, "undecided"),
    Status.IMPROVED: (Mark.FASTER, "improved"),
    Status.FASTER: (Mark.FASTER, "faster but not past the gate"),
    Status.UNCHANGED: (Mark.SAME, "unchanged"),
    Status.ALONE: (Mark.NONE, "measured without a base"),
}
"""How a status is marked, and what it is called where cases are counted."""


def mark(status: Status) -> Mark:
    return STATUS[status][0]


def of_case(case: CaseVerdict, policy: Policy) -> str:
    """One sentence with the change, its interval and what this run could have seen."""
    if case.status is Status.ALONE:
        return f"not compared: {case.disqualifying[0].message}"
    if case.disqualifying:
        return f"cannot tell: {case.disqualifying[0].message}"
    if case.change_pct is None or case.interval_pct is None or case.minimum_detectable_pct is None:
        return "cannot tell: nothing was measured"
    digits = formatting.places(case.interval_pct)
    between = formatting.between(case.interval_pct, digits)
    seen = formatting.percent(case.minimum_detectable_pct, digits)
    would = f"a change of {seen} would have been seen"
    if case.direction is Direction.NONE:
        if case.status is Status.UNCHANGED:
            return f"no change: within {margin(policy.gates)}, {between}; {would}"
        return f"cannot tell: {between}; a change below {seen} could not be seen"
    size = f"{formatting.percent(abs(case.change_pct), digits)} {case.direction}, {between}"
    if case.status is Status.UNCHANGED:
        return f"{size}: certain, and within {margin(policy.gates)}; {would}"
    if case.status in (Status.SLOWER, Status.FASTER):
        return f"{size}: certain, but {short_of_gate(case, policy.gates)}{_unconfirmed(case, policy)}; {would}"
    return f"{size}; {would}"


def margin(gates: Gates) -> str:
    return f"±{formatting.threshold(gates.margin_pct)}"


def short_of_gate(case: CaseVerdict, gates: Gates) -> str:
    """How a certain difference relates to the gate that it does not pass."""
    gate, consequence = _gate(case, gates)
    relation = "not confirmed as more than" if _is_past(case, gates) else "below"
    return f"{relation} the {formatting.threshold(gate)} {consequence}"


def _unconfirmed(case: CaseVerdict, policy: Policy) -> str:
    """Why a difference larger than its gate does not pass it."""
    if not _is_past(case, policy.gates):
        return ""
    if case.direction is Direction.SLOWER and case.processes < policy.processes.to_block:
        return f" (it takes {policy.processes.to_block} processes to block)"
    return " (single times of base and head overlap too much)"


def _gate(case: CaseVerdict, gates: Gates) -> tuple[float, str]:
    if case.direction is Direction.SLOWER:
        return gates.regression_pct, "that blocks"
    return gates.improvement_pct, "that counts as an improvement"


def _is_past(case: CaseVerdict, gates: Gates) -> bool:
    gate, _ = _gate(case, gates)
    change = abs(case.change_pct or 0.0)
    return change > gate if case.direction is Direction.SLOWER else change >= gate


def in_table(case: CaseVerdict, gates: Gates) -> str:
    """The status in a table's cell, behind its mark."""
    match case.status:
        case Status.REGRESSED:
            return "slower"
        case Status.IMPROVED:
            return "faster"
        case Status.UNCHANGED:
            return "same" if case.direction is Direction.NONE else f"same: within {margin(gates)}"
        case Status.ALONE:
            return "not compared"
        case Status.UNDECIDED:
            blamed = sorted({finding.code.replace("_", " ") for finding in case.disqualifying})
            return f"cannot tell: {', '.join(blamed)}" if blamed else noise([case])
        case _:
            return f"{case.direction.value}, {short_of_gate(case, gates)}"


def noise(cases: Sequence[CaseVerdict]) -> str:
    """Why sound cases stay undecided: "too noisy; a change below 2.4% could not be seen"."""
    if any(case.change_pct is None for case in cases):
        return "too little was measured"
    seen = smallest_visible(cases)
    return "too noisy" if seen is None else f"too noisy; a change below {seen} could not be seen"


def smallest_visible(cases: Sequence[CaseVerdict]) -> str | None:
    """The smallest change that every case would have shown, such as "2.4%"; None where one case does not know."""
    seen = [case.minimum_detectable_pct for case in cases if case.minimum_detectable_pct is not None]
    return formatting.about(max(seen)) if len(seen) == len(cases) > 0 else None
