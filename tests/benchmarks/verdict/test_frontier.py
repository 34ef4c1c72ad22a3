"""The frontier of effect against processes: the page says what was kept, that reaches what was asked, and it is so."""

from __future__ import annotations

import json
from functools import partial

import pytest

from benchmarks.verdict import frontier, noise
from benchmarks.verdict.frontier import LOOKS, directions, estimates, wandering
from benchmarks.verdict.spreads import lottery, scattered

KEPT = json.loads(frontier.KEPT.read_text(encoding="utf-8"))
CHANGED, IDENTICAL = KEPT["changed"], KEPT["identical"]


def after(processes: int, shares: list[float]) -> float:
    return shares[LOOKS.index(processes)]


def test_the_page_has_what_was_kept() -> None:
    page = (frontier.ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    begin, end = (f"<!-- benchmark-frontier: {which} -->" for which in ("begin", "end"))
    assert page.partition(begin)[2].partition(end)[0].strip() == frontier.table(KEPT)
    assert noise.text(json.loads(noise.KEPT.read_text(encoding="utf-8"))) in page


def test_identical_code_seldom_gets_a_direction() -> None:
    """But for lotteries that are larger than what two processes may show, which the page names."""
    out_of_reach = {"20% of processes 10% slower, head"}
    small = {name: found[-1] for name, found in IDENTICAL.items() if name not in out_of_reach}
    assert small.pop("spread 10%") <= 0.01
    assert small.pop("50% of processes 0.5% slower, each side") <= 0.01, "as before: 0.65%"
    assert max(small.values()) <= 0.005, small


def test_a_few_records_are_as_the_page_has_them() -> None:
    tenth = directions(partial(estimates, draw=scattered(0.02), change_pct=10.0, cases=1), 30)
    assert (after(2, tenth), after(3, tenth)) == (pytest.approx(1.0, abs=0.1), 1.0)
    assert (
        after(7, directions(partial(estimates, draw=lottery(0.2, 2.0, both=False), change_pct=0.0, cases=1), 30)) < 0.1
    )
    assert after(7, directions(partial(wandering, change_pct=3.0), 8)) > 0.8
