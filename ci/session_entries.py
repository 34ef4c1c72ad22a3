"""A checkout's sessions as the history's index holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelgate.bench.errors import KernelgateError
from kernelgate.ci.history.sessions import SessionEntry
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import folder, log, metrics
from kernelgate.ci.sessions.folder import Session


def of_checkout(root: Path, policy: Policy, repository: str, say: Callable[[str], None]) -> list[SessionEntry]:
    """All sessions of the checkout. One whose log cannot be read is said, and left out."""
    found = []
    for path in sorted((root / folder.FOLDER).glob(f"*/{log.FILE}")):
        try:
            found.append(_entry(folder.read(path.parent), policy, repository))
        except KernelgateError as error:
            say(f"left out: {error}")
    return found


def _entry(session: Session, policy: Policy, repository: str) -> SessionEntry:
    row = metrics.row(session.events, policy, folder.now())
    return SessionEntry(
        name=row.name,
        repository=repository,
        source=row.source,
        opened=row.at,
        objective=session.opened.objective,
        card=row.card,
        gpu=row.gpu,
        closed=row.closed,
        minutes=row.minutes,
        speedup=row.speedup,
        gain_kept_pct=row.gain_kept_pct,
        tries=row.tries,
        kept=row.kept,
        blind=row.blind,
        usd=row.usd_gpu + row.usd_assistant + row.usd_other,
    )
