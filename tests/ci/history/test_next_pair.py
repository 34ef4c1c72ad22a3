"""Which comparison a run makes: the most promising one, on the right runners, within what is left of the night."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernelgate.bench.record import Cost, Run
from kernelgate.ci.history import database, entry, next_pair, nights, store
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.next_pair import NextPair, ThisNight
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.history.store import Store
from kernelgate.ci.policy.policy import Policy
from tests.ci.history.entries import an_entry, put
from tests.ci.history.test_nights import NIGHTS, STEP, a_night, a_pair, found, sha, stepped
from tests.ci.history.test_tonight import suspect

TONIGHT = ThisNight(datetime(2026, 8, 20, 4, tzinfo=UTC), [sha(number) for number in range(NIGHTS)])


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return store.at(str(tmp_path / "store"))


def labelled(index_at: Database, kept: Store) -> None:
    """The newest record of the kind of GPU says on which runners it is."""
    made = an_entry("labelled", day=19, run=Run(gpu="l4", created_at="2026-08-19T00:00:00Z"), cases=())
    put(index_at, made)
    store.write(kept, "judgements", f"{made.name}-{made.rules}", entry.to_json(made))


def spent(index_at: Database, name: str, gpu_seconds: float, run: Run) -> None:
    put(index_at, an_entry(name, run=run, cases=(), costs=(Cost(phase="calls", gpu_seconds=gpu_seconds),)))


def chosen(index_at: Database, kept: Store) -> NextPair | None:
    with database.reading(index_at) as connection:
        every = nights.of_index(connection, Wanted(), Policy())
        return next_pair.of_index(connection, kept, every, Policy(), TONIGHT)


def test_the_pair_and_its_runners(index_at: Database, kept: Store) -> None:
    suspect(index_at, "one")
    labelled(index_at, kept)
    told = next_pair.outputs(chosen(index_at, kept))
    assert (told["gpu"], told["target"], told["cases"]) == ("l4", "8.9", "norm/one")
    assert (told["base_sha"], told["head_sha"]) == (sha(STEP - 1), sha(STEP))


def test_nothing_suspected_or_no_runners_of_that_kind_is_no_pair(index_at: Database, kept: Store) -> None:
    labelled(index_at, kept)
    put(index_at, an_entry("a pull request's"))
    assert chosen(index_at, kept) is None
    assert set(next_pair.outputs(None).values()) == {""}
    elsewhere = an_entry("later", run=Run(gpu="a100", created_at="2026-08-20T00:00:00Z"), cases=())
    put(index_at, elsewhere)
    store.write(kept, "judgements", f"{elsewhere.name}-{elsewhere.rules}", entry.to_json(elsewhere))
    assert chosen(index_at, kept) is None


def test_what_the_night_has_spent_is_gone(index_at: Database, kept: Store) -> None:
    """By comparisons of this night: neither its own baseline nor last night counts."""
    suspect(index_at, "one")
    labelled(index_at, kept)
    night = {"event": "schedule", "base_sha": "b" * 40}
    spent(index_at, "yesterday", 590.0, Run(created_at="2026-08-19T05:00:00Z", **night))
    spent(index_at, "baseline", 590.0, Run(created_at="2026-08-20T03:00:00Z", event="schedule"))
    assert chosen(index_at, kept) is not None
    spent(index_at, "tonight", 590.0, Run(created_at="2026-08-20T03:30:00Z", **night))
    assert chosen(index_at, kept) is None


def test_a_confirmed_change_among_several_commits_is_searched_by_halves(index_at: Database, kept: Store) -> None:
    """Between two measured commits, of which the index knows none; within the same budget."""
    measured = [number for number in range(NIGHTS) if not STEP - 5 < number < STEP]
    found(index_at, *(a_night(number, stepped(number)) for number in measured), a_pair(STEP - 5, STEP, 2.0))
    assert chosen(index_at, kept) is None
    labelled(index_at, kept)
    told = next_pair.outputs(chosen(index_at, kept))
    assert (told["gpu"], told["base_sha"], told["cases"]) == ("l4", sha(STEP - 5), "norm/one")
    assert told["head_sha"] in {sha(STEP - back) for back in (2, 3, 4)}
    spent(index_at, "tonight", 590.0, Run(created_at="2026-08-20T03:30:00Z", event="schedule", base_sha="b" * 40))
    assert chosen(index_at, kept) is None
