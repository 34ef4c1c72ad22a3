"""Sets each claim of a description beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.github.claimed_cases import ClaimedCases, cases_of
from kernelgate.ci.github.description import Claim, Effect
from kernelgate.ci.judge.verdict import CaseVerdict, Direction, Outcome, RecordVerdict
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.policy.pull_request_rules import Template


class Support(IntEnum):
    """What the measurement says of a claim; of several cases the lowest counts."""

    CONTRADICTED = 0
    NOT_SUPPORTED = 1
    NOT_MEASURED = 2
    SUPPORTED = 3


MAX_AXES = 12
"""Axes that a line names."""

_WORDS = {
    Support.CONTRADICTED: (Mark.SLIGHT, "is contradicted"),
    Support.NOT_SUPPORTED: (Mark.UNKNOWN, "is not supported"),
    Support.NOT_MEASURED: (Mark.UNKNOWN, "was not measured"),
    Support.SUPPORTED: (Mark.PASSED, "is supported"),
}


@dataclass(frozen=True)
class Assessed:
    """A claim with what was found; `case` is the one that decided, None where none was measured."""

    claim: Claim
    finding: Support
    case: CaseVerdict | None = None
    strange: tuple[str, ...] = ()
    """Axes of the claim that no case has, …"""
    known: tuple[str, ...] = ()
    """… and those that there are."""

    @property
    def line(self) -> Line:
        mark, words = _WORDS[self.finding]
        return (mark, " claim ", Code(self.claim.text, most=120), f" {words}", *self._why())

    def _why(self) -> Line:
        if self.strange:
            there_are = ("; there are ", *_listed(self.known, ", ")) if self.known else ()
            return (": no case has an axis ", *_listed(self.strange, " or "), *there_are)
        if self.case is None:
            return (": no measured case fits it",)
        if self.finding is Support.NOT_MEASURED:
            return (": its case could not be judged",)
        change, interval = formatting.signed(self.case.change_pct, self.case.interval_pct)
        return (": ", Code(self.case.id), f" {change} {interval}")


def _listed(names: Sequence[str], separator: str) -> Line:
    shown = names[:MAX_AXES]
    return tuple(piece for number, name in enumerate(shown) for piece in (separator if number else "", Code(name, 40)))


def assess(
    claims: Sequence[Claim], record: RunRecord, verdict: RecordVerdict, gates: Gates, policy: Template
) -> tuple[Assessed, ...]:
    """Every claim against the cases of the record that it names."""
    return tuple(_assess(claim, cases_of(claim, record), verdict.cases, gates, policy) for claim in claims)


def _assess(
    claim: Claim, about: ClaimedCases, cases: Sequence[CaseVerdict], gates: Gates, policy: Template
) -> Assessed:
    found = [Assessed(claim, _found(claim, case, gates, policy), case) for case in cases if case.key in about.cases]
    none = Assessed(claim, Support.NOT_MEASURED, strange=about.strange, known=about.known)
    return min(found, key=lambda one: one.finding, default=none)


def _found(claim: Claim, case: CaseVerdict, gates: Gates, policy: Template) -> Support:
    """One claim, one case. Decided by the interval of the change and by whether a direction is certain at all."""
    if case.interval_pct is None or case.disqualifying:
        return Support.NOT_MEASURED
    low, high = case.interval_pct
    if claim.effect is Effect.SAME:
        return _same(case, low, high, gates.margin_pct)
    # Turned so that the claimed direction is positive.
    sign = -1 if claim.effect is Effect.FASTER else 1
    claimed, least, most = abs(claim.change_pct), min(sign * low, sign * high), max(sign * low, sign * high)
    directed = Direction.FASTER if claim.effect is Effect.FASTER else Direction.SLOWER
    if case.direction not in (directed, Direction.NONE):
        return Support.CONTRADICTED
    if case.verdict is Outcome.EQUIVALENT and claimed > gates.margin_pct + policy.claim_tolerance_pct:
        return Support.CONTRADICTED
    if case.direction is directed and most + policy.claim_tolerance_pct >= claimed and least > 0:
        return Support.SUPPORTED
    return Support.NOT_SUPPORTED


def _same(case: CaseVerdict, low: float, high: float, margin: float) -> Support:
    if case.verdict is Outcome.EQUIVALENT:
        return Support.SUPPORTED
    if case.direction is not Direction.NONE and (low > margin or high < -margin):
        return Support.CONTRADICTED
    return Support.NOT_SUPPORTED
