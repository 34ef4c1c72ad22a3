"""What kernelgate tells somebody who has none of its files: addresses of the documentation, each of which exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench.core.documentation import DOCS

ROOT = Path(__file__).parent.parent
SOURCES = [path for top in ("bench", "ci", "kernelgate") for path in (ROOT / top).rglob("*.py")]
WAYS = ("page", "docs")
"""The functions that take a place in the documentation last."""


def _documenting(tree: ast.AST) -> Iterator[int]:
    """The texts that stand alone: nobody is shown them."""
    yield from (id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr))


def paths(text: str) -> list[str]:
    """What of a module's messages names a file of docs/ that its reader lacks."""
    tree = ast.parse(text)
    apart = set(_documenting(tree))
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    shown = (node.value for node in texts if id(node) not in apart and node.value != DOCS)
    return [said for said in shown if re.search(r"(?<![\w/.])docs/\w", said)]


def places(text: str) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args)
    named = (node.args[-1] for node in calls if isinstance(node.func, ast.Name) and node.func.id in WAYS)
    constants = (str(one.value) for one in named if isinstance(one, ast.Constant))
    return [one for one in constants if re.match(r"\w+\.md\b", one)]


def headings(page: str) -> set[str]:
    found = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found} | {""}


def test_no_message_names_a_file_that_its_reader_lacks() -> None:
    assert {str(path): found for path in SOURCES if (found := paths(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(("said", "count"), [("say('see docs/cards.md')", 1), ("'''docs/cards.md says why'''", 0)])
def test_a_planted_path_is_found_and_a_docstring_is_none(said: str, count: int) -> None:
    assert len(paths(said)) == count


def test_every_address_leads_to_a_heading() -> None:
    every = {place for path in SOURCES for place in places(path.read_text(encoding="utf-8"))}
    assert len(every) > 10
    assert [place for place in sorted(every) if place.partition("#")[2] not in headings(place.partition("#")[0])] == []
