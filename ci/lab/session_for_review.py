"""What experts are given of a session, gathered from a checkout."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import git
from kernelgate.ci.lab import folder, log, report
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.report import SessionForReview
from kernelgate.ci.policy.policy import Policy


def of(root: Path, session: Session, rules: Policy) -> SessionForReview:
    """Raises UsageError for a folder that no answer could name."""
    name = session.folder.name
    if not folder.NAME.fullmatch(name):
        raise UsageError(f"{session.folder}: the folder's name is no session's: lower case letters, digits and dashes")
    paths = [session.folder / one for one in (log.FILE, report.GAINS, report.PHASES)]
    return SessionForReview(
        name=name,
        objective=session.opened.objective,
        report=report.for_review(name, session.events, rules, folder.now()),
        commit=git.resolve(root, "HEAD"),
        files={path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.exists()},
    )
