"""Copies fill an index as adding would: the same rows, of other records, commits and environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.history import fill
from kernelgate.ci.history import database, index, shown, tables
from kernelgate.ci.history.shown import Wanted
from tests.ci.history.entries import BASE, an_entry, counted, put


def test_copies_have_the_rows_of_what_was_added(tmp_path: Path) -> None:
    filled = database.at(tmp_path / "index.sqlite")
    put(filled, *(an_entry(f"{day}", f"{day}" * 40, day=day) for day in (1, 2, 3)))
    with database.writing(filled) as connection:
        index.place(connection, [f"{day}" * 40 for day in (1, 2, 3)])
    fill.copied(filled, 2)
    with database.reading(filled) as connection:
        found = shown.series(connection, Wanted())
    filled.engine.dispose()
    assert [len(one.points) for one in found] == [3, 3, 3]
    assert {one["base"] for series in found for one in series.comparisons} == {BASE}
    assert len({one["commit"] for series in found for one in series.points}) == counted(filled, tables.RECORD) == 9
    for one in found:
        assert [row["us"] for row in one.points] == pytest.approx([100.0] * 3, rel=0.006)
        assert [row["place"] for row in one.points] == sorted(row["place"] for row in one.points)
    put(filled, an_entry("4", "4" * 40, day=4))
    assert counted(filled, tables.RECORD) == 10
