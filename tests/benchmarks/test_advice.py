"""The page on advice has the table of the sessions that are kept."""

from __future__ import annotations

from benchmarks import advice


def test_the_page_is_of_the_logs_that_are_kept() -> None:
    assert advice.text() in advice.DOCUMENT.read_text(encoding="utf-8"), "python -m benchmarks.advice"
