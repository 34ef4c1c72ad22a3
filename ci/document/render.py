"""Writes a `Report` down: as the Markdown comment, for a terminal, and its lines as HTML. Whatever a template writes
goes through escape.py, in HTML through jinja2 as well. In a terminal no word is cut, and the verdict comes last."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TextIO

import jinja2
from markupsafe import Markup

from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.escape import Markdown
from kernelgate.ci.document.model import Block, Code, Line, Link, Mark, Piece, Report, Strong, Table

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in one comment."""
MARKER = "<!-- kernelgate -->"
"""Finds the comment again; nothing that a record holds can forge it."""


def comment(report: Report, limit: int = COMMENT_LIMIT) -> str:
    """The Markdown comment, shorter than `limit` characters: folded parts go first, the verdict always stays."""
    text = ""
    for shorter in _ever_shorter(report):
        text = _whole_comment(shorter)
        if len(text) < limit:
            break
    return text


@lru_cache(maxsize=4)
def _whole_comment(report: Report) -> str:
    """A report is posted in several places, each with a limit of its own."""
    return _markdown().get_template("comment.md.jinja").render(report=report, marker=Markdown(MARKER))


def blocks(blocks_: Sequence[Block]) -> str:
    return _markdown().get_template("blocks.md.jinja").render(blocks=blocks_).strip()


def first_line(report: Report) -> str:
    """The verdict in words as plain text: "❌ Slower: S=512 B=32 H=8 fp16 by 4.9% (4.8 to 5.0%) on the L4"."""
    return escape.visible(plain_line(report.headline))


def show(report: Report, output: TextIO, details: bool = True) -> None:
    """Prints the report: for people in a terminal, as the comment's Markdown anywhere else."""
    if output.isatty():
        output.write(terminal(report, details, min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH)))
    else:
        output.write(comment(report))


def _ever_shorter(report: Report) -> Iterator[Report]:
    yield report
    left = list(report.sections)
    dropped: list[str] = []

    def left_out() -> Line:
        return (f"Omitted for length; see the HTML page: {'; '.join(dropped)}.",)

    for section in sorted(report.sections, key=lambda section: section.worth):
        left.remove(section)
        dropped.append(section.title)
        report = replace(report, sections=tuple(left), left_out=left_out())
        yield report
    if report.folded:
        dropped.append(report.folded_title)
        report = replace(report, folded=None, left_out=left_out())
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
        # Parsers disagree over a backslash before a bar, so bars become broken bars.
        "cell": lambda line: Markdown(markdown_line(line).replace("|", "¦")),
        "fence": escape.fence,
    }
    return environment


def markdown_line(line: Line) -> Markdown:
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
    }
    return environment


def _html_piece(piece: Piece) -> Markup:
    match piece:
        case Markup():
            return piece  # a drawing of ours
        case Mark():
            return Markup('<span class="mark {}" aria-hidden="true">{}</span>').format(piece.tone, piece.glyph)
        case Code():
            return Markup("<code>{}</code>").format(_shown(piece))
        case Strong():
            return Markup("<strong>{}</strong>").format(_shown(piece))
        case Link(_, address) if escape.is_address(address):
            return Markup('<a href="{}">{}</a>').format(address, _shown(piece))
        case _:
            return Markup.escape(_shown(piece))


def page(package: str, **values: object) -> str:
    """A page that is one file: the package's page.html, with its page.css and page.js, beside which it allows none."""
    templates = html(package)
    inside = {
        kind: templates.get_template(f"page.{end}").render() for kind, end in (("style", "css"), ("script", "js"))
    }
    digests = {kind: hashlib.sha256(text.encode()).digest() for kind, text in inside.items()}
    hashes = {kind: base64.b64encode(digest).decode() for kind, digest in digests.items()}
    parts = {kind: Markup(text) for kind, text in inside.items()}  # noqa: S704 (ours)
    return templates.get_template("page.html.jinja").render(hashes=hashes, **parts, **values)


# Plain text -----------------------------------------------------------------------------------------------------------

WIDTH, MAX_WIDTH = 80, 100
"""Columns of text in a terminal: longer lines are hard to read."""
GAP = "  "
MIN_WORDS = 24
"""Characters that the last column of a table is given at least."""


def plain_line(line: Line, addresses: bool = False) -> str:
    """One line as text without any marks, in which nothing is hidden."""
    return "".join(_shown(piece, addresses) for piece in line).strip()


def _shown(piece: Piece, addresses: bool = False) -> str:
    match piece:
        case Mark():
            # Without the character that asks for a picture: terminals do not agree on its width.
            return piece.emoji.removesuffix("\ufe0f")
        case str():
            return escape.framed(piece, escape.visible(piece))
        case Link(text, address) if addresses and escape.is_address(address):
            return f"{escape.visible(text)} ({address})"
        case _:
            return escape.visible(piece.text, piece.most if isinstance(piece, Code) else escape.MAX_CHARACTERS)


def terminal(report: Report, details: bool = True, width: int = WIDTH) -> str:
    """With `details` the comment, else what it does not fold and the names of what it does; the verdict comes last."""
    verdict = _fill(report.headline, width)
    if details:
        written = comment(report, sys.maxsize).removesuffix(f"{MARKER}\n")
        return f"{written}{verdict}\n"
    folded: list[Line] = [(report.folded_title,)] if report.folded else []
    folded += [(f"{one.title[:1].lower()}{one.title[1:]}",) for one in report.sections]
    parts = [
        *(_fill(line, width) for line in report.remarks),
        *([in_columns(report.cases, width)] if report.cases else []),
        *(_fill(line, width) for line in (report.under, *report.why, *report.checks) if line),
        *([_fill(("More with --details: ", *formatting.separated(folded, "; "), "."), width)] if folded else []),
        *([_fill(report.summary, width)] if report.summary else []),
        # Only what to do next is worth its address in full.
        *(_fill(line, width, addresses=True) for line in (report.now, report.elsewhere) if line),
    ]
    return "\n\n".join([*parts, verdict]) + "\n"


def in_columns(table: Table, width: int = WIDTH) -> str:
    """In columns, the last one wrapped."""
    titles = [escape.visible(column.title) if column.title else "" for column in table.columns]
    rows = [
        ["".join(piece.glyph if isinstance(piece, Mark) else _shown(piece) for piece in line).strip() for line in row]
        for row in table.rows
    ]
    widths = [max(len(row[at]) for row in (titles, *rows)) for at in range(len(titles))]
    fit = [(column.numeric, w) for column, w in zip(table.columns, widths, strict=True)]
    lines, indent = [], " " * (sum(widths[:-1]) + len(GAP) * (len(widths) - 1))
    for row in (titles, *rows):
        cells = [cell.rjust(w) if numeric else cell.ljust(w) for cell, (numeric, w) in zip(row, fit, strict=True)]
        first, *more = _lines(row[-1], max(width - len(indent), min(MIN_WORDS, widths[-1]))) or [""]
        last = first.rjust(widths[-1]) if fit[-1][0] and not more else first
        lines += [GAP.join([*cells[:-1], last]).rstrip(), *(indent + line for line in more)]
    return "\n".join(lines)


def _fill(line: Line, width: int, addresses: bool = False) -> str:
    return "\n".join(_lines(plain_line(line, addresses), width))


def _lines(words: str, width: int) -> list[str]:
    """A picture beside a word takes two columns, so that such a line may hold one character less."""
    wide = any(mark.emoji.removesuffix("\ufe0f") in words for mark in Mark)
    return textwrap.wrap(words, width - wide, break_long_words=False, break_on_hyphens=False)
