"""What a terminal shows: every line within 80 columns, and no more than is known."""

from __future__ import annotations

from kernelgate.bench.record import Device
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


def test_several_series_are_lines_by_card_gpu_and_environment(index_at: Database) -> None:
    l4 = H200.model_copy(update={"device": Device(name="NVIDIA L4")})
    put(index_at, an_entry("a"), an_entry("b", "b" * 40, 103.0, day=2), an_entry("c", us=900.0, environment=l4))
    assert text(index_at).splitlines() == [
        "norm on NVIDIA H200",
        "driver 580.1, torch 2.11.0, cuda 13.0",
        "case  times      last  since first",
        "one       2  103.0 µs        +3.0%",
        "",
        "norm on NVIDIA L4",
        "torch 2.11.0, cuda 13.0",
        "case  times      last  since first",
        "one       1  900.0 µs            —",
    ]


def test_commits_off_the_default_branch_are_left_out_and_counted(index_at: Database) -> None:
    put(index_at, an_entry("a"), an_entry("b", "b" * 40, 103.0, day=2))
    with database.writing(index_at) as connection:
        index.place(connection, ["a" * 40])
    found = text(index_at)
    assert "bbbbbbb" not in found
    assert "Left out: 1 measurement of commits that are not on the default branch" in found


def test_of_many_environments_the_newest_are_shown_and_the_rest_is_said(index_at: Database) -> None:
    drivers = [H200.model_copy(update={"device": Device(name="NVIDIA H200", driver=f"580.{at}")}) for at in range(5)]
    for at in (4, 0, 2, 1, 3):  # not in the order of time
        put(index_at, an_entry(f"{at}", f"{at}" * 40, day=at + 1, environment=drivers[at]))
    found = text(index_at)
    assert [line.split(",")[0] for line in found.splitlines() if line.startswith("driver")] == [
        "driver 580.2", "driver 580.3", "driver 580.4"
    ]  # fmt: skip
    assert found.endswith("Left out: 2 earlier environments; --json has them.\n")
    assert "earlier" not in text(index_at, Wanted(since="2026-08-03T00:00:00Z"))


def test_no_line_is_longer_than_a_terminal(index_at: Database) -> None:
    put(index_at, an_entry("a", environment=H200.model_copy(update={"torch": "2.11.0 and " * 20})))
    assert max(map(len, text(index_at).splitlines())) <= 80
