"""Writes a `Report` down: as the Markdown comment, in a terminal, and its lines as HTML. Nothing is decided here.

Escaping is the default: whatever a template writes goes through escape.py, in HTML through jinja2 as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TextIO

import jinja2
from markupsafe import Markup

from kernelgate.ci.document import escape, formatting, terminal
from kernelgate.ci.document.escape import Markdown
from kernelgate.ci.document.model import Block, Code, Line, Link, Mark, Piece, Report, Strong

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in one comment."""
MAX_WIDTH = 100
"""Columns of text in a terminal: longer lines are hard to read."""
MARKER = "<!-- kernelgate -->"
"""Finds the comment again; nothing that a record holds can forge it."""


def comment(report: Report, limit: int = COMMENT_LIMIT) -> str:
    """The Markdown comment, shorter than `limit` characters: folded parts go first, the verdict always stays."""
    text = ""
    for shorter in _ever_shorter(report):
        text = _markdown().get_template("comment.md.jinja").render(report=shorter, marker=Markdown(MARKER))
        if len(text) < limit:
            break
    return text


def blocks(blocks_: Sequence[Block]) -> str:
    """The blocks as the comment's folded parts have them."""
    return _markdown().get_template("blocks.md.jinja").render(blocks=blocks_).strip()


def first_line(report: Report) -> str:
    """The verdict in words as plain text: "❌ Slower: S=512 B=32 H=8 fp16 by 4.9% (4.8 to 5.0%) on the L4"."""
    return escape.visible("".join(map(_plain, report.headline)))


def show(report: Report, output: TextIO, details: bool = True) -> None:
    """Prints the report: for people in a terminal, as the comment's Markdown anywhere else."""
    if not output.isatty():
        output.write(comment(report))
        return
    width = min(shutil.get_terminal_size((terminal.WIDTH, 24)).columns, MAX_WIDTH)
    output.write(terminal.text(report, details, width))


def _ever_shorter(report: Report) -> Iterator[Report]:
    """The report, then with less and less: sections by their worth, the unchanged cases, then the rows from below."""
    yield report
    left = list(report.sections)
    dropped: list[str] = []

    def left_out(*more: str) -> Line:
        return (f"Omitted for length; see the HTML page: {'; '.join((*dropped, *more))}.",)

    for section in sorted(report.sections, key=lambda section: section.worth):
        left.remove(section)
        dropped.append(section.title)
        report = replace(report, sections=tuple(left), left_out=left_out())
        yield report
    if report.folded:
        dropped.append(report.folded_title)
        report = replace(report, folded=None, left_out=left_out())
        yield report
    while report.cases and report.cases.rows:
        rows = report.cases.rows[: len(report.cases.rows) // 2]
        kept = f"all but the first {len(rows)} rows of the table" if rows else "the table"
        report = replace(report, cases=replace(report.cases, rows=rows) if rows else None, left_out=left_out(kept))
        yield report


# Markdown -------------------------------------------------------------------------------------------------------------


@cache
def _markdown() -> jinja2.Environment:
    """Whatever a template writes is escaped, unless it is Markdown made by escape.py."""
    environment = jinja2.Environment(  # noqa: S701 (it escapes by `finalize`)
        loader=jinja2.PackageLoader("kernelgate.ci.document"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Markdown) else escape.prose(str(value)),
    )
    environment.filters |= {
        "line": markdown_line,
        "cell": lambda line: escape.cell(markdown_line(line)),
        "fence": escape.fence,
    }
    return environment


def markdown_line(line: Line) -> Markdown:
    """One line as the comment has it."""
    # A line of spaces would leave a list item or a paragraph that the next block slips into.
    return Markdown("".join(map(_markdown_piece, line)).strip() or escape.code(""))


def _markdown_piece(piece: Piece) -> str:
    match piece:
        case Mark():
            return piece.emoji
        case Code(text, most):
            return escape.code(text, most)
        case Strong(text):
            return f"**{escape.prose(text)}**"
        case Link(text, address):
            return escape.link(text, address)
        case str():
            return escape.prose(piece)


def plain_line(line: Line) -> str:
    """One line as text without any marks."""
    return "".join(map(_plain, line)).strip()


def _plain(piece: Piece) -> str:
    match piece:
        case Mark():
            # Without the character that asks for a coloured picture: `escape.visible` would show it.
            return piece.emoji.removesuffix("\ufe0f")
        case str():
            return piece
        case _:
            return piece.text


# HTML -----------------------------------------------------------------------------------------------------------------


@cache
def html(package: str) -> jinja2.Environment:
    """The templates of a package, which find those of this one beside theirs. What is hidden in a text is shown."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader("kernelgate.ci.document")]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=lambda value: escape.visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "line": lambda line: Markup("").join(map(_html_piece, line)),
        "verbatim": lambda text: Markup.escape(escape.verbatim(text)),
        "duration": lambda us: formatting.durations(us)[0],
        "change": lambda one: formatting.signed(one.change_pct, one.interval_pct)[0],
    }
    return environment


def _html_piece(piece: Piece) -> Markup:
    match piece:
        case Markup():
            return piece  # a drawing of ours
        case Mark():
            return Markup('<span class="mark {}" aria-hidden="true">{}</span>').format(piece.tone, piece.glyph)
        case Code(text, most):
            return Markup("<code>{}</code>").format(escape.visible(text, most))
        case Strong(text):
            return Markup("<strong>{}</strong>").format(escape.visible(text))
        case Link(text, address):
            shown = Markup.escape(escape.visible(text))
            return Markup('<a href="{}">{}</a>').format(address, shown) if escape.is_address(address) else shown
        case str():
            return Markup.escape(escape.framed(piece, escape.visible(piece)))
