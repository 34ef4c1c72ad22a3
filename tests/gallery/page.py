"""One page with every situation as a phone shows its comment, beside the answers that are true: `make gallery`."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from kernelgate.bench.core import files
from tests.demo.page import rendered
from tests.gallery.asks import ask
from tests.gallery.situations import Situation, situations

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "gallery" / "index.html"
GITHUB = (ROOT / "tests" / "ci" / "report" / "github.css").read_text(encoding="utf-8")
STYLE = """
body { padding: 0; }
.shown { display: flex; flex-wrap: wrap; gap: 16px; border-top: 2px solid #8888; padding: 8px 0; }
.shown > h2 { flex-basis: 100%; margin: 0 8px; font-size: 1.1em; }
.phone { height: 740px; overflow: auto; padding: 16px; border: 1px solid #8888; width: 390px; font-size: 16px; }
.shown > dl, body > p { margin: 8px; }
.wrong { color: #c22; }
"""


@cache
def html() -> str:
    shown = "".join(_shown(one, ask(one.comment, one.truth)) for one in situations())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Comments of kernelgate</title><style>{GITHUB}{STYLE}</style><body>{shown}"
    )


def _shown(one: Situation, wrong: dict[str, str]) -> str:
    """The comment as on a phone, beside what is true and what it does not say."""
    answers = "".join(f"<dt>{name}<dd>{escape(str(value))}" for name, value in vars(one.truth).items())
    answers += "".join(f'<dt>{question}<dd class="wrong">✗ {escape(why)}' for question, why in wrong.items())
    comment = f'<article class="phone markdown-body">{rendered(one.comment)}</article>'
    return f'<section class="shown"><h2>{escape(one.name)}</h2>{comment}<dl>{answers}</dl></section>'


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    files.write(FILE, html())
    print(FILE)
