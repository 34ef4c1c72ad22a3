"""docs/examples, which GitHub renders for people who want to see a comment before they try anything."""

from __future__ import annotations

import re

import pytest

from tests.gallery.examples import FOLDER, texts


def test_the_examples_are_the_comments_of_today() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")} == dict(texts())


@pytest.mark.parametrize(
    ("file", "begins"),
    [
        ("faster.md", r"### ✅ Does not block: .*faster"),
        ("slower.md", r"### ❌ Blocks: .*slower"),
        ("slower-and-why.md", r"### ❌ Blocks: .*slower"),
        ("likely-slower.md", r"### \S+ .*likely.*slower"),
        ("no-change.md", r"### ✅ Does not block: no change"),
        ("cannot-tell.md", r"### ❔ .*cannot tell"),
    ],
)
def test_each_example_is_of_another_kind(file: str, begins: str) -> None:
    assert re.match(begins, texts()[file])
    assert "**Why**" in texts()[file] or file != "slower-and-why.md"
