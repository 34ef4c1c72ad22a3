"""Plain sentences in docs/*.md: subject, verb, object. Each pattern is of sentences that readers had to read twice.

It is no rule of Vale: what PyPI and npm have of that name fetches the program when it is installed or run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TWICE = re.compile(
    r"""(?:^|(?<=[.:;]\ ))(?:               # at the beginning of a sentence
      \w+(?:ed|en|eld|ept|old|eft)\ (?:is|are|was|were)\b  # "Filled is what was kept."
      | Not\ \w+:                           # "Not noticed: a function ..."
      | Of\ [\d,]+\ [^.,]+,                 # "Of 25 planted causes, the first ..."
      | What\ [^.?|]{3,40}\ is\ [^.?]+\.    # "What has a mark is never called slower."
    ) | \bwhat\ is\ not\ known\b | \bis\ what\ \w+s\b | \btested\ so\b""",
    re.VERBOSE | re.MULTILINE,
)


def twice(text: str) -> list[str]:
    """What of a page's prose matches; code, tables and generated parts are left out."""
    prose = re.sub(r"```.*?```|<!-- (\S+): begin.*?\1: end -->|^(?:\||    )[^\n]*$", "", text, flags=re.S | re.M)
    return [found[0] for found in TWICE.finditer(re.sub(r"(?<=\S)\n(?=[^\n\-#|])", " ", prose))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_is_one_to_read_twice(page: Path) -> None:
    assert twice(page.read_text(encoding="utf-8")) == []


def test_the_pages_are_few_and_short() -> None:
    assert len(PAGES) <= 20
    words = [word for page in PAGES for word in page.read_text(encoding="utf-8").split()]
    assert sum(any(map(str.isalnum, word)) for word in words) < 25_000, "the rules of tables are no words"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 450
    assert len(re.findall(r"(?<!!)\[[^\]]*\]\(", readme)) <= 12


def test_documents_that_no_checkout_has_are_cited_by_title_and_section() -> None:
    logs = (ROOT / ".ci" / "sessions").glob("*/log.jsonl")
    assert [log.parent.name for log in logs if re.search(r"\b\d{3}\.md\b", log.read_text(encoding="utf-8"))] == []
