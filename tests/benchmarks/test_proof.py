"""The page of real commits says what the kept records say."""

from __future__ import annotations

from benchmarks import proof


def test_the_page_is_written_from_the_records() -> None:
    assert proof.text() in proof.PAGE.read_text(encoding="utf-8"), "python -m benchmarks.proof"
