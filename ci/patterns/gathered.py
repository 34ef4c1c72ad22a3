"""Gathers what the checks of patterns look at, from files: a session's log, a run record, what doctor wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelgate.bench import rates
from kernelgate.bench.errors import KernelgateError, UsageError, faults
from kernelgate.bench.record import CaseKey, RunRecord, timed_cases
from kernelgate.ci.explain.launch import LaunchShare
from kernelgate.ci.judge import reference
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.patterns.seen import DoctorFinding, JudgedTimes, Thresholds
from kernelgate.ci.sessions import log

SESSIONS = Path(".ci/sessions")


class SessionLogError(KernelgateError):
    """A session's log is missing or broken."""


def events(checkout: Path, name: str) -> tuple[log.Event, ...]:
    """Raises SessionLogError, which names file and line; UsageError for a name that cannot be a session's."""
    if not name or name in (".", "..") or "/" in name:
        raise UsageError(f"{name!r} is no name of a session: they are the folders of {SESSIONS}/")
    path = checkout / SESSIONS / name / log.FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        known = ", ".join(sessions(checkout)) or "there are none"
        raise SessionLogError(f"there is no session {name!r} in {SESSIONS}/: {known}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SessionLogError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return tuple(_event(path, number, text) for number, text in enumerate(lines, 1) if text.strip())


def sessions(checkout: Path) -> tuple[str, ...]:
    """The names of all sessions of a checkout, in their order."""
    return tuple(sorted(path.parent.name for path in (checkout / SESSIONS).glob(f"*/{log.FILE}")))


def open_sessions(checkout: Path) -> tuple[str, ...]:
    """Those that were measured here and not closed. Raises SessionLogError."""
    found = {name: events(checkout, name) for name in sessions(checkout)}
    return tuple(name for name, said in found.items() if _is_open(said))


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
        policy.patterns.build_minutes,
    )


def _is_open(said: Sequence[log.Event]) -> bool:
    recorded = any(isinstance(one, log.Opened) and one.source == "recorded" for one in said)
    return not recorded and not any(isinstance(one, log.Closed) for one in said)


def _event(path: Path, number: int, text: str) -> log.Event:
    try:
        return log.event_of(text)
    except ValidationError as error:
        raise SessionLogError(f"{path}:{number}: {faults(error)}") from None


def _named(key: CaseKey) -> str:
    return f"{key.card}/{key.id}" if key.card else key.id
