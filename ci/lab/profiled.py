"""What a profile says before a change: the profiled kernel of a file, and of the last kept state of a session."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.explain import ncu_reader
from kernelgate.ci.explain import analyze, recommend
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.lab import advice, coming, folder
from kernelgate.ci.lab.advice import Recommended
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, TriedChange, tries
from kernelgate.ci.lab.state import AdviceAtHand, SessionState
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import why

PROFILE = "profile"
"""The folder of the profiler's reports, of the gate and of each try."""


def read(source: Path, case: str | None) -> Analysis:
    """The launch that takes longest; of a record the head's, and that of the case where one is named.

    Raises KernelgateError where nothing was profiled or the file cannot be read, UsageError for a report's case.
    """
    if ncu_reader.is_report(source):
        if case is not None:
            raise UsageError("--case is for run records: a report does not say which case it is of")
        return longest(analyze.analyze(source))
    found = [one for one in why.both_sides(record.read(source)) if case in (None, one.key.id)]
    if not found:
        of = f"of {case} " if case else ""
        raise KernelgateError(f"{source} holds no profile {of}of the head: kernelgate profile --record {source}")
    return longest(analyze.analyze_kernel(one.head) for one in found)


def longest(analyses: Iterable[Analysis]) -> Analysis:
    """Of the launch that takes the most time."""
    return max(analyses, key=lambda one: one.kernel.figures.get("duration_us", 0.0))


# ---- of a session ----------------------------------------------------------------------------------------------------


def state(session: Session, root: Path, policy: Policy) -> SessionState:
    """The state of a session now, with what is recommended before its next change."""
    found = at_hand(session, root) if session.is_open else None
    return coming.of(session.events, policy, folder.now(), found)


def at_hand(session: Session, root: Path) -> AdviceAtHand | None:
    """What is recommended now; None where there is no profile of the last kept state on this machine.

    A profile that cannot be read is named all the same: `kernelgate recommend` says what is wrong with it.
    """
    source = profile_of(session)
    if source is None:
        return None
    command = f"kernelgate recommend {shlex.quote(os.path.relpath(source))}"
    try:
        found = answer(source, root)
    except KernelgateError:
        return AdviceAtHand(command, None, ())
    return AdviceAtHand(command, found.bottleneck, tuple(one.action for one in found.recommendations))


def answer(source: Path, root: Path) -> Recommended:
    """What `kernelgate recommend` answers of this file. Raises KernelgateError where it cannot be read."""
    return advice.recommend(read(source, None), advice.table(root / folder.FOLDER))


def bottleneck(session: Session) -> str | None:
    """What holds the last kept state back; None where there is no profile of it that can be read."""
    source = profile_of(session)
    try:
        return read(source, None).bottleneck.bottleneck.value if source else None
    except KernelgateError:
        return None


def profile_of(session: Session) -> Path | None:
    """The report, or the record with a profile, of the last kept state; None where there is none."""
    work = session.folder / folder.WORK
    kept = {one.number for one in tries(session.events) if one.decision == "kept"}
    overwritten = False
    for event in reversed(session.events):
        if isinstance(event, TriedChange) and event.number in kept:
            return _of_try(work / f"try-{event.number}")
        if isinstance(event, GateAttempt) and event.gate == "profile" and not event.skipped:
            if event.passed and _is_of_kept(event, session):
                return None if overwritten else newest(work / PROFILE, "*.ncu-rep")
            overwritten = True  # what an earlier attempt left
    return None


def nvidia_gain_pct(session: Session, number: int, action: str | None) -> float | None:
    """What NVIDIA's rules estimated for what an action is against, in the profile of the state before a try.

    In percent of the kernel's time; None where no rule says anything of it, or there is no such profile.
    """
    if action is None:
        return None
    report = newest(session.folder / folder.WORK / f"try-{number}" / PROFILE, "*.base.ncu-rep")
    if report is None:
        return None
    try:
        return recommend.estimate(action, read(report, None).kernel.rules)
    except KernelgateError:
        return None  # of a profiler that was ended; the record's notes say so


def _is_of_kept(attempt: GateAttempt, session: Session) -> bool:
    """Whether no try was waiting to be reverted while the gate looked at the working tree."""
    at = next(place for place, event in enumerate(session.events) if event is attempt)
    waiting = {one.number for one in tries(session.events[:at]) if one.decision is None}
    return all(one.decision == "kept" for one in tries(session.events) if one.number in waiting)


def _of_try(work: Path) -> Path | None:
    report, path = newest(work / PROFILE, "*.head.ncu-rep"), work / folder.RECORD
    if report is not None or not path.exists():
        return report
    return path if any(one.side == "head" for one in record.read(path).profile) else None


def newest(at: Path, pattern: str) -> Path | None:
    return max(at.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)
