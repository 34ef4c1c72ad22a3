"""From the index to the dashboard: what was measured stands where it belongs, and what is not shown is said."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench.record import Cost, Device, Environment
from kernelgate.ci.history import database, index
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, PointEntry, SeriesEvent
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import dashboard as load
from kernelgate.ci.report.dashboard import Dashboard
from tests.ci.history.entries import an_entry, put

PIN, OTHER = "d" * 40, "e" * 40
LINE = [f"{number:040x}" for number in range(1, 6)]
NEW_DRIVER = Environment(device=Device(name="NVIDIA H200", driver="590.0"), torch="2.11.0", cuda="13.0")


@pytest.fixture
def index_at(tmp_path: Path) -> Iterator[Database]:
    made = database.at(tmp_path / "index.sqlite")
    yield made
    made.engine.dispose()


def loaded(index_at: Database, line: list[str] = LINE) -> Dashboard:
    with database.writing(index_at) as connection:
        index.place(connection, line)
    with database.reading(index_at) as connection:
        return load.dashboard(connection, Policy(), ("v1", LINE[:2]))


def a_night(number: int, us: float) -> CaseEntry:
    return CaseEntry(
        card="norm",
        case="one",
        reference="torch RMSNorm",
        points=(
            PointEntry(side="head", commit=LINE[number], us=us, error=0.001, processes=3, rounds=60),
            PointEntry(side="reference", us=3 * us, processes=3, rounds=60),
            PointEntry(side=f"commit:{PIN}", commit=PIN, us=50.0, processes=3, rounds=60),
        ),
        comparisons=(
            ComparisonEntry(base=PIN, head=LINE[number], effect=math.log(us / 50), error=0.0005, processes=3),
            ComparisonEntry(
                base=LINE[number - 1], head=LINE[number], effect=0.02, processes=3, status="slower", spread_pct=0.2,
                interval_pct=(1.9, 2.1),
            ),
        ),
    )  # fmt: skip


def test_a_series_is_in_the_order_of_the_commits_whatever_the_days(index_at: Database) -> None:
    put(
        index_at,
        an_entry("b", LINE[2], 110.0, day=3, environment=NEW_DRIVER, cases=(a_night(2, 110.0),)),
        an_entry("a", LINE[1], 100.0, day=9, cases=(a_night(1, 100.0),)),
        an_entry("pr", OTHER, 500.0, day=4),
    )
    [found] = loaded(index_at).series
    assert [point.commit for point in found.points] == [LINE[1], LINE[2]]
    assert [one["driver"] for one in found.environments] == ["580.1", "590.0"]
    assert [point.environment for point in found.points] == [0, 1]
    assert [point.reference_us for point in found.points] == [300.0, 330.0]
    assert found.times_reference == "× torch RMSNorm"
    assert found.pin == PIN
    assert [point.pinned for point in found.points] == [pytest.approx(math.log(us / 50)) for us in (100, 110)]
    assert found.points[0].reach == pytest.approx(4.303 * 0.001, rel=1e-3), "Student's t for three processes"
    assert found.note == "1 measurement left out: of commits that are not on the default branch."


def test_changes_are_those_that_history_changes_lists(index_at: Database) -> None:
    line = [f"{number:040x}" for number in range(1, 31)]
    for at, sha in enumerate(line[1:], 1):
        over = ComparisonEntry(
            base=PIN, head=sha, effect=0.03 * (at >= 15) + 0.0001 * (at % 3), error=0.0005, processes=3
        )
        point = PointEntry(side="head", commit=sha, us=100.0, error=0.001, processes=3, rounds=60)
        case = CaseEntry(card="norm", case="one", points=(point,), comparisons=(over,))
        put(index_at, an_entry(sha, sha, day=at, cases=(case,)))
    [shown] = loaded(index_at, line).series
    [change] = shown.changes
    assert (change.commit, change.previous, change.state) == (line[15], line[14], "suspected")
    assert (change.change_pct, shown.made(change.commit)) == (pytest.approx(3.0, abs=0.2), "2026-08-15T00:00:00Z")
    with database.writing(index_at) as connection:
        where = {"card": "norm", "case": "one", "gpu": "NVIDIA H200", "sha": line[15]}
        told = SeriesEvent(made="2026-09-01", kind="accepted", who="maria", why="needed", **where)
        index.add_event(connection, "told", told)
    found = loaded(index_at, line)
    assert [one.state for one in found.series[0].changes] == ["accepted"]
    assert [(one.kind, one.who) for one in found.decisions] == [("accepted", "maria")]


def test_a_week_counts_costs_refusals_and_spread(index_at: Database) -> None:
    costs = (Cost(phase="timing", gpu_seconds=90.0), Cost(phase="timing", gpu_seconds=10.0, retried=True))
    odd = a_night(1, 1.0).model_copy(update={"finding": "another process"})
    put(
        index_at,
        an_entry("a", day=4, costs=costs, cases=(a_night(1, 1.0), odd.model_copy(update={"case": "two"}))),
        an_entry("b", day=5, cases=(), reason="cannot be judged: no samples"),
        an_entry("c", day=12),
        an_entry("other tool", day=5, rules=""),
    )
    newest, week = loaded(index_at).weeks
    assert (newest.monday, week.monday, week.gpu) == ("2026-08-10", "2026-08-03", "NVIDIA H200")
    assert (week.records, week.cases, week.untrusted, week.spreads_pct) == (2, 2, 1, [0.2, 0.2])
    assert week.unjudged == {"cannot be judged: no samples": 1}
    assert (week.gpu_seconds, week.retried_seconds) == ({"timing": 100.0}, 10.0)
