"""What a comparison of both commits makes of a suspicion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.ci.history import nights
from kernelgate.ci.history.facts import Change
from kernelgate.ci.history.nights import PairMeasured

SUSPECTED = Change("step", "aaaaaaa", 10, "bbbbbbb", 13, "e", 1.0, (0.8, 1.2))
SHOWN = PairMeasured("aaaaaaa", 10, "bbbbbbb", 13, 0.0095, 0.0002, 0.0005, 5)
NOTHING = replace(SHOWN, effect=0.0001)
UNCLEAR = replace(SHOWN, effect=0.006, error=0.003, spread=0.007)


def test_a_comparison_that_shows_it_confirms_it_with_its_own_size() -> None:
    found = nights.settled(SUSPECTED, [SHOWN])
    assert (found.state, found.why) == ("confirmed", "measured side by side: +0.95%")
    low, high = found.interval_pct
    assert 0.8 < low < 0.95 < found.change_pct < 0.96 < high < 1.1


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        (NOTHING, "no change as large as 0.2%"),
        (replace(SHOWN, effect=0.0012, error=1e-5, spread=1e-5), "no change as large as 0.2%"),
        (replace(SHOWN, effect=-0.0095), "the other direction"),
    ],
    ids=["nothing", "certain, and too small to tell", "the other direction"],
)
def test_a_comparison_that_does_not_show_it_refutes_it(measured: PairMeasured, why: str) -> None:
    found = nights.settled(SUSPECTED, [measured])
    assert found.state == "refuted"
    assert why in found.why


def test_an_unclear_comparison_leaves_it_open_until_there_were_enough() -> None:
    states = [nights.settled(SUSPECTED, [UNCLEAR] * looks).state for looks in (1, 2, 3)]
    assert states == ["suspected", "suspected", "refuted"]


def test_what_the_judge_was_not_sure_of_confirms_nothing() -> None:
    """Processes agree by chance; the standard error of the judge, who knows the machine, says more."""
    lucky = replace(SHOWN, spread=1e-6, error=0.005, processes=7)
    assert nights.settled(SUSPECTED, [lucky]).state == "suspected"


def test_other_commits_say_nothing_of_it() -> None:
    elsewhere = replace(SHOWN, base="ccccccc", base_place=40, head="ddddddd", head_place=43)
    across_everything = replace(SHOWN, base_place=0, head_place=60)
    assert nights.settled(SUSPECTED, [elsewhere, across_everything]) == SUSPECTED


def test_a_place_that_shifted_is_not_measured_again_once_confirmed() -> None:
    wider = replace(SUSPECTED, previous="9999999", previous_place=9)
    found = nights.settled(wider, [SHOWN])
    assert (found.state, found.previous, found.commit) == ("confirmed", "aaaaaaa", "bbbbbbb")


def test_a_pair_that_may_not_hold_the_change_does_not_refute_it() -> None:
    wider = replace(SUSPECTED, commit="eeeeeee", place=15)
    assert nights.settled(wider, [NOTHING]) == wider
    assert nights.settled(replace(wider, kind="drift"), [NOTHING]).state == "refuted", "its ends shift every night"
    narrower = replace(SUSPECTED, previous="aaaaaab", previous_place=11)
    assert nights.settled(narrower, [NOTHING]).state == "refuted"


def test_looking_twice_needs_more_than_looking_once() -> None:
    """The same ten processes, as one comparison and as two."""
    halves = replace(SHOWN, spread=0.003, error=1e-6, processes=5)
    whole = replace(halves, spread=0.003 * (8 / 9) ** 0.5, processes=10)
    effects = [at * 1e-4 for at in range(20, 120)]
    one = [nights.settled(SUSPECTED, [replace(whole, effect=at)]).state for at in effects]
    two = [nights.settled(SUSPECTED, [replace(halves, effect=at)] * 2).state for at in effects]
    assert one.count("confirmed") > two.count("confirmed") > 0


def test_what_may_be_the_beginning_of_a_drift_waits_until_nights_tell() -> None:
    """A step that many nights do not place, and few have followed."""
    wide = replace(SUSPECTED, place=16)
    young, old = (nights.CaseChanges(wide.series, tuple(range(count)), (), None, True, ()) for count in (30, 40))
    assert (young.may_become_drift(wide), old.may_become_drift(wide)) == (True, False)
    assert not young.may_become_drift(SUSPECTED)
    assert not young.may_become_drift(replace(wide, kind="drift"))
