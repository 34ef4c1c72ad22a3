"""A checkout's sessions as the history keeps them, and what each of them came to as its index holds it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelgate.bench.errors import faults
from kernelgate.ci.history.entry import moment
from kernelgate.ci.history.index import text
from kernelgate.ci.history.sessions import KeptSession, SessionEntry
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import folder, log, metrics
from kernelgate.ci.sessions.folder import SessionError
from kernelgate.ci.sessions.log import Event, Opened


def of_checkout(root: Path, repository: str, say: Callable[[str], None]) -> list[KeptSession]:
    """All sessions of the checkout, also those with events of a later kernelgate. A log that is broken is said."""
    found = []
    for path in sorted((root / folder.FOLDER).glob(f"*/{log.FILE}")):
        try:
            lines = path.read_text(encoding="utf-8")
            kept = KeptSession(repository=repository, name=path.parent.name, log=lines)
            if not _is_whole(kept):
                events(kept, str(path))  # says what is broken
            found.append(kept)
        except SessionError as error:
            say(f"left out: {error}")
        except (OSError, UnicodeDecodeError) as error:
            say(f"left out: {path} cannot be read: {getattr(error, 'strerror', None) or error}")
        except ValidationError as error:
            say(f"left out: {path.parent} is no session's folder: {faults(error)}")
    return found


def _is_whole(kept: KeptSession) -> bool:
    """Whether each line is an event, be it of a kind that this kernelgate does not know, and the first is its own."""
    try:
        read = [json.loads(line) for line in kept.log.split("\n") if line.strip()]
        return all(isinstance(one["event"], str) for one in read) and read[0]["name"] == kept.name
    except (ValueError, TypeError, LookupError, RecursionError):
        return False


def events(kept: KeptSession, where: str | None = None) -> tuple[Event, ...]:
    """The session's events. Raises SessionError, which calls the log `where`."""
    where = where or "/".join(filter(None, (kept.repository, kept.name, log.FILE)))
    found = folder.events_of(kept.log, where)
    if isinstance(found[0], Opened) and found[0].name != kept.name:
        raise SessionError(f"{where} is the log of {text(found[0].name)!r}: its folder was copied or renamed")
    return found


def entry(kept: KeptSession, policy: Policy) -> SessionEntry:
    """What it came to. Raises SessionError."""
    found = events(kept)
    row = metrics.row(found, policy, until(found))
    low, high = row.speedup_interval or (None, None)
    known = [usd for usd in (row.usd_gpu, row.usd_assistant, row.usd_other) if usd is not None]
    return SessionEntry(
        name=kept.name,
        repository=kept.repository,
        source=row.source,
        opened=moment(row.at),
        objective=text(row.objective),
        card=row.card and text(row.card),
        gpu=row.gpu and text(row.gpu),
        closed=row.closed,
        minutes=row.minutes,
        speedup=row.speedup,
        speedup_low=low,
        speedup_high=high,
        gain_kept_pct=row.gain_kept_pct,
        tries=row.tries,
        kept=row.kept,
        blind=row.blind,
        usd=sum(known) if known else None,
        log=kept.log,
    )


def until(found: Sequence[Event]) -> str:
    """The time of the last event: of a session that is open, the time since then is not known to be spent on it."""
    return next((event.at for event in reversed(found) if event.at), folder.now())
