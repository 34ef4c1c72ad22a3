"""Closes a session: the last events of its log, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kernelgate.bench.core import files
from kernelgate.ci.lab import coming, folder, gathered, pattern, proposals, report, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Closed, PatternUse, SessionNote
from kernelgate.ci.policy.policy import Policy

Why = Literal["done", "time", "cost", "gate", "machine", "abandoned"]


def close(session: Session, policy: Policy, why: Why, learnt: str) -> tuple[Path, ...]:
    """Logs the end, and writes the report with its drawings, whose paths it returns."""
    with trying.alone(session):
        state = coming.of(session.events, policy, folder.now())
        at = folder.now()
        notes = [SessionNote(at=at, said=learnt, kind="learnt")] if learnt else []
        said = state.stop_reason or learnt or f"{state.minutes:.0f} minutes, {len(state.tries)} tries"
        patterns = _proposed(session, policy, at)
        folder.append(session.folder, *notes, *patterns, Closed(at=at, why=why, said=said))
        return write_report(folder.read(session.folder), policy)


def _proposed(session: Session, policy: Policy, at: str) -> tuple[PatternUse, ...]:
    """What cost time twice or more, this session among those that it cost: a pattern for the next one."""
    root = session.folder.parents[len(folder.FOLDER.parts)]
    known, rules = pattern.read_all(pattern.folder(root)), policy.patterns
    sessions = {one.name: one.events for one in folder.every(root)}
    again = proposals.Repetition(rules.repeats, rules.repeat_minutes, rules.shared_words)
    found = proposals.proposed(sessions, known, gathered.thresholds(policy), again)
    return proposals.as_events([one for one in found if session.name in one.sessions], at)


def write_report(session: Session, policy: Policy) -> tuple[Path, ...]:
    """The report of what the log says now."""
    made = report.of(session.events, policy, folder.now())
    for name, text in made.items():
        files.write(session.folder / name, text)
    return tuple(session.folder / name for name in made)
