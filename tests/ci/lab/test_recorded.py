"""The project's first six sessions, as its founding documents tell of them: kernelgate measured none of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.ci.lab import log

FOLDER = Path(__file__).parents[3] / ".ci/sessions"
MINUTES = {"recorded-n": 180, "recorded-n-plus-1": 60, "recorded-n-plus-2": 110}
MINUTES |= {"recorded-n-plus-3": 67, "recorded-n-plus-4": 30, "recorded-n-plus-5": 130}
USD = {"recorded-n": 0.60, "recorded-n-plus-1": 0.20, "recorded-n-plus-2": 1.77, "recorded-n-plus-3": 1.07}


def events(name: str) -> list[log.Event]:
    return [log.EVENT.validate_json(one) for one in (FOLDER / name / log.FILE).read_text(encoding="utf-8").splitlines()]


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
