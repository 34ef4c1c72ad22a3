"""Lines and instructions on the page: whose they are, what they gained, and what is said where there are none."""

from __future__ import annotations

import re

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import HotSpots
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.build import reported
from kernelgate.ci.report.page import write
from tests.ci.report.situations import DATA, LONG, POLICY, full, profiled, situation

LIMIT = 500_000
"""Bytes of the page of 27 cases."""


def shown(name: str) -> str:
    page = write(situation(name), Gates())
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page[page.index('<section class="samples"') :]))


def test_what_gained_stands_first_with_both_sides() -> None:
    words = shown("samples by line")
    assert "(base 4,037, head 10,533 in all)" in words
    assert re.search(
        r"int x = \S+ .{0,60} gpu/kernels/collection.cu:17 → 9 base 2.4% short scoreboard "
        r"head 23.2% MIO queue full gained 20.8 points",
        words,
    )
    assert words.index("gained 20.8 points") < words.index("gained 8.7") < words.index("lost 35.0 points")
    assert words.index("Base: hottest instructions") < words.index("Head: hottest instructions")
    assert "17.5% MIO queue full S2R R17, SR_TID.X collection.cu:9" in words


def test_of_the_head_alone_there_are_shares_and_how_to_take_the_base() -> None:
    words = shown("samples of the head alone")
    assert "Which lines took the samples of the base is not known" in words
    assert "kernelgate profile --set full --base 9f8e7d6c5b4a --case s512_b32_h8_d64_fp16 does." in words
    assert "23.2% MIO queue full" in words
    assert "gained" not in words


def test_a_quick_profile_says_what_takes_them() -> None:
    words = shown("less occupancy")
    assert "Which lines took the samples is not known: a quick profile takes none by line." in words
    assert "kernelgate profile --set full --base" in words


def test_what_was_profiled_and_not_timed_is_shown_too() -> None:
    page = write(situation("profiled alone"), Gates())
    assert '<h2 id="profiled">Profiled, and not timed</h2>' in page
    assert "Waits: head against base" in page
    assert "gained 20.8 points" in page


def test_a_case_that_was_not_profiled_says_nothing_of_lines() -> None:
    assert 'class="samples"' not in write(situation("slower"), Gates())


@pytest.mark.parametrize("name", ["hostile samples", "long samples"])
def test_what_a_record_says_of_lines_is_text(name: str) -> None:
    page = write(situation(name), Gates())
    assert "<b " not in page
    assert "\u202e" not in page


@pytest.mark.slow
def test_27_cases_with_the_longest_of_samples_stay_small() -> None:
    measured = record.read(DATA / "timing" / "all_cases_slower.json")
    most = full(LONG * 2, HotSpots(samples=10_000))
    sides = tuple(
        one.model_copy(update={"case": measured.cases[0].id, "card": measured.cases[0].card, "hot_spots": most})
        for one in profiled("attention_spills").profile
    )
    whole = reported(measured.model_copy(update={"profile": sides}), POLICY)
    page = write(whole, Gates())
    assert len(measured.cases) == 27
    assert page.count("hottest instructions") == 2
    assert len(page.encode()) <= LIMIT
