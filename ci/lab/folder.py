"""Where sessions stand: `.ci/sessions/<name>/log.jsonl`, read whole, and only ever added to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from pydantic import ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, OutputError, UsageError, faults
from kernelgate.bench.system import lock
from kernelgate.bench.system.progress import say
from kernelgate.ci.lab.log import EVENT, FILE, Closed, Event, Opened, line, opened_of

FOLDER = Path(".ci/sessions")
WORK = "work"
RECORD = "run.json"
"""In a try's folder of that."""
_SAID: set[str] = set()
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class SessionError(KernelgateError):
    """A file of a session is broken, or does not fit what is asked of it."""


@dataclass(frozen=True)
class Session:
    folder: Path
    events: tuple[Event, ...]

    @property
    def opened(self) -> Opened:
        return opened_of(self.events)

    @property
    def name(self) -> str:
        return self.opened.name

    @property
    def is_open(self) -> bool:
        return self.opened.source == "measured" and not any(isinstance(event, Closed) for event in self.events)

    @property
    def work(self) -> Path:
        """Libraries, records, reports of the profiler. Git ignores it."""
        return self.folder / WORK


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def read(folder: Path) -> Session:
    """The session in `folder`. Raises SessionError naming the line that does not fit."""
    return Session(folder, events_of(text_of(folder / FILE), str(folder / FILE)))


def text_of(path: Path) -> str:
    """Raises SessionError."""
    try:
        return files.content(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SessionError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _events(lines: str, where: str) -> list[Event]:
    events: list[Event] = []
    for number, text in enumerate(lines.split("\n"), 1):
        try:
            events += [EVENT.validate_json(text)] if text.strip() else []
        except ValidationError as error:
            raise SessionError(f"{where}:{number} is no event of a session: {faults(error, 1)}") from None
    return events


def events_of(log: str, where: str) -> tuple[Event, ...]:
    """The events of a whole log, the opening first. Raises SessionError naming the line of `where` at fault."""
    events = _events(log, where)
    if not events or not isinstance(events[0], Opened):
        raise SessionError(f"{where}: its first line is not the session's opening ({page('loop.md')})")
    if any(isinstance(event, Opened) for event in events[1:]):
        raise SessionError(f"{where} opens a session twice: two logs were joined; keep one of them")
    return tuple(events)


def append(folder: Path, *events: Event) -> None:
    """Adds lines to the log: all of them or none, whoever else writes. Raises OutputError, and SessionError for events
    that nobody could read again."""
    path, where = folder / FILE, f"nothing was logged: {folder / FILE}"
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    try:
        data = "".join(map(line, events)).encode()
    except ValueError:
        why = "it is no text: it holds bytes that are no UTF-8, as in a locale without UTF-8 (LC_ALL=C.UTF-8 has it)"
        raise SessionError(f"{where}: {why}") from None
    files.append(path, data if whole else b"\n" + data, lambda read: _events(read.decode(), where))


@contextmanager
def alone(session: Session) -> Iterator[None]:
    """While the block runs, no other process tries, keeps or reverts in this session."""
    session.work.mkdir(parents=True, exist_ok=True)
    with (session.work / "lock").open("a") as file:
        if not lock.taken(file.fileno()):
            raise UsageError(f"another command is at work in the session {session.name}: wait until it ends")
        yield


def new(root: Path, name: str) -> Path:
    """Where the session of that name will lie. Raises UsageError for a name that is taken or none."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no session's name: lower case letters, digits and dashes, at most 64")
    if (root / FOLDER / name).exists():
        raise UsageError(f"there is a session {name} already, in {root / FOLDER / name}: choose another --name")
    return root / FOLDER / name


def create(root: Path, opened: Opened) -> Session:
    """A new session's folder with its first line. Raises UsageError as `new` does."""
    folder = new(root, opened.name)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"another session {opened.name} began just now: choose another --name") from None
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {(error.strerror or '').lower()}") from None
    try:
        files.try_folder(folder / WORK)
        files.write(folder / ".gitignore", f"{WORK}/\n")
        append(folder, opened)
    except BaseException:  # nobody's session takes the name
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return read(folder)


def every(root: Path) -> tuple[Session, ...]:
    """All sessions of a checkout, by the time they were opened; recorded ones without a time first."""
    return tuple(sorted(below(root / FOLDER), key=lambda one: (one.opened.at or "", one.name)))


def below(sessions: Path) -> Iterator[Session]:
    """The sessions whose folders are in this one. A log that cannot be read is said, once, and left out."""
    for path in sorted(sessions.glob(f"*/{FILE}")):
        try:
            yield read(path.parent)
        except SessionError as error:
            if str(error) not in _SAID:
                _SAID.add(str(error))
                say(f"left out: {error}")


def waiting_in(root: Path) -> tuple[Session, ...]:
    return tuple(one for one in every(root) if one.is_open)


def named(root: Path, name: str | None) -> Session:
    """The session of that name; without one, that which is open. Raises UsageError where that is none, or several."""
    if name is not None:
        if not (NAME.fullmatch(name) and (root / FOLDER / name / FILE).exists()):  # no path leads out of the folder
            known = ", ".join(one.name for one in every(root)) or "none"
            raise UsageError(f"there is no session {name!r} in {FOLDER}/; there are: {known}")
        return read(root / FOLDER / name)
    waiting = waiting_in(root)
    if not waiting:
        raise UsageError('no session is open: begin one with `kernelgate session new "objective"`')
    if len(waiting) > 1:
        names = ", ".join(one.name for one in waiting)
        raise UsageError(f"{len(waiting)} sessions are open ({names}): name one with --session, or close the others")
    return waiting[0]


def still_open(root: Path, name: str | None) -> Session:
    """As `named`, of a session that may be added to."""
    found = named(root, name)
    if not found.is_open:
        recorded = found.opened.source == "recorded"
        ended = "was recorded from a document, not measured: nothing is added to it" if recorded else "is closed"
        raise UsageError(f"{found.name} {ended}; `kernelgate session new` begins another")
    return found


def slug(objective: str, taken: Sequence[str], today: str) -> str:
    """A name made of the day and the objective, that no other session has."""
    words = re.findall(r"[a-z0-9]+", objective.lower())
    stem = "-".join([today, *words])[:48].rstrip("-")
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)
