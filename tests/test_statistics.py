"""docs/statistics.md: the chances to miss wrong calls, and of lotteries of placement, computed again."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
SECTION = PAGE.split("### The chance to miss wrong calls")[1].split("\n## ")[0]
SHARES = (0.01, 0.03, 0.1)
COMPARED = 0.25
ROWS = re.findall(r"^\| ([\d,]+) \| (.*) \|$", SECTION, flags=re.MULTILINE)


def written(chance: float) -> str:
    """As the page writes a probability."""
    percent = 100 * chance
    if percent < 0.001:
        return "< 0.001%"
    return f"{percent:.2g}%" if percent < 10 else f"{percent:.0f}%"


def missed(wrong: int) -> float:
    """None of `wrong` calls is compared, where each call is with the same probability."""
    return (1 - COMPARED) ** wrong


def test_every_number_of_the_table() -> None:
    assert [calls for calls, _ in ROWS] == ["200", "800", "3,200"]
    for calls, cells in ROWS:
        wrong = [round(share * int(calls.replace(",", ""))) for share in SHARES]
        assert cells.split(" | ") == [f"{written(missed(k))} ({k})" for k in wrong]


def test_the_figures_in_the_text() -> None:
    assert "3% of 800 calls are 24 calls: 0.75²⁴ = 0.1%." in SECTION.replace("\n", " ")
    assert written(missed(24)) == "0.1%"


def test_the_lotteries_of_placement() -> None:
    """Base and head are each slow in half of the processes: the head alone in a quarter of them, and so is the base."""
    text = PAGE.replace("\n  ", " ").replace("\n", " ")
    two, three, four = (f"{100 * 2 * 0.25**processes:.1f}%" for processes in (2, 3, 4))
    assert f"in {two} of runs of two processes, in {three} of three and {four} of four" in text
    assert f"all of four are in one record of {1 / 0.5**4:.0f}" in text
