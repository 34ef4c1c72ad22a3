"""Which commits people are told of: confirmed ones alone, searched for where several come into question."""

from __future__ import annotations

import pytest

from kernelgate.ci.history import culprits, database, index, nights
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import KnownCulprits
from kernelgate.ci.history.nights import LOOKS
from kernelgate.ci.history.series import Wanted
from tests.ci.history.entries import named, put
from tests.ci.history.test_nights import NIGHTS, STEP, a_night, a_pair, event, found, sha, stepped

BACK = 18
NOTHING = KnownCulprits(schema="kernelgate.culprits/1", culprits=())


def told(index_at: Database) -> KnownCulprits:
    with database.reading(index_at) as connection:
        return culprits.of_index(connection, nights.of_index(connection, Wanted()))


def decide(index_at: Database, *events: SeriesEvent) -> None:
    with database.writing(index_at) as connection:
        for number, one in enumerate(events):
            index.add_event(connection, named(f"e{number}"), one)


def nightly(index_at: Database, *cases: str, back: int = NIGHTS, at: int = STEP) -> None:
    """Each case 2% slower from the night `at` on, until the night `back`."""
    pct = [2.0 if at <= number < back else 0.0 for number in range(NIGHTS)]
    found(index_at, *(a_night(number, pct[number], case=case) for number in range(NIGHTS) for case in cases))


def test_nobody_is_told_of_what_is_only_suspected_or_faster(index_at: Database) -> None:
    nightly(index_at, "one")
    assert told(index_at) == NOTHING
    put(index_at, a_pair(STEP - 1, STEP, -2.0))
    assert told(index_at) == NOTHING


def test_a_confirmed_change_of_one_commit_has_its_culprit(index_at: Database) -> None:
    nightly(index_at, "one")
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    [culprit] = told(index_at).culprits
    [case] = culprit.cases
    assert (culprit.previous, culprit.commit, culprit.commits) == (sha(STEP - 1), sha(STEP), 1)
    assert (case.card, case.case, case.state, case.by) == ("norm", "one", "slower", "")
    assert case.change_pct == pytest.approx(2.0, abs=0.1)
    assert case.record == named(f"pair {STEP - 1} {STEP}")
    assert case.interval_pct[0] < 2.0 < case.interval_pct[1]
    assert culprits.text(told(index_at)).startswith(f"{sha(STEP)[:12]}: norm/one on NVIDIA H200 +2.00%, slower")


def test_of_several_commits_one_is_searched_for_first(index_at: Database) -> None:
    nightly(index_at, "one")
    put(index_at, a_pair(STEP - 3, STEP, 2.0))
    [search] = told(index_at).searches
    assert (told(index_at).culprits, search.good, search.bad) == ((), sha(STEP - 3), sha(STEP))
    assert set(search.pairs) == {(STEP - 3, STEP - 2), (STEP - 3, STEP - 1)}


def test_a_confirmed_change_back_fixes_it_and_one_by_half_does_not(index_at: Database) -> None:
    nightly(index_at, "one", back=BACK)
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    assert told(index_at).culprits[0].cases[0].state == "slower", "the way back is only suspected"
    half = a_pair(BACK - 1, BACK, -1.0)
    put(index_at, half)
    assert [case.state for one in told(index_at).culprits for case in one.cases] == ["slower"]
    put(index_at, a_pair(BACK - 1, BACK, -1.96))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("fixed", sha(BACK))


def test_what_was_accepted_is_said_to_be(index_at: Database) -> None:
    found(index_at, *(a_night(number, stepped(number)) for number in range(NIGHTS)))
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    decide(index_at, event("accepted", STEP))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("accepted", "by somebody: it must be")


def sparse(index_at: Database, gap: int) -> None:
    """Of so many commits up to the step, the last alone was measured at night."""
    measured = [number for number in range(NIGHTS) if not STEP - gap < number < STEP]
    found(index_at, *(a_night(number, stepped(number)) for number in measured), a_pair(STEP - gap, STEP, 2.0))


def compare(index_at: Database, old: int, new: int, pct: float, look: int = 0) -> None:
    pair = a_pair(old, new, pct)
    found(index_at, pair.model_copy(update={"name": named(f"{old} {new} {look}")}))


@pytest.mark.parametrize("culprit", [STEP - 5, STEP])
def test_comparisons_with_the_older_end_halve_the_range_until_one_commit_is_left(
    index_at: Database, culprit: int
) -> None:
    sparse(index_at, 6)
    for _ in range(4):
        for search in told(index_at).searches:
            old, new = search.pairs[0]
            compare(index_at, old, new, 2.0 if old < culprit <= new else 0.0)
    [one] = told(index_at).culprits
    assert (one.kind, one.previous, one.commit, one.commits) == ("commit", sha(culprit - 1), sha(culprit), 1)


def test_what_came_little_by_little_is_no_commits_fault(index_at: Database) -> None:
    """Each of the commits made a sixth; the one in the middle is compared with the one before it, and let go."""
    sparse(index_at, 6)
    for look in range(8):
        for search in told(index_at).searches:
            old, new = search.pairs[0]
            compare(index_at, old, new, 2.0 / 6 * (new - old), look)
    [one] = told(index_at).culprits
    assert (one.kind, one.previous, one.commit, one.commits) == ("drift", sha(STEP - 6), sha(STEP), 6)
    assert culprits.text(told(index_at)).startswith(
        f"drift since {sha(STEP - 6)[:12]} up to {sha(STEP)[:12]}: norm/one"
    )


def test_a_drift_is_told_as_one_and_not_searched(index_at: Database) -> None:
    """Nights of 60 commits, each a little slower, and a comparison of nearly its ends."""
    nights_ = 80
    line = [sha(number) for number in range(nights_)]
    put(index_at, *(a_night(number, 2.0 * min(max(number - 10, 0), 60) / 60) for number in range(nights_)))
    with database.writing(index_at) as connection:
        index.place(connection, line)
    with database.reading(index_at) as connection:
        [[suspected]] = [one.changes for one in nights.of_index(connection, Wanted())]
    assert (suspected.kind, told(index_at)) == ("drift", NOTHING)
    put(index_at, a_pair(suspected.previous_place + 2, suspected.place - 2, 1.9))
    assert told(index_at).searches == ()
    [one] = told(index_at).culprits
    assert (one.kind, one.commits) == ("drift", suspected.place - suspected.previous_place - 4)


def test_a_commit_that_cannot_be_told_is_left_and_the_rest_is_told_as_several(index_at: Database) -> None:
    sparse(index_at, 2)
    for look in range(LOOKS):
        [search] = told(index_at).searches
        assert search.pairs == ((STEP - 2, STEP - 1),)
        compare(index_at, STEP - 2, STEP - 1, 1.0, look)
    [one] = told(index_at).culprits
    assert (one.previous, one.commit, one.commits) == (sha(STEP - 2), sha(STEP), 2)
