"""Keeping and reverting tries. The author's branch and index are left alone: only files of the change are written."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import git
from kernelgate.ci.lab import folder, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Decided, TriedChange

REVERTED = "reverted"


def keep(session: Session, why: str) -> Decided:
    """The last try stands: the next one is measured against it. Raises UsageError where there is none to decide."""
    with trying.alone(session):
        tried = _undecided(session)
        decided = Decided(at=folder.now(), number=tried.number, kept=True, why=why or tried.said)
        folder.append(session.folder, decided)
        return decided


def revert(session: Session, root: Path, why: str) -> tuple[Decided, Path | None]:
    """The sources are again as they were at the last kept state; what they were is kept, as the patch that is named.

    None where they were that already. Raises UsageError where there is no try to decide.
    """
    with trying.alone(session):
        tried = _undecided(session)
        base = trying.kept_state(session)
        paths = trying.sources(root, session.opened.card)
        now = git.take_snapshot(root, paths)
        git.keep_snapshot(root, session.name, f"{REVERTED}-{tried.number}", now)
        patch = git.difference(root, base, now, paths)
        path = trying.patch_of(session, tried.number)
        if patch:
            path = _kept(path, patch.encode("utf-8", "surrogateescape"))
            git.take_back(root, path)
        decided = Decided(at=folder.now(), number=tried.number, kept=False, why=why or tried.said)
        folder.append(session.folder, decided)
        return decided, path if patch else None


def _kept(path: Path, patch: bytes) -> Path:
    """The try's own patch where it is this; another file where the author changed more since."""
    if path.exists() and path.read_bytes() == patch:
        return path
    other = path.with_name(f"{path.stem}-{REVERTED}.patch")
    files.write(other, patch)
    return other


def _undecided(session: Session) -> TriedChange:
    decided = {event.number for event in session.events if isinstance(event, Decided)}
    waiting = [one for one in session.events if isinstance(one, TriedChange) and one.number not in decided]
    if not waiting:
        raise UsageError(f"{session.name} has no try that waits for a decision: `kernelgate session try` comes first")
    return waiting[-1]
