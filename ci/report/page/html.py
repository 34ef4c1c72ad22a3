"""The report's lines and tables as HTML. Escaping is jinja2's; what is hidden in a text is made visible first."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from kernelgate.ci.document import escape
from kernelgate.ci.document.model import Code, Line, Link, Mark, Piece, Strong


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("kernelgate.ci.report.page"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_finalized,
    )
    made.filters |= {"line": of_line, "verbatim": lambda text: Markup.escape(escape.verbatim(text))}
    return made


def of_line(line: Line) -> Markup:
    return Markup("").join(map(_piece, line))


def _piece(piece: Piece) -> Markup:
    match piece:
        case Mark():
            return Markup('<span class="mark {}" aria-hidden="true">{}</span>').format(piece.tone, piece.glyph)
        case Code(text, most):
            return Markup("<code>{}</code>").format(escape.visible(text, most))
        case Strong(text):
            return Markup("<strong>{}</strong>").format(escape.visible(text))
        case Link(text, address):
            shown = escape.visible(text)
            return (
                Markup('<a href="{}">{}</a>').format(address, shown)
                if escape.is_address(address)
                else Markup.escape(shown)
            )
        case str():
            return Markup.escape(escape.framed(piece, escape.visible(piece)))


def _finalized(value: object) -> object:
    return escape.visible(value) if type(value) is str else value
