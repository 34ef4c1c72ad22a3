"""What a terminal shows: every line within 80 columns, and no more than is known."""

from __future__ import annotations

from kernelgate.ci.history import database, index, series
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.series import Wanted
from tests.ci.history.entries import H200, an_entry, put


def text(index_at: Database, wanted: Wanted = Wanted()) -> str:  # noqa: B008 - frozen
    with database.reading(index_at) as connection:
        return series.text(connection, wanted)


def test_one_series_shows_each_commit(index_at: Database) -> None:
    odd = an_entry("a").cases[0].model_copy(update={"finding": "the GPU was throttled"})
    put(index_at, an_entry("a", "a" * 40, cases=(odd,)), an_entry("b", "b" * 40, 103.0, day=2))
    assert text(index_at).splitlines() == [
        "norm/one on NVIDIA H200",
        "",
        "driver 580.1, torch 2.11.0, cuda 13.0",
        "measured    commit       time      ±   against its base",
        "2026-08-01  aaaaaaa  100.0 µs  0.10%  not to be trusted",
        "2026-08-02  bbbbbbb  103.0 µs  0.10%             +2.02%",
    ]


def test_what_is_beyond_every_number_is_no_number(index_at: Database) -> None:
    (case,) = an_entry("a").cases
    points = tuple(one.model_copy(update={"error": 1e4}) for one in case.points)
    comparisons = tuple(one.model_copy(update={"effect": 1e4}) for one in case.comparisons)
    wild = case.model_copy(update={"points": points, "comparisons": comparisons})
    put(index_at, an_entry("a", "a" * 40, cases=(wild,)))
    assert text(index_at).splitlines()[-1].split() == ["2026-08-01", "aaaaaaa", "100.0", "µs", "—", "—"]


def test_commits_off_the_default_branch_are_left_out_and_counted(index_at: Database) -> None:
    put(index_at, an_entry("a"), an_entry("b", "b" * 40, 103.0, day=2))
    with database.writing(index_at) as connection:
        index.place(connection, ["a" * 40])
    found = text(index_at)
    assert "bbbbbbb" not in found
    assert "Left out: 1 measurement of commits that are not on the default branch" in found


def test_no_line_is_longer_than_a_terminal(index_at: Database) -> None:
    put(index_at, an_entry("a", environment=H200.model_copy(update={"torch": "2.11.0 and " * 20})))
    assert max(map(len, text(index_at).splitlines())) <= 80
