"""Writes a `Report` for a terminal: no word is cut, the verdict comes last, and what is folded stays so unless asked.

The words are those of the comment. What does not fit beside each other stands below each other.
"""

from __future__ import annotations

import textwrap

from kernelgate.ci.document import escape
from kernelgate.ci.document.model import (
    Bullets,
    Code,
    Line,
    Link,
    Mark,
    Paragraph,
    Piece,
    Report,
    Section,
    Strong,
    Table,
    Verbatim,
)

WIDTH = 80
GAP = "  "
MIN_WORDS = 24
"""Characters that the last column of a table is given at least, …"""
MAX_COLUMNS = 6
"""… in a table of no more columns than this."""


def text(report: Report, details: bool = True, width: int = WIDTH) -> str:
    """The whole report; without `details`, of the folded parts only what there is."""
    parts = [_section(section, width) for section in report.sections] if details else []
    if details and report.folded:
        parts.append(f"{_heading(report.folded_title)}\n\n{table(report.folded, width)}")
    parts += [_wrapped(line, width) for line in report.remarks]
    parts += [table(report.cases, width)] if report.cases else []
    parts += [_wrapped(line, width) for line in (report.under, *report.also_why, *report.why, *report.checks) if line]
    titles = [section.title[:1].lower() + section.title[1:] for section in report.sections]
    folded = [escape.visible(title) for title in (*([report.folded_title] if report.folded else []), *titles)]
    if not details and folded:
        parts.append(_fill(f"More with --details: {'; '.join(folded)}.", width))
    parts += [_wrapped(line, width) for line in (report.summary,) if line]
    # Only what to do next is worth its address in full.
    parts += [_fill(_plain(line, addresses=True), width) for line in (report.now, report.elsewhere) if line]
    return "\n\n".join([*parts, _wrapped(report.headline, width)]) + "\n"


def _section(section: Section, width: int) -> str:
    blocks = []
    for block in section.blocks:
        match block:
            case Table():
                blocks.append(table(block, width))
            case Paragraph(line):
                blocks.append(_wrapped(line, width))
            case Bullets(lines):
                blocks.append("\n".join(_fill(_plain(line), width, "- ", "  ") for line in lines))
            case Verbatim(lines):
                blocks.append("\n".join(f"    {escape.verbatim(line)}" for line in lines))
    return "\n\n".join([_heading(section.title), *blocks])


def _heading(title: str) -> str:
    shown = escape.visible(title)
    return f"{shown}\n{'-' * min(len(shown), WIDTH)}"


# Tables ---------------------------------------------------------------------------------------------------------------


def table(table: Table, width: int = WIDTH) -> str:
    """In columns, the last one wrapped; where that leaves it no room, each row below the other."""
    titles = [escape.visible(column.title) if column.title else "" for column in table.columns]
    rows = [
        ["".join(piece.glyph if isinstance(piece, Mark) else _piece(piece) for piece in line).strip() for line in row]
        for row in table.rows
    ]
    widths = [max(len(row[at]) for row in (titles, *rows)) for at in range(len(titles))]
    left = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    too_many = len(titles) > MAX_COLUMNS and left < widths[-1]
    if too_many or left < min(MIN_WORDS, widths[-1]):
        return "\n".join(_record(titles, row, width) for row in rows)
    numeric = [column.numeric for column in table.columns]
    return "\n".join(_aligned(row, widths, numeric, left) for row in (titles, *rows))


def _aligned(row: list[str], widths: list[int], numeric: list[bool], left: int) -> str:
    cells = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)]
    indent = " " * (sum(widths[:-1]) + len(GAP) * (len(widths) - 1))
    first, *more = _lines(row[-1], left) or [""]
    last = first.rjust(widths[-1]) if numeric[-1] and not more else first
    return "\n".join([GAP.join([*cells[:-1], last]).rstrip(), *(indent + line for line in more)])


def _record(titles: list[str], row: list[str], width: int) -> str:
    """One row as a sentence: its first cell, then every other with its title."""
    named = "; ".join(f"{title} {cell}" if title else cell for title, cell in zip(titles[1:], row[1:], strict=True))
    return f"{_fill(row[0], width)}\n{_fill(named, width, GAP, GAP)}"


# Lines ----------------------------------------------------------------------------------------------------------------


def _wrapped(line: Line, width: int) -> str:
    return _fill(_plain(line), width)


def _plain(line: Line, addresses: bool = False) -> str:
    return "".join(_piece(piece, addresses) for piece in line).strip()


def _piece(piece: Piece, addresses: bool = False) -> str:
    match piece:
        case Mark():
            # Without the character that asks for a picture: terminals do not agree on its width.
            return piece.emoji.removesuffix("\ufe0f")
        case Code(words, most):
            return escape.visible(words, most)
        case Strong(words):
            return escape.visible(words)
        case Link(words, address):
            shown = escape.visible(words)
            return f"{shown} ({address})" if addresses and escape.is_address(address) else shown
        case str():
            return escape.framed(piece, escape.visible(piece))


def _fill(words: str, width: int, first: str = "", rest: str = "") -> str:
    return "\n".join(_lines(words, width, first, rest))


def _lines(words: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """A picture beside a word takes two columns, so that such a line may hold one character less."""
    wide = any(mark.emoji.removesuffix("\ufe0f") in words for mark in Mark)
    return textwrap.wrap(
        words,
        width - wide,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
