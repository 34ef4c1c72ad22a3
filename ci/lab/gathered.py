"""Gathers what the checks of patterns look at, from files: a run record, what doctor wrote."""

from __future__ import annotations

import json
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CaseKey, RunRecord, rates, timed_cases
from kernelgate.ci.explain.next_step import LaunchShare
from kernelgate.ci.judge import reference
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab.seen import DoctorFinding, JudgedTimes, Thresholds
from kernelgate.ci.policy.policy import Policy


def doctor(path: Path) -> tuple[DoctorFinding, ...]:
    """What did not pass in a file that `kernelgate doctor --output` wrote. Raises KernelgateError."""
    try:
        checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
        found = [(str(one["name"]), str(one["level"]), str(one["found"])) for one in checks]
    except OSError as error:
        raise KernelgateError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise KernelgateError(f"{path} is not what `kernelgate doctor --output {path}` writes") from None
    return tuple(DoctorFinding(name, level == "failed", said) for name, level, said in found if level != "passed")


def times(record: RunRecord, policy: Policy) -> JudgedTimes:
    """What a record proves of its head's speed, by the judge that decides verdicts."""
    verdict = judge(record, policy)
    cases = () if verdict.refused is not None else verdict.cases
    by_case = {_named(one.key): reference.times(one) for one in cases}
    heads = ((case.key, rates.rate(case, "head")) for case in timed_cases(record))
    shares = {
        _named(key): LaunchShare(one.p50_us, one.graph_us)
        for key, one in heads
        if one is not None and one.graph_us is not None
    }
    return JudgedTimes(
        {case: value for case, value in by_case.items() if value is not None},
        {case: one.launch_us / one.call_us for case, one in shares.items()},
    )


def thresholds(policy: Policy) -> Thresholds:
    return Thresholds(
        policy.gates.reference_min,
        policy.guidance.profile_below,
        policy.guidance.launch_share,
        policy.session.bisect_after_minutes,
        policy.patterns.silent_s,
    )


def _named(key: CaseKey) -> str:
    return f"{key.card}/{key.id}" if key.card else key.id
