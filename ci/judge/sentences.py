"""The words for what was judged: the same in the terminal, the comment, the check and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Mark
from kernelgate.ci.judge.case import CaseVerdict, Direction, MeanVerdict, Outcome, Status, worst_first
from kernelgate.ci.judge.witness import contradicted
from kernelgate.ci.policy.policy import TO_DIRECT, Gates, Policy

STATUS: Mapping[Status, tuple[Mark, str]] = {
    Status.REGRESSED: (Mark.SLOWER, "regressed"),
    Status.LIKELY_SLOWER: (Mark.SLIGHT, "very likely slower"),
    Status.SLOWER: (Mark.SLIGHT, "slower within the gate"),
    Status.UNDECIDED: (Mark.UNKNOWN, "undecided"),
    Status.LIKELY_FASTER: (Mark.UNKNOWN, "very likely faster"),
    Status.IMPROVED: (Mark.FASTER, "improved"),
    Status.FASTER: (Mark.FASTER, "faster within the gate"),
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
    if case.change_pct is None or case.interval_pct is None:
        return "cannot tell: nothing was measured"
    digits = formatting.places(case.interval_pct)
    between = formatting.between(case.interval_pct, digits)
    seen = case.minimum_detectable_pct
    would = "" if seen is None else f"; {_would_be_seen(seen, digits)}"
    if case.status.is_likely:
        size, side = formatting.amount(case.change_pct, case.interval_pct)[0], case.status.name[-6:].lower()
        return f"very likely {size} {side}, {between}, after {repeats(case, policy)}"
    if case.direction is Direction.NONE:
        low, high = case.interval_pct
        side = f" {Direction.SLOWER}" if low > 0 else f" {Direction.FASTER}" if high < 0 else ""
        if case.status is Status.UNCHANGED:
            return f"no change: within {margin(policy.gates)}, {between}{side}{would}"
        why = "" if seen is None else f"; {unseen(seen, digits)}"
        likely = f"likely {between}{side}, but not certain in {case.processes} processes" if side else between
        return f"cannot tell: {likely}{why}"
    size = f"{formatting.amount(case.change_pct, case.interval_pct)[0]} {case.direction}, {between}"
    if case.status is Status.UNCHANGED:
        return f"{size}: certain, and within {margin(policy.gates)}{would}"
    if case.status in (Status.SLOWER, Status.FASTER):
        why = ""
        if _is_past(case, policy.gates):
            why = " (single times of base and head overlap too much)"
            if contradicted(case.findings):
                why = " (the witness sees another gain)"
        return f"{size}: certain, but {short_of_gate(case, policy.gates)}{why}{would}"
    return f"{size}{would}"


def margin(gates: Gates) -> str:
    return f"±{formatting.threshold(gates.margin_pct)}"


def short_of_gate(case: CaseVerdict, gates: Gates) -> str:
    """How a certain difference relates to the gate that it does not pass."""
    slower = case.direction is Direction.SLOWER
    gate = gates.regression_pct if slower else gates.improvement_pct
    relation = "not confirmed as more than" if _is_past(case, gates) else "below"
    consequence = "that blocks" if slower else "that counts as an improvement"
    return f"{relation} the {formatting.threshold(gate)} {consequence}"


def repeats(of: CaseVerdict | MeanVerdict, policy: Policy) -> str:
    """ "2 of 3 repeats": of as many as it takes to block what is certain, or else of the most that are made."""
    enough = policy.processes.to_block if of.direction is not Direction.NONE else TO_DIRECT
    return f"{of.processes} of {enough if of.processes < enough else policy.processes.limit} repeats"


def _is_past(case: CaseVerdict, gates: Gates) -> bool:
    change = case.change_pct or 0.0
    return change > gates.regression_pct if case.direction is Direction.SLOWER else -change >= gates.improvement_pct


DOUBLING: Final = 100.0
"""Percent. Where no smaller change could be seen, its size says nothing any more."""


def noise(cases: Sequence[CaseVerdict]) -> str:
    """Why sound cases stay undecided: "too noisy; a change below 2.4% could not be seen", "too few repeats; …"."""
    if any(case.change_pct is None for case in cases):
        return "too little was measured"
    seen = _smallest_visible(cases)
    if seen is None:
        made = min(case.processes for case in cases)
        return f"{formatting.counted(made, 'repeat')} {'is' if made == 1 else 'are'} too few to be sure"
    few = any(case.processes < TO_DIRECT for case in cases)
    return f"{'too few repeats' if few else 'too noisy'}; {unseen(seen)}"


def shown(cases: Sequence[CaseVerdict]) -> str | None:
    """ "a change of 0.3% would have been seen", in every case; None where one case does not know."""
    seen = _smallest_visible(cases)
    return None if seen is None else _would_be_seen(seen)


def unseen(smallest_pct: float, digits: int | None = None) -> str:
    """ "a change below 2.4% could not be seen", in so many decimals or as roughly as it matters."""
    if smallest_pct >= DOUBLING:
        return "nothing below a doubling could be seen"
    return f"a change below {_size(smallest_pct, digits)} could not be seen"


def _would_be_seen(smallest_pct: float, digits: int | None = None) -> str:
    if smallest_pct >= DOUBLING:
        return unseen(smallest_pct)
    return f"a change of {_size(smallest_pct, digits)} would have been seen"


def _size(smallest_pct: float, digits: int | None) -> str:
    return formatting.about(smallest_pct) if digits is None else formatting.percent(smallest_pct, digits)


def _smallest_visible(cases: Sequence[CaseVerdict]) -> float | None:
    seen = [case.minimum_detectable_pct for case in cases if case.minimum_detectable_pct is not None]
    return max(seen) if len(seen) == len(cases) > 0 else None


def of_record(outcome: Outcome, cases: Sequence[CaseVerdict], means: Sequence[MeanVerdict]) -> str:
    """What decided, how many cases there are of each kind, and the mean of each card."""
    if len(cases) == 1:
        return cases[0].sentence
    together = [f"{mean.card}: {mean.sentence}" if len(means) > 1 else mean.sentence for mean in means]
    found = Counter(case.verdict for case in cases)
    # Such as "of 27 cases 24 slower, 3 inconclusive".
    kinds = f"of {len(cases)} cases {', '.join(f'{found[kind]} {kind}' for kind in Outcome if found[kind])}"
    deciding = next((case for case in worst_first(cases) if case.verdict is outcome), None)
    parts = (*together, kinds) if deciding is None else (f"{deciding.id}: {deciding.sentence}", kinds, *together)
    return "; ".join(parts)


def of_mean(mean: MeanVerdict, policy: Policy) -> str:
    """ "1.20% slower over 27 cases [1.15, 1.25], past the 1% that blocks", "no certain change over 24 of 27 cases
    [−0.02, +0.03]"."""
    gates = policy.gates
    number = formatting.counted(mean.cases, "case") if mean.cases == mean.of else f"{mean.cases} of {mean.of} cases"
    side = "slower" if mean.status is Status.LIKELY_SLOWER else mean.direction.value
    size = formatting.over(mean.change_pct, mean.interval_pct, side, number)
    if mean.status is Status.UNCHANGED:
        return f"{size}, within {margin(gates)}"
    if mean.status is Status.LIKELY_SLOWER:
        blocks = formatting.threshold(gates.mean_regression_pct)
        return f"very likely {size}, past the {blocks} that blocks, after {repeats(mean, policy)}"
    if mean.direction is Direction.NONE:
        return size
    slower = mean.direction is Direction.SLOWER
    gate = gates.mean_regression_pct if slower else gates.mean_improvement_pct
    consequence = f"the {formatting.threshold(gate)} {'that blocks' if slower else 'that counts as an improvement'}"
    if mean.status in (Status.REGRESSED, Status.IMPROVED):
        return f"{size}, past {consequence}"
    if mean.change_pct > gate if slower else -mean.change_pct >= gate:
        cases = "not of all cases" if mean.cases < mean.of else "of too few cases"
        return f"{size}, certain, but {cases}: no gate acts"
    return f"{size}, certain, but below {consequence}"
