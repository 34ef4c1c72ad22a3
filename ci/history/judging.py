"""From a run record to what the history keeps of it: judged once by the policy, by its own processes alone, and by
nothing that may be learnt later."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np

from kernelgate.bench.record import RunRecord, TimedCase, TimedProcess
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.history.entry import SCHEMA, CaseEntry, ComparisonEntry, Entry, PointEntry
from kernelgate.ci.judge import cards, estimate, location
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.prior import seen
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy, every_constant

JUDGING = {"certainty", "gates", "processes"}
"""The sections of the policy that a verdict depends on."""
JUDGES = {
    *("cards", "case", "correctness", "dependence", "estimate", "inference"),
    *("location", "prior", "stats", "validity", "verdict", "witness"),
}
"""The modules of ci/judge that a verdict is computed by. The others word it, or decide what else a merge is held to."""
PINNED = "commit:"


def rules_of(policy: Policy) -> str:
    """Names what a record is judged by: the same for policies that give every record the same verdict."""
    sources = {f"ci/judge/{module}.py" for module in JUDGES}
    numbers = [(one.name, one.value) for one in every_constant() if one.source in sources]
    asked = f"{SCHEMA} {policy.model_dump_json(include=JUDGING)} {numbers}"
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def judged(name: str, record: RunRecord, policy: Policy) -> Entry:
    """The entry of the record that has this name. One that cannot be judged has no cases, and says why."""
    verdict = judge(record, policy)
    cases: tuple[CaseEntry, ...] = ()
    if verdict.refused is None:
        evidences = estimate.of_record(record, policy)
        verdicts = {one.key: one for one in verdict.cases}
        cases = tuple(
            _case(timed, evidence, claim, verdicts[timed.key], record)
            for timed, evidence, claim in zip(cards.compared(record), evidences, claims(evidences, policy), strict=True)
            if timed.key in verdicts
        )
    return Entry(
        name=name,
        rules=rules_of(policy),
        run=record.run,
        environment=record.environment,
        outcome=verdict.verdict.value,
        reason=verdict.reason,
        cases=cases,
        costs=record.costs,
    )


def _case(
    timed: TimedCase, evidence: Evidence, claim: Inference | None, verdict: CaseVerdict, record: RunRecord
) -> CaseEntry:
    kept = set(evidence.process_ids)
    used = [one for one in timed.processes if not kept or one.process.id in kept]
    commits = {"base": record.run.base_sha, "head": record.run.head_sha, "reference": None}
    sides = sorted({side for one in used for side, samples in one.samples_us.items() if samples})
    compared = [*_judged(evidence, claim, verdict, record), *_pinned(used, sides, record.run.head_sha)]
    reference = next((card.reference for card in record.cards if card.name == timed.case.card), None)
    odd = next((one for one in verdict.disqualifying if one.code != cards.HEAD_ALONE), None)
    return CaseEntry(
        card=timed.case.card,
        case=timed.id,
        points=tuple(_point(side, commits.get(side, side.removeprefix(PINNED)), used) for side in sides),
        comparisons=tuple(compared),
        reference=reference,
        finding=odd.message if odd else None,
    )


def _point(side: str, commit: str | None, used: Sequence[TimedProcess]) -> PointEntry:
    times = [np.log(samples) for one in used if (samples := one.samples_us.get(side))]
    level, error, _ = _over_processes(np.array([np.median(samples) for samples in times]))
    rounds = sum(map(len, times))
    return PointEntry(side=side, commit=commit, us=math.exp(level), error=error, processes=len(times), rounds=rounds)


def _judged(
    evidence: Evidence, claim: Inference | None, verdict: CaseVerdict, record: RunRecord
) -> Iterator[ComparisonEntry]:
    if claim is None or record.run.base_sha is None:
        return
    group = evidence.groups[0]
    scatter = seen(group.values, group.variances, None) if evidence.paired and group.processes > 1 else None
    error, interval = claim.pooled.error, verdict.interval_pct
    yield ComparisonEntry(
        base=record.run.base_sha,
        head=record.run.head_sha,
        effect=claim.pooled.change,
        error=error if math.isfinite(error) else None,
        spread_pct=scatter.spread_pct if scatter else None,
        noise_pct=scatter.noise_pct if scatter else None,
        processes=evidence.processes,
        status=verdict.status.name.lower(),
        interval_pct=interval if interval and all(map(math.isfinite, interval)) else None,
    )


def _pinned(used: Sequence[TimedProcess], sides: Sequence[str], head: str | None) -> Iterator[ComparisonEntry]:
    """Of the head and each commit that ran beside it with right results: over processes, the median ratio of rounds."""
    for side in (one for one in sides if one.startswith(PINNED)):
        right = (one for one in used if not ((calls := one.timing.calls.get(side)) and calls.failed))
        both = [one.samples_us for one in right if one.samples_us.get(side) and one.samples_us.get("head")]
        if both:
            ratios = [np.median(np.log(times["head"]) - np.log(times[side])) for times in both]
            effect, error, spread = _over_processes(np.array(ratios))
            noise = _noise([times[side] for times in both], [times["head"] for times in both])
            yield ComparisonEntry(
                base=side.removeprefix(PINNED),
                head=head,
                effect=effect,
                error=error,
                spread_pct=None if spread is None else as_percent(spread),
                noise_pct=None if spread is None else as_percent(noise),
                processes=len(both),
            )


def _noise(base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]) -> float:
    """How far processes would scatter by the noise of their rounds alone."""
    step = max(location.log_step(np.concatenate(side)) for side in (base, head))
    changes = location.changes([np.log(one) for one in base], [np.log(one) for one in head], True, step)
    return math.sqrt(float(np.mean([one.variance for one in changes])))


def _over_processes(values: Array) -> tuple[float, float | None, float | None]:
    """The mean, its standard error, and the standard deviation between processes; a single one shows neither."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    spread = float(np.std(values, ddof=1))
    return mean, spread / math.sqrt(len(values)), spread
