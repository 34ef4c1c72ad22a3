"""docs/examples, which GitHub renders for people who want to see a comment before they try anything."""

from __future__ import annotations

from tests.gallery.examples import FOLDER, texts


def test_the_examples_are_the_comments_of_today() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")} == dict(texts())
