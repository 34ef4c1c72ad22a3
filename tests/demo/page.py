"""The demo's page: each pull request as its author would see it on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

from kernelgate.ci.github.prove import Proposal

GITHUB = (Path(__file__).parents[1] / "ci" / "report" / "github.css").read_text(encoding="utf-8")
STYLE = """
body { padding: 16px; }
main { display: flex; flex-wrap: wrap; gap: 24px; }
.phone { width: 390px; max-width: 100%; height: 740px; overflow: auto; padding: 16px; border: 1px solid #8888;
  border-radius: 24px; font-size: 16px; }
.phone h2 { margin: 0 0 4px; font-size: 1.3em; }
.bot { border: 1px solid #8888; border-radius: 6px; margin: 12px 0; }
.bot > header { padding: 6px 12px; border-bottom: 1px solid #8888; background: #8882; }
.bot > div { padding: 12px 12px 0; overflow-x: auto; }
.by { margin: 0 0 12px; padding-bottom: 8px; border-bottom: 1px solid #8888; }
.label { border: 1px solid #8888; border-radius: 1em; padding: 0 8px; font-size: 0.8em; }
"""
SIGNS = {"success": "✅", "failure": "❌"}


@dataclass(frozen=True)
class Shown:
    """A pull request after its report."""

    name: str
    proposal: Proposal
    number: int
    comments: Sequence[str]
    check: tuple[str, str]
    """Conclusion and title of the check run."""
    labels: Sequence[str]
    seconds: float
    """From opening it to the comment."""


def html(shown: Sequence[Shown]) -> str:
    title = "Five pull requests, measured on this machine's CPU"
    return framed(title, f"<h1>{title}</h1><main>{''.join(map(_phone, shown))}</main>")


def framed(title: str, body: str) -> str:
    """A page in GitHub's sizes."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{GITHUB}{STYLE}</style><body>{body}"
    )


def _phone(one: Shown) -> str:
    comments = "".join(
        f'<section class="bot"><header><b>github-actions</b> bot</header><div class="markdown-body">{rendered(text)}'
        "</div></section>"
        for text in one.comments
    )
    conclusion, title = one.check
    labels = " ".join(f'<span class="label">{escape(label)}</span>' for label in one.labels)
    return (
        f'<article class="phone" id="{one.name}"><h2>{escape(one.proposal.title)} #{one.number}</h2>'
        f"<p>{labels}</p><p>{escape(one.proposal.body)}</p>{comments}"
        f"<p>{SIGNS.get(conclusion, '🟡')} <b>kernelgate verdict</b> {escape(title)}</p>"
        f"<p>{one.seconds:.0f} s from the push to this comment</p></article>"
    )


def rendered(markdown: str) -> str:
    """As GitHub shows it."""
    shown: str = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    return shown
