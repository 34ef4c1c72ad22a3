"""One page with every situation as a phone and a desk show its comment, beside the answers that are true:
`make gallery`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

from kernelgate.bench.core import files
from tests.demo.page import rendered
from tests.gallery.asks import ASKED, Amount, Answers, ask
from tests.gallery.situations import Situation, situations

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "gallery" / "index.html"
GITHUB = (ROOT / "tests" / "ci" / "report" / "github.css").read_text(encoding="utf-8")
STYLE = """
body { padding: 0; }
.shown { display: flex; flex-wrap: wrap; gap: 16px; border-top: 2px solid #8888; padding: 8px 0; }
.shown > h2 { flex-basis: 100%; margin: 0 8px; font-size: 1.1em; }
.phone, .desk { height: 740px; overflow: auto; padding: 16px; border: 1px solid #8888; }
.phone { width: 390px; max-width: 100%; font-size: 16px; }
.desk { width: 1280px; max-width: 100%; font-size: 14px; }
.shown > dl, body > p { margin: 8px; }
.wrong { color: #c22; }
"""


@cache
def html() -> str:
    shown = [(one, one.comment) for one in situations()]
    asked = [(one, text, ask(text, one.truth)) for one, text in shown]
    answered = Counter(question for *_, wrong in asked for question in ASKED if question not in wrong)
    five = sum(not wrong for *_, wrong in asked)
    counts = ", ".join(f"{question}: {answered[question]} of {len(asked)}" for question in ASKED)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Comments of kernelgate</title><style>{GITHUB}{STYLE}</style><body>"
        f"<p>{counts}; all five: {five} of {len(asked)}</p>{''.join(_shown(*one) for one in asked)}"
    )


def _shown(one: Situation, text: str, wrong: dict[str, str]) -> str:
    comment = rendered(text)
    answers = "".join(
        f"<dt>{question}<dd>{escape(answer)}"
        + (f' <span class="wrong">✗ {escape(wrong[question])}</span>' if question in wrong else " ✓")
        for question, answer in zip(ASKED, _answers(one.truth), strict=True)
    )
    phone, desk = (f'<article class="{kind} markdown-body">{comment}</article>' for kind in ("phone", "desk"))
    return f'<section class="shown"><h2>{escape(one.name)}</h2>{phone}<dl>{answers}</dl>{desk}</section>'


def _answers(truth: Answers) -> Iterator[str]:
    yield ", ".join(map(_amount, truth.much))
    yield " or ".join(truth.sure)
    yield (truth.why if isinstance(truth.why, str) else " or ".join(truth.why)) or "nothing to explain"
    yield " or ".join(truth.blocks)
    yield truth.now


def _amount(one: Amount) -> str:
    return f"{one.low:.1f} to {one.high:.1f}% {one.side}" if one.side in ("slower", "faster") else one.side


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    files.write(FILE, html())
    print(FILE)
