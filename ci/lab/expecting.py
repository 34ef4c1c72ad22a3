"""How long a gate or a try is expected to take: as long as where it went well before, on this kernel and device.

Sessions of the checkout say it; where none of them has come so far, those of the history that this process's
environment names, such as of another branch. Run records do not: their costs are seconds of kernel calls, without the
compiler, the start of processes and the wait for the device. Nor do sessions that people recorded, nor searches of
scripts, which try many variants at once.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git
from kernelgate.ci.document import formatting
from kernelgate.ci.lab import figures
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event, GateAttempt, GateName, Opened, TriedChange
from kernelgate.ci.pipeline import prior


def seconds(what: GateName | None, session: Session, root: Path, sessions: Iterable[Session]) -> float | None:
    """The median of a gate's times (None: a try's); None where there is none before. `root`: of the checkout."""
    here = [one.events for one in sessions if one.name == session.name or any(map(figures.is_timed, one.events))]
    took = _took(what, session.opened, here) or _took(what, session.opened, _remembered(session.opened, root))
    return statistics.median(took) if took else None


def _took(what: GateName | None, like: Opened, logs: Iterable[Sequence[Event]]) -> list[float]:
    alike = (events for events in logs if _key(figures.opened(events)) == _key(like))
    return [took for events in alike for event in events if (took := _seconds(event, what))]


def _key(opened: Opened) -> tuple[str | None, str | None, str]:
    return opened.card, opened.gpu, opened.source


def _seconds(event: Event, what: GateName | None) -> float | None:
    if isinstance(event, TriedChange):
        return event.seconds if what is None and event.failed is None else None
    if isinstance(event, GateAttempt) and event.gate == what and event.passed:
        return event.seconds
    return None


def _remembered(like: Opened, root: Path) -> Iterator[Sequence[Event]]:
    """Logs of the history's index that begin with a commit of this repository: a card of another one may have the same
    name. Whatever keeps it from being read, nothing is expected then.
    """
    where = prior.index()
    if where is None:
        return
    try:
        from kernelgate.ci.history import database, sessions
        from kernelgate.ci.lab import session_entries

        found = database.existing(where)
        for one in sessions.listed(found):
            if (one.card, one.gpu) == (like.card, like.gpu):
                events = session_entries.events(session_entries.session_of(one))
                base = figures.opened(events).base
                if (
                    formatting.is_commit(base or "")
                    and git.is_here(root, base or "")
                    and any(map(figures.is_timed, events))
                ):
                    yield events
    except (KernelgateError, ModuleNotFoundError):
        return
