"""What the checks of patterns look at: a session's events, a run record, what doctor wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CaseKey, RunRecord, rates, timed_cases
from kernelgate.ci.explain import next_step
from kernelgate.ci.explain.next_step import LaunchShare
from kernelgate.ci.judge import reference
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import log, state
from kernelgate.ci.policy.policy import Policy

PATTERNS_SILENT_S: Final = 120.0
"""A command of a session that printed nothing for so long went against the pattern cadence: a report every 2 to 3
minutes."""


@dataclass(frozen=True)
class DoctorFinding:
    """One of `kernelgate doctor --json`'s checks that did not pass."""

    name: str
    failed: bool
    """Else a warning."""
    found: str


@dataclass(frozen=True)
class JudgedTimes:
    """What a judged record says of its head's speed. A case whose times prove nothing is in neither."""

    speedups: Mapping[str, float] = field(default_factory=dict)
    """By case: how many times as fast as the reference."""
    launch_shares: Mapping[str, float] = field(default_factory=dict)
    """By case: the launch's part of a call, from 0 to 1, where a graph's replay was timed."""


@dataclass(frozen=True)
class Thresholds:
    """The policy's."""

    stop_below: float
    profile_below: float
    launch_share: float
    build_minutes: float
    silent_s: float


@dataclass(frozen=True)
class Seen:
    """What is known now. What was not looked at is empty, and lets no pattern apply."""

    findings: tuple[DoctorFinding, ...] = ()
    record: RunRecord | None = None
    times: JudgedTimes = JudgedTimes()
    events: tuple[log.Event, ...] = ()

    def gates(self, name: log.GateName) -> tuple[log.GateAttempt, ...]:
        return tuple(one for one in self.events if isinstance(one, log.GateAttempt) and one.gate == name)

    @property
    def opened(self) -> log.Opened | None:
        return next((one for one in self.events if isinstance(one, log.Opened)), None)

    @property
    def tries(self) -> tuple[log.TriedChange, ...]:
        return tuple(one for one in self.events if isinstance(one, log.TriedChange))


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
        next_step.PROFILE_BELOW,
        next_step.LAUNCH_SHARE,
        state.BISECT_AFTER_MINUTES,
        PATTERNS_SILENT_S,
    )


def _named(key: CaseKey) -> str:
    return f"{key.card}/{key.id}" if key.card else key.id
