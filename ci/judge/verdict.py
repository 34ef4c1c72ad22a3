"""The verdict: the one place where a run record gets its outcome, such as improved, slower or inconclusive."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import TypeAdapter

from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record import CaseKey, RunRecord, TimedCase, rates, read, timed_cases
from kernelgate.ci.document.formatting import as_percent, counted, plain
from kernelgate.ci.judge import baseline_age, cards, correctness, estimate, inference, prior, sentences, stats, validity
from kernelgate.ci.judge.case import (
    CERTAIN,
    CaseVerdict,
    Outcome,
    ProcessChange,
    RecordVerdict,
    Speeds,
    Status,
    overall,
)
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims, within_gates
from kernelgate.ci.judge.prior import NO_HISTORY, History, Past, no_past
from kernelgate.ci.judge.stats import INTERVAL_LEVEL
from kernelgate.ci.judge.witness import contradicted
from kernelgate.ci.policy.policy import Policy

CLIFFS_DELTA: Final = 0.3
"""Both gates require an effect of at least this size: Cliff's delta of single samples."""
SHORTEST_US: Final = 1e-3
LONGEST_US: Final = 1e10
"""A record with a time outside of these limits is refused."""
SEVERITY: Final = (1, 3, 2, 0)
"""Exit codes of single records, the worst first: a regression, what could not be told, what no gate acts on."""
NOTHING_TO_COMPARE = "nothing to compare: base and head compile to the same library"


def compare(
    paths: Sequence[Path], policy: Policy, baseline: Path | None = None, past: Past = no_past
) -> Iterator[tuple[RecordVerdict, RunRecord | None]]:
    """The verdict on each file, with its record. Raises RecordError where the baseline cannot be read."""
    stored = read(baseline) if baseline else None
    against = str(baseline) if baseline else "base"
    for path in paths:
        try:
            run = read(path)
        except RecordError as error:
            yield _refused(str(path), str(error), against), None
        else:
            yield judge(run, policy, stored, str(path), against, past(run)), run


def _refused(name: str, why: str, against: str) -> RecordVerdict:
    return RecordVerdict(name, Outcome.INCONCLUSIVE, f"cannot be judged: {why}", (), why, against)


def judge(
    record: RunRecord,
    policy: Policy,
    baseline: RunRecord | None = None,
    name: str = "record",
    against: str = "base",
    history: History = NO_HISTORY,
) -> RecordVerdict:
    """The verdict on `record`: its head against its own base, or against the heads of `baseline`, named `against`. What
    cannot be judged is refused in the verdict."""
    refused = unfit(record) or (_mismatch(record, baseline) if baseline else None)
    if refused is not None:
        return _refused(name, refused, against)
    if not cards.compared(record):
        return RecordVerdict(name, Outcome.EQUIVALENT, NOTHING_TO_COMPARE, (), None, against)
    notes: list[str] = []
    differs = baseline_age.between(record, baseline) if baseline else ()
    if baseline is None:
        evidences = estimate.of_record(record, policy, history)
    else:
        device, stored = record.environment.device, _stored(record, baseline)
        days = {key: prior.known_days(baseline, key, history, device) for key in stored}
        drifts = {key: prior.drift(days[key], bool(differs)) for key in days}
        evidences = [estimate.of_baseline(*both, device, policy, drifts[key]) for key, both in stored.items()]
        missing = ", ".join(case.id for case in cards.compared(record) if case.key not in days)
        notes = [f"not in the baseline: {missing}"] if missing else []
        notes += [] if differs else prior.drift_notes(list(days.values()))
    found = [{one.code: one.message for one in case.findings} for case in evidences]
    if all("too_few" in one and correctness.BASE_WRONG not in one for one in found):
        refused = f"too few samples: {evidences[0].key.id} has {found[0]['too_few']}"
        return replace(_refused(name, refused, against), too_short=True)
    claimed = claims(evidences, policy)
    cases = tuple(_judge_case(case, claim, policy) for case, claim in zip(evidences, claimed, strict=True))
    means = inference.mean_verdicts(evidences, claimed, policy)
    outcome = overall(cases, means)
    first = [baseline_age.words(differs)] if differs else []
    reason = "; ".join([*first, sentences.of_record(outcome, cases, means), *notes])
    sha = baseline.run.head_sha if baseline else None
    return RecordVerdict(name, outcome, reason, cases, None, against, means, apart=differs, against_sha=sha)


def exit_code(verdict: RecordVerdict, conclusion: str | None = None) -> int:
    """0 improved · 1 regressed, or something else blocks · 2 no gate acts · 3 not told, likely at most, or held."""
    decided = {"failure": 1, "action_required": 3}.get(conclusion or "")
    acts = {Outcome.IMPROVED: 0, Outcome.REGRESSED: 1}
    return decided or acts.get(verdict.verdict, 2 if verdict.verdict in CERTAIN else 3)


def as_json(verdict: RecordVerdict) -> str:
    """One line of JSON."""
    whole = TypeAdapter(RecordVerdict).dump_python(verdict, mode="json", by_alias=True)
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


def unfit(record: RunRecord) -> str | None:
    if not cards.compared(record) and not cards.nothing_differs(record):
        return "the record holds no cases"
    if record.fuzz and record.fuzz.status == "failed":
        failed = sum(result.fails for result in record.fuzz.results)
        count = f"{failed} of {counted(len(record.fuzz.results), 'fuzz case')} failed" if failed else "fuzzing failed"
        return f"wrong result: {count}; speed was not judged"
    for key, finding in correctness.wrong_outputs(record).items():
        return f"wrong result: {key.id}: {finding.message}; speed was not judged"
    return _absurd(record)


def _absurd(record: RunRecord) -> str | None:
    """The first time that no kernel and no clock give, or the first that were copied or computed."""
    for case in timed_cases(record):
        for samples in filter(None, (one for process in case.processes for one in process.samples_us.values())):
            odd = min(samples) if min(samples) < SHORTEST_US else max(samples)
            if not SHORTEST_US <= odd <= LONGEST_US:
                held, shortest, longest = map(plain, (odd, SHORTEST_US, LONGEST_US))
                return f"{case.id} holds a time of {held} µs; times lie between {shortest} and {longest} µs"
    return validity.duplicated(timed_cases(record, correctness.CHECKED))


def _mismatch(record: RunRecord, baseline: RunRecord) -> str | None:
    here, there, said = record.environment, baseline.environment, "the baseline was measured"
    if here.device.name and there.device.name and here.device.name != there.device.name:
        sides = f"on {there.device.name}, this record on {here.device.name}"
        return f"{said} {sides}: times of different devices are not compared"
    if here.numerics and there.numerics and here.numerics != there.numerics:
        return f"{said} with {there.numerics.words}, this record with {here.numerics.words}: they are not compared"
    if not _stored(record, baseline):
        told = ([f"{one.key.card}/{one.id}".lstrip("/") for one in cards.compared(side)] for side in (record, baseline))
        ids, known = (", ".join(names) or "none" for names in told)
        return f"the baseline has other cases: it holds {known}; this record holds {ids}"
    odd = _absurd(baseline)
    return odd and f"the baseline's {odd}"


def _stored(record: RunRecord, baseline: RunRecord) -> dict[CaseKey, tuple[TimedCase, TimedCase]]:
    """Each case of the record with the baseline's of the same card and id; an old baseline names no card."""
    known = {case.key: case for case in timed_cases(baseline)}
    return {
        case.key: (case, was)
        for case in cards.compared(record)
        if (was := known.get(case.key) or known.get(CaseKey("", case.id)))
    }


def _judge_case(case: Evidence, claim: Inference | None, policy: Policy) -> CaseVerdict:
    verdict = CaseVerdict(
        card=case.key.card,
        id=case.key.id,
        status=Status.ALONE if case.alone else Status.UNDECIDED,
        base_us=rates.typical_us(case.base),
        head_us=rates.typical_us(case.head),
        reference_us=rates.typical_us(case.reference),
        processes=len(case.head),
        rounds=sum(map(len, case.head)),
        findings=case.findings,
    )
    if claim is not None:
        base, head = np.concatenate(case.base), np.concatenate(case.head)
        delta = stats.cliffs_delta(base, head)
        medians = stats.bootstrap(case.base, case.head, case.paired, INTERVAL_LEVEL)
        low, high = claim.interval()
        base_us, head_us = estimate.typical_times(case, claim.pooled.change)
        width = stats.normal_half_width(INTERVAL_LEVEL)
        status = _status(case, claim, delta, medians, policy)
        untold, seen = claim.early and status is Status.UNCHANGED, claim.detectable()
        bimodal = any(found.code == validity.BIMODAL and found.disqualifies for found in case.findings)
        sides = (("base", case.base), ("head", case.head)) if bimodal else ()
        verdict = replace(
            verdict,
            status=status,
            direction=claim.direction,
            change_pct=as_percent(claim.pooled.change),
            interval_pct=(as_percent(low), as_percent(high)),
            p=claim.p,
            cliffs_delta=delta,
            minimum_detectable_pct=None if untold or not math.isfinite(seen) else as_percent(seen),
            mann_whitney_p=stats.mann_whitney_p(base, head),
            bootstrap_pct=(as_percent(medians.change[0]), as_percent(medians.change[1])),
            base_us=base_us,
            head_us=head_us,
            per_process=tuple(
                ProcessChange(*map(as_percent, (change, change - width * error, change + width * error)))
                for change, error in case.by_process()
            ),
            speeds=tuple(Speeds(side, validity.speeds_us(times)) for side, times in sides),
        )
    return replace(verdict, sentence=sentences.of_case(verdict, policy))


def _status(
    case: Evidence, claim: Inference, delta: float, medians: stats.BootstrapIntervals, policy: Policy
) -> Status:
    """The policy's gates, asked only of a difference that is itself certain."""
    if case.disqualified:
        return Status.UNDECIDED
    gates = policy.gates
    change = as_percent(claim.pooled.change)
    if claim.shown and change > gates.regression_pct and delta >= CLIFFS_DELTA:
        return Status.REGRESSED if case.processes >= policy.processes.to_block else Status.LIKELY_SLOWER
    apart = medians.head[1] < medians.base[0]
    # Where the witness saw another gain, the least that it may be counts.
    gain = as_percent(claim.interval()[1]) if contradicted(case.findings) else change
    if claim.shown and gain <= -gates.improvement_pct and -delta >= CLIFFS_DELTA and apart:
        return Status.IMPROVED
    status = within_gates(claim, gates)
    return claim.likely(gates.regression_pct, gates.improvement_pct) if status is Status.UNDECIDED else status
