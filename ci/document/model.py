"""The report as plain data: its text in order, with nothing decided later and nothing escaped yet. The Markdown
comment, the HTML page and the terminal show one and the same `Report`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Mark(Enum):
    """A symbol beside a word; it never carries the meaning alone. (emoji; sign and tone on the page)"""

    SLOWER = ("❌", "▲", "bad")
    SLIGHT = ("⚠️", "!", "warn")
    FASTER = ("✅", "▼", "good")
    SAME = ("✅", "=", "same")
    PASSED = ("✅", "✓", "good")
    UNKNOWN = ("❔", "?", "unknown")
    WRONG = ("🛑", "✕", "bad")
    BLOCKED = ("⛔", "✕", "bad")
    BUILD = ("🔧", "✕", "bad")
    RUNNER = ("🛠️", "!", "unknown")
    NONE = ("➖", "–", "unknown")

    @property
    def emoji(self) -> str:
        return self.value[0]

    @property
    def glyph(self) -> str:
        return self.value[1]

    @property
    def tone(self) -> str:
        return self.value[2]


@dataclass(frozen=True)
class Code:
    """A name, id or command, shown as it is up to `most` characters."""

    text: str
    most: int = 100


@dataclass(frozen=True)
class Strong:
    """The number or name that a glance should land on."""

    text: str


@dataclass(frozen=True)
class Link:
    """A way to an address that GitHub gave us."""

    text: str
    address: str


Piece = str | Code | Strong | Link | Mark
Line = tuple[Piece, ...]
"""One line of text. Strings may hold anything: whatever is not plainly words is shown as code."""


@dataclass(frozen=True)
class Column:
    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    kind: ClassVar[str] = "table"
    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...], ...]
    """One line for each column."""


def table(titles: Iterable[str], rows: Iterable[Iterable[Piece | Line]]) -> Table:
    """A table in which "#" before a title makes a column of numbers, and a cell may be one piece."""
    columns = tuple(Column(title.removeprefix("#"), numeric=title.startswith("#")) for title in titles)
    return Table(columns, tuple(tuple(cell if isinstance(cell, tuple) else (cell,) for cell in row) for row in rows))


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar[str] = "paragraph"
    line: Line


@dataclass(frozen=True)
class Bullets:
    kind: ClassVar[str] = "bullets"
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Verbatim:
    """Lines to copy or read as they are: commands with their words quoted, or a log."""

    kind: ClassVar[str] = "verbatim"
    lines: tuple[str, ...]
    language: str = "sh"


Block = Table | Paragraph | Bullets | Verbatim


@dataclass(frozen=True)
class Section:
    """A folded part. Of the parts of a comment that is too long, the ones with the lowest `worth` go first."""

    title: str
    blocks: tuple[Block, ...]
    worth: int


@dataclass(frozen=True)
class Report:
    headline: Line
    """Its mark, what was found, and whether that blocks."""
    summary: Line
    """How sure that is, and which commits were compared."""
    remarks: tuple[Line, ...] = ()
    """What must be known before the table is read."""
    cases: Table | None = None
    under: Line = ()
    """What all rows have in common, what their marks mean, and how the other cases are."""
    folded: Table | None = None
    """The other cases."""
    folded_title: str = ""
    checks: tuple[Line, ...] = ()
    """Why on the other GPUs; correctness; the stored baseline where it shows something; claims."""
    sections: tuple[Section, ...] = ()
    why: tuple[Line, ...] = ()
    """What explains the change, and what to try: on one GPU, so that it is no longer where there are several."""
    now: Line = ()
    """The next step."""
    left_out: Line = ()
    """What a shortened comment no longer holds, and where it is."""
    elsewhere: Line = ()
    """Where the page and the files are."""
