"""Runs a command of a session: passes on what it says, reports in between, and ends it when it falls silent.

Silence is an error: whoever waits hears at least every `report_s` seconds what is done, for how long, and how long it
is expected to take.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git, supervise
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import MAX_LAST, TimeLimits
from kernelgate.bench.system.worker import ROOT
from kernelgate.ci.document import formatting
from kernelgate.ci.lab.folder import Session, SessionError
from kernelgate.ci.lab.log import Event, GateAttempt, GateName, Opened, TriedChange
from kernelgate.ci.lab.state import is_timed, opened_of
from kernelgate.ci.pipeline import prior

REPORT_S: Final = 30.0
"""How often at the latest long work says what it does."""
SESSION_SILENT_S: Final = 180.0
"""After so much silence it is ended."""
LAST_LINES = 50
"""That are kept of a command's output."""


@dataclass(frozen=True)
class Watch:
    """How a command is watched."""

    what: str
    """Such as "gate build"."""
    total_s: float
    expected_s: float | None = None
    """By earlier runs; None where there was none."""
    report_s: float = REPORT_S
    silent_s: float = SESSION_SILENT_S
    """After so long without output it is ended."""


@dataclass(frozen=True)
class Watched:
    """How a command ended."""

    code: int | None
    """None where it was ended, for silence or for its time."""
    lines: tuple[str, ...]
    """Its last ones."""
    seconds: float
    ended: str | None = None
    """Why it was ended."""
    silent_s: float | None = None
    """The longest time in which it printed nothing, to the step in which it is looked at; None where it was less."""

    @property
    def last(self) -> str:
        return next((line for line in reversed(self.lines) if line.strip()), "it printed nothing")


@dataclass
class _Talk:
    """What was said, and when a report is due again."""

    watch: Watch
    begun: float = field(default_factory=time.monotonic)
    reported: float = field(default_factory=time.monotonic)
    lines: list[str] = field(default_factory=list)
    longest_s: float = 0.0

    @property
    def silent_s(self) -> float | None:
        return round(self.longest_s, 1) or None

    def heard(self, line: str) -> None:
        self.lines = [*self.lines, line][-LAST_LINES:]
        say(f"  {line}")
        self.report()

    def silent(self, seconds: float) -> None:
        self.longest_s = max(self.longest_s, seconds)
        if seconds >= self.watch.silent_s:
            raise TimeoutError(f"silent for {seconds:.0f} s")
        self.report()

    def report(self) -> None:
        now = time.monotonic()
        if now - self.reported >= self.watch.report_s:
            self.reported = now
            say(f"{self.watch.what}: {now - self.begun:.0f} s{_expected(self.watch)}")


def _expected(watch: Watch) -> str:
    most = f"at most {watch.total_s:.0f} s"
    return (
        f" of about {watch.expected_s:.0f} s, {most}"
        if watch.expected_s
        else f"; no earlier one to expect from, {most}"
    )


def run(module: str, words: Sequence[str], cwd: Path, watch: Watch) -> Watched:
    """Runs `python -m MODULE WORDS…` of this very copy of kernelgate until it ends, or is ended."""
    command = [sys.executable, "-P", "-m", module, *words]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    talk = _Talk(watch)
    say(f"{watch.what}{_expected(watch).replace(' of about', ': about').replace('; no', ': no')}")
    step = min(watch.report_s, watch.silent_s) / 2
    try:
        code = supervise.run(
            command,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            limits=TimeLimits(step, watch.total_s),
            on_line=talk.heard,
            on_silence=talk.silent,
        )
    except TimeoutError as error:
        why = str(error) if str(error).startswith("silent") else f"its {watch.total_s / 60:.3g} minutes were over"
        last = next((line.strip() for line in reversed(talk.lines) if line.strip()), None)
        said = f"last line: {last[:MAX_LAST]}" if last else "it had printed nothing"
        seconds = time.monotonic() - talk.begun
        return Watched(None, tuple(talk.lines), seconds, f"ended: {why}; {said}", talk.silent_s)
    return Watched(code, tuple(talk.lines), time.monotonic() - talk.begun, None, talk.silent_s)


# ---- how long it is expected to take ---------------------------------------------------------------------------------

# Sessions of the checkout say it; where none of them has come so far, those of the history that this process's
# environment names, such as of another branch. Run records do not: their costs are seconds of kernel calls, without the
# compiler, the start of processes and the wait for the device. Nor do sessions that people recorded, nor searches of
# scripts, which try many variants at once.


def expected_seconds(what: GateName | None, session: Session, root: Path, sessions: Iterable[Session]) -> float | None:
    """The median of a gate's times (None: a try's); None where there is none before. `root`: of the checkout."""
    here = [one.events for one in sessions if one.name == session.name or any(map(is_timed, one.events))]
    took = _took(what, session.opened, here) or _took(what, session.opened, _prior_logs(session.opened, root))
    return statistics.median(took) if took else None


def _took(what: GateName | None, like: Opened, logs: Iterable[Sequence[Event]]) -> list[float]:
    alike = (events for events in logs if _key(opened_of(events)) == _key(like))
    return [took for events in alike for event in events if (took := _seconds(event, what))]


def _key(opened: Opened) -> tuple[str | None, str | None, str]:
    return opened.card, opened.gpu, opened.source


def _seconds(event: Event, what: GateName | None) -> float | None:
    if isinstance(event, TriedChange):
        return event.seconds if what is None and event.failed is None else None
    if isinstance(event, GateAttempt) and event.gate == what and event.passed:
        return event.seconds
    return None


def _prior_logs(like: Opened, root: Path) -> Iterator[Sequence[Event]]:
    """Logs of the history's index that begin with a commit of this repository: a card of another one may have the same
    name. Whatever keeps it from being read, nothing is expected then.
    """
    where = prior.index()
    if where is None:
        return
    try:
        from kernelgate.ci.history import database, series
        from kernelgate.ci.lab import session_entries

        with database.reading(database.existing(where)) as connection:
            kept = series.sessions(connection)
        for one in kept:
            with suppress(SessionError):  # of a log that another kernelgate wrote
                events = session_entries.events(one)
                opened = opened_of(events)
                base = opened.base or ""
                alike = (opened.card, opened.gpu) == (like.card, like.gpu) and any(map(is_timed, events))
                if alike and formatting.is_commit(base) and git.is_here(root, base):
                    yield events
    except (KernelgateError, ModuleNotFoundError):
        return
