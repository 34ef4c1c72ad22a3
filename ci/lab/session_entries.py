"""A checkout's sessions as the history keeps them, what each came to for its index, and all for the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelgate.bench.core.errors import faults
from kernelgate.ci.document.formatting import MISSING
from kernelgate.ci.document.model import Line, Piece, Strong, table
from kernelgate.ci.history.entry import KeptSession, moment
from kernelgate.ci.history.index import text
from kernelgate.ci.lab import drawings, folder, log, metrics
from kernelgate.ci.lab.folder import SessionError
from kernelgate.ci.lab.log import Event, Opened
from kernelgate.ci.lab.state import SessionSummary, summary
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.dashboard import SiteSessions


def of_checkout(root: Path, repository: str, say: Callable[[str], None]) -> list[KeptSession]:
    """All sessions of the checkout. A log that is broken, or of a later kernelgate, is said and left out."""
    found = []
    for path in sorted((root / folder.FOLDER).glob(f"*/{log.FILE}")):
        try:
            kept = KeptSession(repository=repository, name=path.parent.name, log=folder.text_of(path))
            events(kept, str(path))
            found.append(kept)
        except SessionError as error:
            say(f"left out: {error}")
        except ValidationError as error:
            say(f"left out: {path.parent} is no session's folder: {faults(error)}")
    return found


def events(kept: KeptSession, where: str | None = None) -> tuple[Event, ...]:
    """The session's events. Raises SessionError, which calls the log `where`."""
    where = where or "/".join(filter(None, (kept.repository, kept.name, log.FILE)))
    found = folder.events_of(kept.log, where)
    if isinstance(found[0], Opened) and found[0].name != kept.name:
        raise SessionError(f"{where} is the log of {text(found[0].name)!r}: its folder was copied or renamed")
    return found


# ---- on the dashboard ------------------------------------------------------------------------------------------------


def of_index(found: Iterable[KeptSession], policy: Policy, say: Callable[[str], None]) -> SiteSessions:
    """The index's sessions as the dashboard shows them, in the order in which they were opened. A log that this
    kernelgate cannot read is said and left out."""
    rows = []
    for kept in sorted(found, key=lambda one: one.key):
        try:
            of_log = events(kept)
            rows.append(summary(of_log, policy, until(of_log)))
        except SessionError as error:
            say(f"left out: {error}")
    return shown(sorted(rows, key=lambda one: moment(one.opened.at) or ""))


def shown(rows: Sequence[SessionSummary]) -> SiteSessions:
    """Rows, drawings and figures over them; without rows nothing."""
    if not rows:
        return SiteSessions()
    return SiteSessions(
        table=table(TITLES, map(_row, reversed(rows))),
        figures=tuple((one.name, one.said) for one in metrics.overall(rows)),
        remarks=tuple(metrics.remarks(rows)),
        drawings=tuple(drawings.inline(one) for one in drawings.beside(rows)),
    )


TITLES = ("session", "opened", "kernel", "#minutes", "speed", "tries", "cost", "ended")


def _row(row: SessionSummary) -> tuple[Piece | Line, ...]:
    opened, numbers = row.opened, row.figures
    aside = "recorded by people" if opened.source == "recorded" else "a search of a script" if row.is_search else ""
    return (
        (Strong(opened.name), f", {aside}" if aside else "", f": {opened.objective}" if opened.objective else ""),
        (moment(opened.at) or "")[:10] or MISSING,
        " on ".join(part for part in (opened.card, opened.gpu) if part) or MISSING,
        drawings.minutes_words(row.minutes),
        metrics.speed_words(row),
        f"{numbers.tries}, {numbers.kept} kept, {numbers.blind} blind" if numbers.tries else "none",
        metrics.usd_words(row),
        row.closed or "open",
    )


def until(found: Sequence[Event]) -> str:
    """The time of the last event: of a session that is open, the time since then is not known to be spent on it."""
    return next((event.at for event in reversed(found) if event.at), folder.now())
