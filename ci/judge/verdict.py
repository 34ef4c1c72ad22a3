"""The verdict: the one place where a run record gets its outcome, such as improved, slower or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kernelgate.bench.record import BaselineDay, CaseKey, Device, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document.formatting import counted, plain
from kernelgate.ci.judge import cards, copies, days, estimate, modes, outputs, sentences, stats, together
from kernelgate.ci.judge.bootstrap import BootstrapIntervals, bootstrap
from kernelgate.ci.judge.case import (
    CaseVerdict,
    Direction,
    Outcome,
    ProcessChange,
    RecordVerdict,
    Speeds,
    Status,
    overall,
    worst_first,
)
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.history import NO_HISTORY, History, known_days
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.stats import GATES_P, INTERVAL_LEVEL
from kernelgate.ci.judge.validity import Finding, percent
from kernelgate.ci.policy.policy import Policy

__all__ = [
    "CaseVerdict",
    "Direction",
    "Finding",
    "Outcome",
    "ProcessChange",
    "RecordVerdict",
    "Status",
    "exit_code",
    "judge",
    "worst_first",
]

CLIFFS_DELTA: Final = 0.3
"""Both gates require an effect of at least this size: Cliff's delta of single samples."""
SHORTEST_US: Final = 1e-3
LONGEST_US: Final = 1e10
"""A record with a time outside of these limits is refused."""
NOTHING_TO_COMPARE = "nothing to compare: base and head compile to the same library"

# ---- one record ------------------------------------------------------------------------------------------------------


def judge(
    record: RunRecord,
    policy: Policy,
    baseline: RunRecord | None = None,
    name: str = "record",
    against: str = "base",
    history: History = NO_HISTORY,
) -> RecordVerdict:
    """The verdict on `record`: its head against its own base, or against the heads of `baseline`, named `against`.

    `history`: of earlier measurements, as `bench` had it when it stopped.

    Never raises for what a record holds: what cannot be judged is refused in the verdict, with the reason.
    """
    stored = dict(_stored(record, baseline)) if baseline else {}
    timed = cards.compared(record)
    refused = unfit(record) or (_mismatch(record, baseline) if baseline else None)
    if refused is None and not timed:
        return RecordVerdict(name, Outcome.EQUIVALENT, NOTHING_TO_COMPARE, (), None, against)
    if refused is None:
        device = record.environment.device
        evidences = (
            [
                estimate.of_baseline(case, was, device, policy, _days(baseline, case.key, device, history))
                for case in timed
                if (was := stored.get(case.key))
            ]
            if baseline
            else estimate.of_record(record, policy, history)
        )
        refused = _too_little(evidences)
    if refused is not None:
        return RecordVerdict(name, Outcome.INCONCLUSIVE, f"cannot be judged: {refused}", (), refused, against)
    claimed = claims(evidences, policy)
    cases = tuple(
        _judge_case(case, claim, policy) if claim else _without_estimate(case, policy)
        for case, claim in zip(evidences, claimed, strict=True)
    )
    means = together.verdicts(evidences, claimed, policy)
    outcome = overall(cases, means)
    notes = _notes(record, baseline, history) if baseline else []
    reason = "; ".join([sentences.of_record(outcome, cases, means), *notes])
    return RecordVerdict(name, outcome, reason, cases, None, against, means)


def exit_code(verdict: RecordVerdict) -> int:
    """0 improved · 1 regressed · 2 no gate acts: equivalent, slower or faster · 3 it could not be told."""
    return {Outcome.IMPROVED: 0, Outcome.REGRESSED: 1, Outcome.INCONCLUSIVE: 3}.get(verdict.verdict, 2)


def unfit(record: RunRecord) -> str | None:
    """Why nothing in the record may be judged."""
    if not cards.compared(record) and not cards.nothing_differs(record):
        return "the record holds no cases"
    if record.fuzz and record.fuzz.status == "failed":
        failed = sum(not result.passed for result in record.fuzz.results)
        count = f"{failed} of {counted(len(record.fuzz.results), 'fuzz case')} failed" if failed else "fuzzing failed"
        return f"wrong result: {count}; speed was not judged"
    for key, finding in outputs.wrong_outputs(record).items():
        return f"wrong result: {key.id}: {finding.message}; speed was not judged"
    return _absurd(record) or copies.copied(record)


def _absurd(record: RunRecord) -> str | None:
    """The first time that no kernel and no clock give."""
    shortest, longest = SHORTEST_US, LONGEST_US
    for case in timed_cases(record):
        for samples in (samples for process in case.processes for samples in process.samples_us.values() if samples):
            if not shortest <= min(samples) <= max(samples) <= longest:
                odd = min(samples) if min(samples) < shortest else max(samples)
                held, *ends = map(plain, (odd, shortest, longest))
                return f"{case.id} holds a time of {held} µs; times lie between {ends[0]} and {ends[1]} µs"
    return None


def _mismatch(record: RunRecord, baseline: RunRecord) -> str | None:
    """Why the record cannot be compared with this baseline."""
    now, was = record.environment.device.name, baseline.environment.device.name
    if now and was and now != was:
        return f"the baseline was measured on {was}, this record on {now}: times of different devices are not compared"
    set_now, set_then = record.environment.numerics, baseline.environment.numerics
    if set_now and set_then and set_now != set_then:
        return (
            f"the baseline was measured with {set_then.words}, this record with {set_now.words}: they are not compared"
        )
    if not list(_stored(record, baseline)):
        ids, known = (", ".join(case.id for case in cards.compared(one)) or "none" for one in (record, baseline))
        return f"the baseline has other cases: it holds {known}; this record holds {ids}"
    odd = _absurd(baseline) or copies.copied(baseline)
    return odd and f"the baseline's {odd}"


def _stored(record: RunRecord, baseline: RunRecord) -> Iterator[tuple[CaseKey, TimedCase]]:
    """Each case of the record with the baseline's of the same card and id; an old baseline names no card."""
    known = {case.key: case for case in timed_cases(baseline)}
    for case in cards.compared(record):
        found = known.get(case.key) or known.get(CaseKey("", case.id))
        if found is not None:
            yield case.key, found


def _too_little(evidences: Sequence[Evidence]) -> str | None:
    """The first case's shortage, where no case has samples enough."""
    short = [next((finding for finding in case.findings if finding.code == "too_few"), None) for case in evidences]
    if all(finding is not None for finding in short) and short[0] is not None:
        return f"too few samples: {evidences[0].key.id} has {short[0].message}"
    return None


def _days(baseline: RunRecord, key: CaseKey, device: Device, history: History) -> Sequence[BaselineDay]:
    """Of one code: as the baseline kept them, or as the history has them."""
    return days.tell_most(days.of_case(baseline, key), known_days(history, device, key))


def _notes(record: RunRecord, baseline: RunRecord, history: History) -> list[str]:
    """What limits a comparison with a baseline, for people."""
    known = dict(_stored(record, baseline))
    missing = [case.id for case in cards.compared(record) if case.key not in known]
    notes = [f"not in the baseline: {', '.join(missing)}"] if missing else []
    if not (record.environment.device.name and baseline.environment.device.name):
        notes.append("whether both were measured on one kind of device is not known")
    device = record.environment.device
    held = [_days(baseline, key, device, history) for key in known]
    return notes + days.notes(held)


# ---- the cases of a record -------------------------------------------------------------------------------------------


def _without_estimate(case: Evidence, policy: Policy) -> CaseVerdict:
    verdict = CaseVerdict(
        card=case.key.card,
        id=case.key.id,
        status=Status.ALONE if _is_alone(case) else Status.UNDECIDED,
        direction=Direction.NONE,
        sentence="",
        change_pct=None,
        interval_pct=None,
        p=None,
        cliffs_delta=None,
        minimum_detectable_pct=None,
        mann_whitney_p=None,
        bootstrap_pct=None,
        base_us=_median(case.base),
        head_us=_median(case.head),
        reference_us=_median(case.reference),
        processes=len(case.head),
        rounds=sum(map(len, case.head)),
        per_process=(),
        findings=case.findings,
    )
    return replace(verdict, sentence=sentences.of_case(verdict, policy))


def _is_alone(case: Evidence) -> bool:
    return any(finding.code == cards.HEAD_ALONE for finding in case.findings)


def _judge_case(case: Evidence, claim: Inference, policy: Policy) -> CaseVerdict:
    base, head = np.concatenate(case.base), np.concatenate(case.head)
    delta = stats.cliffs_delta(base, head)
    medians = bootstrap(case.base, case.head, case.paired, INTERVAL_LEVEL)
    low, high = claim.interval(INTERVAL_LEVEL)
    base_us, head_us = estimate.typical_times(case, claim.pooled.change)
    verdict = CaseVerdict(
        card=case.key.card,
        id=case.key.id,
        status=_status(case, claim, delta, medians, policy),
        direction=_direction(claim),
        sentence="",
        change_pct=percent(claim.pooled.change),
        interval_pct=(percent(low), percent(high)),
        p=claim.p,
        cliffs_delta=delta,
        minimum_detectable_pct=None if claim.look.early else percent(claim.detectable()),
        mann_whitney_p=stats.mann_whitney_p(base, head),
        bootstrap_pct=(percent(medians.change[0]), percent(medians.change[1])),
        base_us=base_us,
        head_us=head_us,
        reference_us=_median(case.reference),
        processes=len(case.head),
        rounds=len(head),
        per_process=_per_process(case, INTERVAL_LEVEL),
        findings=case.findings,
        speeds=_speeds(case),
    )
    return replace(verdict, sentence=sentences.of_case(verdict, policy))


def _speeds(case: Evidence) -> tuple[Speeds, ...]:
    """Where two modes are why nothing can be told: those of both sides."""
    if not any(found.code == modes.BIMODAL and found.disqualifies for found in case.findings):
        return ()
    return tuple(Speeds(side, modes.speeds_us(times)) for side, times in (("base", case.base), ("head", case.head)))


def _direction(claim: Inference) -> Direction:
    if not claim.certain:
        return Direction.NONE
    return Direction.SLOWER if claim.pooled.change > 0 else Direction.FASTER


def _status(case: Evidence, claim: Inference, delta: float, medians: BootstrapIntervals, policy: Policy) -> Status:
    """The policy's gates, asked only of a difference that is itself certain."""
    if case.disqualified:
        return Status.UNDECIDED
    gates = policy.gates
    change = percent(claim.pooled.change)
    shown = claim.certain and claim.p is not None and claim.p < GATES_P
    if shown and change > gates.regression_pct and delta >= CLIFFS_DELTA:
        return Status.REGRESSED if confirmed(case, policy) else Status.UNCONFIRMED
    apart = medians.head[1] < medians.base[0]
    if shown and change <= -gates.improvement_pct and -delta >= CLIFFS_DELTA and apart:
        return Status.IMPROVED
    if claim.within(math.log1p(gates.margin_pct / 100)):
        return Status.UNCHANGED
    if not claim.certain:
        return Status.UNDECIDED
    return Status.SLOWER if change > 0 else Status.FASTER


def confirmed(case: Evidence, policy: Policy) -> bool:
    return case.processes >= policy.processes.to_block


def _per_process(case: Evidence, level: float) -> tuple[ProcessChange, ...]:
    width = stats.normal_half_width(level)
    return tuple(
        ProcessChange(percent(change), percent(change - width * error), percent(change + width * error))
        for change, error in case.by_process()
    )


def _median(processes: Sequence[stats.Array]) -> float | None:
    return stats.pooled_median(processes) if processes else None
