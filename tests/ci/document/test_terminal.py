"""The report in a terminal of 80 columns: no word is cut, and the verdict is the last thing on the screen."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings

from kernelgate.ci.document import render
from kernelgate.ci.document.model import Column, Mark, Report, Table
from tests.ci.document.test_render import HOSTILE, hostile_reports
from tests.ci.report_examples import reports


def columns(line: str) -> int:
    """How wide a line is: a picture takes two columns."""
    return sum(1 + (unicodedata.east_asian_width(character) == "W") for character in line)


@pytest.mark.parametrize("name", sorted(reports()))
def test_no_word_is_cut_nothing_is_wider_than_the_terminal_and_the_verdict_is_last(name: str) -> None:
    said = reports()[name]
    for details in (True, False):
        shown = render.terminal(said, details)
        for line in shown.splitlines():
            copied = line.startswith("    ") or not line.strip().count(" ")  # what cannot be broken
            assert columns(line) <= render.WIDTH or copied, line
        last = shown.rstrip("\n").rpartition("\n\n")[2]
        assert " ".join(last.split()) == render.first_line(said)
        for row in said.cases.rows if said.cases else ():
            assert " ".join(render.plain_line(row[3]).split()) in " ".join(shown.split())
        for words in (said.headline, said.under, *said.checks, *said.remarks):
            assert " ".join(render.plain_line(words).split()) in " ".join(shown.split())


def test_folded_parts_wait_behind_an_option_and_are_named() -> None:
    said = reports()["slower"]
    brief, whole = (render.terminal(said, details) for details in (False, True))
    assert "More with --details: 8 unchanged cases; statistics; " in " ".join(brief.split())
    assert "Mann–Whitney" in whole
    assert "(https://github.com/" in brief.partition("Now:")[2], "what to do next has its address in full"
    assert "Mann–Whitney" not in brief
    assert "--details" not in whole


def test_a_wide_table_stands_row_by_row() -> None:
    titles = tuple(Column(f"column {number}") for number in range(9))
    table = Table(titles, (tuple((f"value {number}",) for number in range(9)),))
    said = Report((Mark.SAME, " Same"), (), cases=table)
    assert render.terminal(said).splitlines()[:2] == [
        "value 0",
        "  column 1 value 1; column 2 value 2; column 3 value 3; column 4 value 4; column",
    ]


@given(HOSTILE)
@settings(max_examples=15)
def test_no_text_of_a_record_steers_the_terminal(text: str) -> None:
    for said in hostile_reports(text).values():
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", render.terminal(said))
