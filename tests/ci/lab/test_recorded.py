"""The project's first six sessions, as its founding documents tell of them: kernelgate measured none of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelgate.ci.lab import log

FOLDER = Path(__file__).parents[3] / ".ci/sessions"
MINUTES = {"recorded-n": 180, "recorded-n-plus-1": 60, "recorded-n-plus-2": 110}
MINUTES |= {"recorded-n-plus-3": 67, "recorded-n-plus-4": 30, "recorded-n-plus-5": 130}
USD = {"recorded-n": 0.60, "recorded-n-plus-1": 0.20, "recorded-n-plus-2": 1.77, "recorded-n-plus-3": 1.07}
BOTH = {"recorded-n": r"\$0\.60 .*\$2\.70", "recorded-n-plus-1": r"none was measured .* 0\.12×"}
BOTH |= {"recorded-n-plus-3": r"three of the four .* two as complete", "recorded-n-plus-4": r"0\.034×.*0\.10×"}
"""Sessions of which the documents give two figures, and the note that gives both."""


def events(name: str) -> list[log.Event]:
    return [log.event_of(one) for one in (FOLDER / name / log.FILE).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", sorted(MINUTES))
def test_a_recorded_session_reads_and_says_where_it_is_from(name: str) -> None:
    opened, *between, closed = events(name)

    assert isinstance(opened, log.Opened)
    assert isinstance(closed, log.Closed)
    assert (opened.name, opened.source) == (name, "recorded")
    assert re.match(r"founding documents? 00\d\.md:\d+", opened.origin or "")
    assert closed.minutes == MINUTES[name]
    spent = [one.usd for one in between if isinstance(one, log.SessionCost)]
    assert sum(spent) == pytest.approx(USD.get(name, 0.0))
    assert not any(one.outcomes for one in between if isinstance(one, log.TriedChange)), "no interval was recorded"


@pytest.mark.parametrize(("name", "both"), BOTH.items())
def test_where_the_documents_disagree_both_figures_stand_there(name: str, both: str) -> None:
    assert any(re.search(both, one.said) for one in events(name) if isinstance(one, log.SessionNote))


def test_every_line_holds_what_is_known_and_no_more() -> None:
    for name in MINUTES:
        for text in (FOLDER / name / log.FILE).read_text(encoding="utf-8").splitlines():
            assert None not in json.loads(text).values()
