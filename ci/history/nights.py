"""From the index to what `changes.py` reads, and back: each case's nights, its comparisons, and what became of them.

A night is a head that ran beside a pinned commit in the same processes. Nights of another pinned commit or of another
environment are apart: only what has both in common can be compared.

A case that never ran beside a pinned commit is looked at by its times alone. They scatter by more than one run shows,
since nothing cancels the machine out; how far is seen from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import sqlalchemy as sa

from kernelgate.bench.record import Device
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Column, Line, Table
from kernelgate.ci.history import changes, confirm, series
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.history.database import COMMIT, EVENT, POINT
from kernelgate.ci.history.facts import CaseName, Change, HistoryComparison, MeasuredSeries
from kernelgate.ci.history.series import Wanted

HEADS = series.POINTS.where(POINT.c.side == "head")
LEAST_TIMES = 4
"""Fewer do not show how far they scatter."""
NORMAL_MAD = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""


@dataclass(frozen=True)
class CaseChanges:
    """The changes of one case, oldest first."""

    series: CaseName
    places: tuple[int, ...]
    """Of the nights' commits, in their order."""
    changes: tuple[Change, ...]
    spread_pct: float | None = None
    """How far the case's processes scatter, by the median of its comparisons."""
    pinned: bool = True
    """Whether the nights are against a pinned commit; else they are times, which a change of the machine meets too."""


def of_index(connection: sa.Connection, wanted: Wanted) -> tuple[CaseChanges, ...]:
    """What the history knows of each case that has nights. Raises KernelgateError where nothing has these names."""
    places = {row.sha: row.place for row in connection.execute(sa.select(COMMIT.c.sha, COMMIT.c.place))}
    decided = connection.execute(sa.select(EVENT).order_by(EVENT.c.made, EVENT.c.name)).all()
    groups: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in series.chosen(connection, wanted):
        groups.setdefault((row["card"], row["case"], row["gpu"], row["repository"]), []).append(row)
    found = []
    for (card, case, gpu, repository), rows in sorted(groups.items()):  # one at a time: all of them may be gigabytes
        group = series.loaded(connection, rows, wanted.since, None)
        if not any(_is_pinned(row) for one in group for row in one.comparisons):
            group = series.loaded(connection, rows, wanted.since, HEADS)
        name = CaseName(repository, card, case, gpu)
        same = (row for row in decided if (row.card, row.case, row.gpu) == (card, case, gpu))
        own = [row for row in same if row.repository in ("", repository)]
        found.append(_of_case(name, group, places, own))
    return tuple(one for one in found if one.places)


def _of_case(
    name: CaseName,
    group: Sequence[MeasuredSeries],
    places: Mapping[str, int | None],
    decided: Sequence[Any],
) -> CaseChanges:
    excluded = {row.sha for row in decided if row.kind == "excluded"}
    accepted = {row.sha: f"by {row.who}: {row.why}" for row in decided if row.kind == "accepted"}
    nights = [night for number, one in enumerate(group) for night in _nights(one, number)]
    pinned = bool(nights)
    if not pinned:
        nights = [night for number, one in enumerate(group) for night in _times(one, number)]
    nights = [night for night in nights if night.commit not in excluded]
    measured = [pair for one in group for pair in pairs(one, places)]
    settled = []
    for change in changes.of_series(nights):
        named = replace(change, series=name, pinned=pinned)
        if (why := accepted.get(change.commit)) is not None:
            named = replace(named, state="accepted", why=why)
        settled.append(confirm.settled(named, measured))
    ordered = tuple(sorted(night.place for night in nights))
    spread_pct = 100 * median(pair.spread for pair in measured) if measured else None
    return CaseChanges(name, ordered, tuple(settled), spread_pct, pinned)


def _nights(one: MeasuredSeries, number: int) -> Iterator[Night]:
    for row in one.comparisons:
        if _is_pinned(row) and row.head is not None and row.place is not None and row.error is not None:
            yield Night(row.head, row.place, f"{number} {row.base}", row.effect, row.error, row.processes)


def _times(one: MeasuredSeries, number: int) -> Iterator[Night]:
    """Each head's time. In the order of time where no commit's place is known."""
    heads = [row for row in one.points if row.side == "head" and row.finding is None and row.commit]
    placed = [row for row in heads if row.place is not None]
    rows = placed or heads
    if len(rows) < LEAST_TIMES:
        return
    logs = [math.log(row.us) for row in rows]
    scatter = NORMAL_MAD * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2)
    for order, (row, value) in enumerate(zip(rows, logs, strict=True)):
        place = order if row.place is None else row.place
        error = math.hypot(row.error or 0.0, scatter)
        yield Night(row.commit or "", place, str(number), value, error, max(1, row.processes))


def _is_pinned(row: HistoryComparison) -> bool:
    """What the judge has no status of is no comparison of base and head; what has a finding is not to be believed."""
    return row.status is None and row.finding is None


def pairs(one: MeasuredSeries, places: Mapping[str, int | None]) -> Iterator[PairMeasured]:
    """Comparisons of two commits that are both on the default branch, in the order in which they were made."""
    for row in sorted(one.comparisons, key=lambda row: (row.made or "", row.record)):
        base = places.get(row.base)
        if row.status is None or row.finding is not None or row.processes < 2 or row.head is None:
            continue
        if base is not None and row.place is not None and row.error is not None and row.spread_pct is not None:
            spread = row.spread_pct / 100
            ends = (row.base, base, row.head, row.place)
            yield PairMeasured(*ends, row.effect, row.error, spread, row.processes)


def oldest_first(found: Iterable[CaseChanges]) -> tuple[Change, ...]:
    """The changes of all cases."""
    every = [(change, one.series) for one in found for change in one.changes]
    return tuple(one for one, _ in sorted(every, key=lambda two: (two[0].place, two[1].card, two[1].case, two[1].gpu)))


def text(found: Sequence[CaseChanges]) -> str:
    """What may be told, and what is still suspected; what was refuted is counted."""
    if not found:
        return (
            f"No changes can be looked for: no case has a head beside a pinned commit (a side\n"
            f"commit:<sha>) whose place on the default branch is known, nor {LEAST_TIMES} times of heads.\n"
        )
    every = oldest_first(found)
    told = [one for one in every if one.state != "refuted"]
    nights = formatting.counted(sum(len(one.places) for one in found), "night")
    end = f"{formatting.counted(len(found), 'case')}, {nights}: {len(told) or 'no'} change{'s' * (len(told) != 1)}"
    refuted = len(every) - len(told)
    end += f", {refuted} suspected and refuted\n" if refuted else "\n"
    if unpinned := sum(not one.pinned for one in found):
        alone = formatting.counted(unpinned, "case")
        end += f"By times alone in {alone}: with no pinned commit beside them, the machine counts, too.\n"
    if not told:
        return end
    columns = (Column("commits"), Column("change", True), Column("state"), Column("case"))
    return f"{render.in_columns(Table(columns, tuple(map(_row, told))))}\n\n{end}"


def _row(change: Change) -> tuple[Line, ...]:
    slowly = " slowly" if change.kind == "drift" else ""
    case, gpu = (change.series.written, change.series.gpu) if change.series else ("", "")
    return (
        (f"{change.previous[:7]}..{change.commit[:7]}",),
        (f"{formatting.percent(change.change_pct, 2, sign=True)}{slowly}",),
        (change.state,),
        (Code(case), *formatting.device(Device(name=gpu or None))),
    )
