"""Pages that are written from what is kept have what that says."""

from __future__ import annotations

import pytest

from benchmarks import advice, proof


def test_the_page_on_advice_is_of_the_logs_that_are_kept() -> None:
    assert advice.text() in advice.DOCUMENT.read_text(encoding="utf-8"), "python -m benchmarks.advice"


@pytest.mark.slow
def test_the_page_of_real_commits_is_written_from_the_records() -> None:
    assert proof.text() in proof.PAGE.read_text(encoding="utf-8"), "python -m benchmarks.proof"
