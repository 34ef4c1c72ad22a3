"""The verdict: the one place where a run record becomes improved, regressed, equivalent or inconclusive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.document.formatting import percent as written
from kernelgate.ci.judge import estimate, stats, validity
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.stats import BootstrapIntervals
from kernelgate.ci.judge.validity import Finding, percent

__all__ = [
    "CaseVerdict",
    "Direction",
    "Finding",
    "LaunchChange",
    "Outcome",
    "RecordVerdict",
    "decided",
    "exit_code",
    "judge",
]


class Outcome(StrEnum):
    """What the policy's gates say."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    """Shown to lie within the margin, not merely "not significant"."""
    INCONCLUSIVE = "inconclusive"


class Direction(StrEnum):
    """Whether the difference itself is certain, whatever its size."""

    SLOWER = "slower"
    FASTER = "faster"
    NONE = "none"


@dataclass(frozen=True)
class LaunchChange:
    """One launch's own estimate, for the plot: percent, positive is slower."""

    change_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True)
class CaseVerdict:
    """One case judged. Percentages are changes of time, positive is slower; times are medians in microseconds."""

    id: str
    verdict: Outcome
    direction: Direction
    sentence: str
    """What an engineer without statistics reads rightly."""
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None
    """Two-sided, of no difference, adjusted over the cases of the record."""
    cliffs_delta: float | None
    """Positive: head slower."""
    minimum_detectable_pct: float | None
    mann_whitney_p: float | None
    bootstrap_pct: tuple[float, float] | None
    """95% interval of the ratio of medians; launches resampled above rounds."""
    base_us: float | None
    head_us: float | None
    oracle_us: float | None
    launches: int
    rounds: int
    """Rounds in all, over every launch."""
    per_launch: tuple[LaunchChange, ...]
    findings: tuple[Finding, ...]

    @property
    def disqualified(self) -> bool:
        """No verdict may rest on this case: a finding says why."""
        return any(finding.disqualifies for finding in self.findings)


@dataclass(frozen=True)
class RecordVerdict:
    """One record judged. `refused` holds why the record cannot be judged, and then there are no cases."""

    record: str
    verdict: Outcome
    reason: str
    cases: tuple[CaseVerdict, ...]
    refused: str | None = None
    against: str = "base"
    """`base`, or the name of the baseline file."""


# ---- one record ------------------------------------------------------------------------------------------------------


def judge(
    record: RunRecord, policy: Policy, baseline: RunRecord | None = None, name: str = "record", against: str = "base"
) -> RecordVerdict:
    """The verdict on `record`: its head against its own base, or against the heads of `baseline`, named `against`.

    Never raises for what a record holds: what cannot be judged is refused in the verdict, with the reason.
    """
    known = {case.id: case for case in baseline.cases} if baseline else {}
    refused = _unfit(record, policy) or (_mismatch(record, baseline, policy) if baseline else None)
    if refused is None:
        device = record.environment.device
        evidences = [
            estimate.of_baseline(case, known[case.id], device, policy)
            if baseline
            else estimate.of_duel(case, device, policy)
            for case in record.cases
            if baseline is None or case.id in known
        ]
        refused = _too_little(evidences)
    if refused is not None:
        return RecordVerdict(name, Outcome.INCONCLUSIVE, f"cannot be judged: {refused}", (), refused, against)
    claimed = claims(evidences, policy)
    cases = tuple(
        _judge_case(case, claim, policy) if claim else _without_estimate(case)
        for case, claim in zip(evidences, claimed, strict=True)
    )
    outcome = _overall(cases)
    notes = _notes(record, baseline) if baseline else []
    return RecordVerdict(name, outcome, "; ".join([_reason(outcome, cases), *notes]), cases, None, against)


def exit_code(verdict: RecordVerdict) -> int:
    """0 improved · 1 regressed · 2 no significant difference · 3 no judgement was possible."""
    if verdict.refused is not None or all(case.disqualified for case in verdict.cases):
        return 3
    return {Outcome.IMPROVED: 0, Outcome.REGRESSED: 1}.get(verdict.verdict, 2)


def _unfit(record: RunRecord, policy: Policy) -> str | None:
    """Why nothing in the record may be judged."""
    if not record.cases:
        return "the record holds no cases"
    if record.fuzz and record.fuzz.status == "failed":
        failed = sum(not result.passed for result in record.fuzz.results)
        count = f"{failed} of {counted(len(record.fuzz.results), 'fuzz case')} failed" if failed else "fuzzing failed"
        return f"wrong result: {count}; speed was not judged"
    for case in record.cases:
        for finding in validity.wrong_output(case):
            return f"wrong result: {case.id}: {finding.message}; speed was not judged"
    return _absurd(record, policy)


def _absurd(record: RunRecord, policy: Policy) -> str | None:
    """The first time that no kernel and no clock give."""
    shortest, longest = policy.limits.shortest_us, policy.limits.longest_us
    for case in record.cases:
        for samples in (samples for launch in case.launches for samples in launch.samples_us.values() if samples):
            if not shortest <= min(samples) <= max(samples) <= longest:
                odd = min(samples) if min(samples) < shortest else max(samples)
                return f"{case.id} holds a time of {odd:.3g} µs; times lie between {shortest:g} and {longest:g} µs"
    return None


def _mismatch(record: RunRecord, baseline: RunRecord, policy: Policy) -> str | None:
    """Why the record cannot be compared with this baseline."""
    now, was = record.environment.device.name, baseline.environment.device.name
    if now and was and now != was:
        return f"the baseline was measured on {was}, this record on {now}: times of different devices are not compared"
    known = [case.id for case in baseline.cases]
    if not {case.id for case in record.cases} & set(known):
        ids = ", ".join(case.id for case in record.cases)
        return f"the baseline has other cases: it holds {', '.join(known) or 'none'}; this record holds {ids}"
    absurd = _absurd(baseline, policy)
    return absurd and f"the baseline's {absurd}"


def _too_little(evidences: Sequence[Evidence]) -> str | None:
    """The first case's shortage, where no case has samples enough."""
    short = [next((finding for finding in case.findings if finding.code == "too_few"), None) for case in evidences]
    if all(finding is not None for finding in short) and short[0] is not None:
        return f"too few samples: {evidences[0].id} has {short[0].message}"
    return None


def _notes(record: RunRecord, baseline: RunRecord) -> list[str]:
    """What limits a comparison with a baseline, for people."""
    known = {case.id for case in baseline.cases}
    missing = [case.id for case in record.cases if case.id not in known]
    notes = [f"not in the baseline: {', '.join(missing)}"] if missing else []
    if not (record.environment.device.name and baseline.environment.device.name):
        notes.append("whether both were measured on one kind of device is not known")
    return notes


def _overall(cases: Sequence[CaseVerdict]) -> Outcome:
    """A regression anywhere decides. An improvement needs every other case to be shown faster or the same."""
    outcomes = {case.verdict for case in cases}
    doubtful = [
        case for case in cases if case.verdict is Outcome.INCONCLUSIVE and case.direction is not Direction.FASTER
    ]
    if Outcome.REGRESSED in outcomes:
        return Outcome.REGRESSED
    if Outcome.IMPROVED in outcomes and not doubtful:
        return Outcome.IMPROVED
    return Outcome.INCONCLUSIVE if outcomes - {Outcome.EQUIVALENT} else Outcome.EQUIVALENT


def _reason(outcome: Outcome, cases: Sequence[CaseVerdict]) -> str:
    """The sentence of the case that decided, and how many there are of each kind."""
    deciding = next(case for case in worst_first(cases) if case.verdict is outcome)
    if len(cases) == 1:
        return deciding.sentence
    counts = Counter(case.verdict for case in cases)
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in Outcome if counts[kind])
    return f"{deciding.id}: {deciding.sentence}; of {len(cases)} cases {kinds}"


def worst_first(cases: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    """Regressions before what cannot be told, before improvements, before the unchanged; the slowest first in each."""
    ranks = [Outcome.REGRESSED, Outcome.INCONCLUSIVE, Outcome.IMPROVED, Outcome.EQUIVALENT]
    return sorted(cases, key=lambda case: (ranks.index(case.verdict), -(case.change_pct or 0.0)))


# ---- the cases of a record -------------------------------------------------------------------------------------------


def _without_estimate(case: Evidence) -> CaseVerdict:
    found = case.disqualified
    return CaseVerdict(
        id=case.id,
        verdict=Outcome.INCONCLUSIVE,
        direction=Direction.NONE,
        sentence=f"cannot tell: {found.message if found else 'nothing was measured'}",
        change_pct=None,
        interval_pct=None,
        p=None,
        cliffs_delta=None,
        minimum_detectable_pct=None,
        mann_whitney_p=None,
        bootstrap_pct=None,
        base_us=_median(case.base),
        head_us=_median(case.head),
        oracle_us=_median(case.oracle),
        launches=len(case.head),
        rounds=sum(map(len, case.head)),
        per_launch=(),
        findings=case.findings,
    )


def _judge_case(case: Evidence, claim: Inference, policy: Policy) -> CaseVerdict:
    certainty, resampling = policy.certainty, policy.bootstrap
    base, head = np.concatenate(case.base), np.concatenate(case.head)
    delta = stats.cliffs_delta(base, head)
    medians = stats.bootstrap(
        case.base, case.head, case.paired, certainty.interval_level, resampling.resamples, resampling.seed
    )
    outcome = _gate(case, claim, delta, medians, policy)
    low, high = claim.interval(certainty.interval_level)
    return CaseVerdict(
        id=case.id,
        verdict=outcome,
        direction=_direction(claim),
        sentence=_sentence(case, claim, outcome, policy),
        change_pct=percent(claim.pooled.change),
        interval_pct=(percent(low), percent(high)),
        p=claim.p,
        cliffs_delta=delta,
        minimum_detectable_pct=percent(claim.detectable(certainty.power)),
        mann_whitney_p=stats.mann_whitney_p(base, head),
        bootstrap_pct=(percent(medians.change[0]), percent(medians.change[1])),
        base_us=float(np.median(base)),
        head_us=float(np.median(head)),
        oracle_us=_median(case.oracle),
        launches=len(case.head),
        rounds=len(head),
        per_launch=_per_launch(case, certainty.interval_level),
        findings=case.findings,
    )


def _direction(claim: Inference) -> Direction:
    if not claim.certain:
        return Direction.NONE
    return Direction.SLOWER if claim.pooled.change > 0 else Direction.FASTER


def _gate(case: Evidence, claim: Inference, delta: float, medians: BootstrapIntervals, policy: Policy) -> Outcome:
    """The policy's gates, asked only of a difference that is itself certain."""
    if case.disqualified:
        return Outcome.INCONCLUSIVE
    gates = policy.gates
    change = percent(claim.pooled.change)
    shown = claim.certain and claim.p is not None and claim.p < gates.p
    if shown and change > gates.regression_pct and delta >= gates.cliffs_delta and _confirmed(case, policy):
        return Outcome.REGRESSED
    apart = medians.head[1] < medians.base[0]
    if shown and change <= -gates.improvement_pct and -delta >= gates.cliffs_delta and apart:
        return Outcome.IMPROVED
    return Outcome.EQUIVALENT if claim.within(math.log1p(gates.margin_pct / 100)) else Outcome.INCONCLUSIVE


def _confirmed(case: Evidence, policy: Policy) -> bool:
    return case.launches >= policy.launches.to_block


def _per_launch(case: Evidence, level: float) -> tuple[LaunchChange, ...]:
    width = stats.normal_half_width(level)
    return tuple(
        LaunchChange(percent(change), percent(change - width * error), percent(change + width * error))
        for change, error in case.by_launch()
    )


def _median(launches: Sequence[stats.Array]) -> float | None:
    return float(np.median(np.concatenate(launches))) if launches else None


# ---- words -----------------------------------------------------------------------------------------------------------


def _sentence(case: Evidence, claim: Inference, outcome: Outcome, policy: Policy) -> str:
    found = case.disqualified
    if found is not None:
        return f"cannot tell: {found.message}"
    gates = policy.gates
    low, high = (percent(bound) for bound in claim.interval(policy.certainty.interval_level))
    change = percent(claim.pooled.change)
    digits = 2 if high - low < 0.1 else 1
    seen = written(percent(claim.detectable(policy.certainty.power)), digits)
    between = _between(low, high, digits)
    would = f"a change of {seen} would have been seen"
    if not claim.certain:
        if outcome is Outcome.EQUIVALENT:
            return f"no change: within ±{gates.margin_pct:g}%, {between}; {would}"
        return f"cannot tell: {between}; a change below {seen} could go unseen"
    size = f"{written(abs(change), digits)} {_direction(claim)}, {between}"
    if outcome in (Outcome.REGRESSED, Outcome.IMPROVED):
        return f"{size}; {would}"
    if outcome is Outcome.EQUIVALENT:
        return f"{size}: certain, and within ±{gates.margin_pct:g}%; {would}"
    return f"{size}: certain, {_short_of_gate(case, change, policy)}; {would}"


def _short_of_gate(case: Evidence, change: float, policy: Policy) -> str:
    """Why a certain difference is neither a regression nor an improvement."""
    gates = policy.gates
    if change > gates.regression_pct and not _confirmed(case, policy):
        return f"but it takes {policy.launches.to_block} launches to block"
    if 0 < change <= gates.regression_pct:
        return f"but not more than the {gates.regression_pct:g}% that blocks"
    if -gates.improvement_pct < change <= 0:
        return f"but less than the {gates.improvement_pct:g}% that counts as an improvement"
    return "but single times of base and head overlap too much"


def _between(low: float, high: float, digits: int) -> str:
    """The interval in words, small to large where both ends lie on one side."""
    if low > 0:
        return f"between {written(low, digits)} and {written(high, digits)}"
    if high < 0:
        return f"between {written(-high, digits)} and {written(-low, digits)}"
    return f"between {written(-low, digits)} faster and {written(high, digits)} slower"


# ---- stopping --------------------------------------------------------------------------------------------------------


def decided(record: RunRecord, policy: Policy) -> bool:
    """Whether every case is settled, so that more launches would not change what is said: stops `kernelgate bench`.

    True as well at the policy's limit of launches. The levels of `judge` hold however often this was asked.
    """
    if min((len(case.launches) for case in record.cases), default=0) >= policy.launches.limit:
        return True
    if _unfit(record, policy):
        return True
    evidences = [estimate.of_duel(case, record.environment.device, policy) for case in record.cases]
    claimed = claims(evidences, policy)
    return all(claim and _settled(case, claim, policy) for case, claim in zip(evidences, claimed, strict=True))


def _settled(case: Evidence, claim: Inference, policy: Policy) -> bool:
    """Both questions are answered: on which side of each gate the change lies, and in which direction, if in any."""
    if case.disqualified:
        return False
    gates = policy.gates
    low, high = claim.likely_interval()
    blocks, improves = math.log1p(gates.regression_pct / 100), math.log1p(-gates.improvement_pct / 100)
    if any(low <= gate <= high for gate in (blocks, improves)) or (low > blocks and not _confirmed(case, policy)):
        return False
    resolution = math.log1p(policy.certainty.resolution_pct / 100)
    return claim.certain or (-resolution < low and high < resolution)
