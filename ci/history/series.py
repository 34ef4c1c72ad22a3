"""Reads the index: the series that were asked for, in a terminal or as facts, and all of it for other tools."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Line, Piece, table
from kernelgate.ci.history import database
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, DAY, EVENT, IS_HEAD, POINT, RECORD, SERIES, SESSION
from kernelgate.ci.history.entry import KeptSession
from kernelgate.ci.history.facts import CaseName, HistoryComparison, HistoryPoint, MeasuredSeries, pct

EXPORT = "kernelgate.history-export/1"
NAMED = 8
"""Names that are said instead of one that is not there."""
AT_ONCE = 10_000
"""Rows of an export that are in memory."""

BASE, HEAD = COMMIT.alias("base"), COMMIT.alias("head")
POINTS = (
    sa.select(
        RECORD.c.name.label("record"),
        RECORD.c.made,
        POINT.c.side,
        COMMIT.c.sha.label("commit"),
        COMMIT.c.place,
        *(POINT.c.us, POINT.c.error, POINT.c.processes, POINT.c.rounds, POINT.c.finding),
    )
    .join(RECORD, RECORD.c.id == POINT.c.record_id)
    .outerjoin(COMMIT, COMMIT.c.id == POINT.c.commit_id)
)
COMPARISONS = (
    sa.select(
        RECORD.c.name.label("record"),
        RECORD.c.made,
        BASE.c.sha.label("base"),
        HEAD.c.sha.label("head"),
        HEAD.c.place,
        *(COMPARISON.c.effect, COMPARISON.c.error, COMPARISON.c.spread_pct, COMPARISON.c.noise_pct),
        *(COMPARISON.c.processes, COMPARISON.c.status, COMPARISON.c.low_pct, COMPARISON.c.high_pct),
        COMPARISON.c.finding,
    )
    .join(RECORD, RECORD.c.id == COMPARISON.c.record_id)
    .join(BASE, BASE.c.id == COMPARISON.c.base_id)
    .outerjoin(HEAD, HEAD.c.id == COMPARISON.c.head_id)
)
HEADS = POINTS.where(IS_HEAD)
_NAMES = tuple(SERIES.c[key] for key in (*database.NAMES, *database.ENVIRONMENT))
EXPORTED: Mapping[str, sa.Select[Any]] = {
    "points": POINTS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == POINT.c.series_id),
    "comparisons": COMPARISONS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == COMPARISON.c.series_id),
    "events": sa.select(EVENT),
    "costs": sa.select(RECORD.c.name.label("record"), RECORD.c.made, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)
    .join(RECORD, RECORD.c.id == COST.c.record_id)
    .order_by(RECORD.c.name, COST.c.number),
    "sessions": sa.select(SESSION).order_by(SESSION.c.repository, SESSION.c.name),
}
"""What an export holds, by its name; rows of points and comparisons name their series."""


@dataclass(frozen=True)
class Wanted:
    """Which series, and since when; None asks for all. `gpu` is any part of a kind's name, such as "h200"."""

    card: str | None = None
    case: str | None = None
    gpu: str | None = None
    since: str | None = None
    """A day, such as 2026-08-01."""


def series(connection: sa.Connection, wanted: Wanted) -> tuple[MeasuredSeries, ...]:
    """The series that hold anything since then, whole. Raises KernelgateError where nothing has these names."""
    since = () if wanted.since is None else (RECORD.c.made >= wanted.since,)
    return loaded(connection, chosen(connection, wanted), POINTS.where(*since), COMPARISONS.where(*since))


def loaded(
    connection: sa.Connection,
    rows: Iterable[Mapping[str, Any]],
    points: sa.Select[Any] | None = POINTS,
    comparisons: sa.Select[Any] = COMPARISONS,
) -> tuple[MeasuredSeries, ...]:
    """The series of these rows that hold anything of these points and comparisons."""

    def asked(query: sa.Select[Any]) -> list[dict[str, Any]]:
        return sorted((row._asdict() for row in connection.execute(query)), key=_place)

    found = []
    for row in rows:
        taken = [] if points is None else asked(points.where(POINT.c.series_id == row["id"]))
        compared = asked(comparisons.where(COMPARISON.c.series_id == row["id"]))
        if not taken and not compared:
            continue
        for one in compared:
            ends = one.pop("low_pct"), one.pop("high_pct")
            one["interval_pct"] = None if None in ends else ends
        made = MeasuredSeries(
            **{key: row[key] for key in (*database.NAMES, "reference")},
            environment={key: row[key] for key in database.ENVIRONMENT if row[key]},
            points=tuple(HistoryPoint.model_construct(**one) for one in taken),
            comparisons=tuple(HistoryComparison.model_construct(**one) for one in compared),
        )
        oldest = min(one["made"] or "" for one in (*taken, *compared))
        found.append(((made.card, made.case, made.gpu, oldest), made))
    return tuple(one for _, one in sorted(found, key=lambda two: two[0]))


def chosen(connection: sa.Connection, wanted: Wanted) -> list[dict[str, Any]]:
    """The rows of the series that have these names. Raises KernelgateError where there are none."""
    rows = [row._asdict() for row in connection.execute(sa.select(SERIES).order_by(SERIES.c.id))]
    if not rows:
        raise KernelgateError("the history is empty: `kernelgate history add RECORD` puts measurements into it")
    for key, asked in (("card", wanted.card), ("case", wanted.case), ("gpu", wanted.gpu)):
        names = sorted({row[key] or "(no name)" for row in rows})
        on_gpu = key == "gpu"
        meant = (asked or "").lower()
        rows = [row for row in rows if asked in (None, row[key]) or (on_gpu and meant in row[key].lower())]
        if not rows:
            what = f"nothing of that on a {asked!r}" if on_gpu else f"no {key} {asked!r}"
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            raise KernelgateError(f"the history has {what}; it has: {', '.join(names[:NAMED])}{more}")
    return rows


def by_case(connection: sa.Connection, wanted: Wanted) -> Iterator[tuple[CaseName, list[dict[str, Any]]]]:
    """The rows of the series that have these names, case by case. Raises KernelgateError where there are none."""

    def name(row: Mapping[str, Any]) -> CaseName:
        return CaseName(*(row[key] for key in database.NAMES))

    for case, rows in groupby(sorted(chosen(connection, wanted), key=name), key=name):
        yield case, list(rows)


def cases_at(connection: sa.Connection, wanted: Wanted, sha: str) -> tuple[CaseName, ...]:
    """The cases with these names that were measured at a commit. Raises KernelgateError where there are none."""
    measured = sa.select(POINT.c.series_id).join(COMMIT, COMMIT.c.id == POINT.c.commit_id).where(COMMIT.c.sha == sha)
    there = set(connection.execute(measured).scalars())
    cases = [case for case, rows in by_case(connection, wanted) if any(row["id"] in there for row in rows)]
    if not cases:
        raise KernelgateError(f"the history has no measurement of that at {sha[:12]}")
    return tuple(cases)


def _place(row: Mapping[str, Any]) -> tuple[bool, int, str, str]:
    """What is on the default branch first, in its order: dates are no topology."""
    return row["place"] is None, row["place"] or 0, row["made"] or "", row["record"]


def sessions(connection: sa.Connection) -> list[KeptSession]:
    rows = connection.execute(EXPORTED["sessions"])
    return [KeptSession.model_validate(row, from_attributes=True) for row in rows]


def exported(connection: sa.Connection, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one part of an export, as flat data; effects and errors in percent of time."""
    for row in connection.execution_options(yield_per=AT_ONCE).execute(EXPORTED[name]):
        flat = row._asdict()
        if "effect" in flat:
            flat["change_pct"] = pct(flat.pop("effect"))
        if "error" in flat:
            flat["error_pct"] = pct(flat.pop("error"))
        yield flat


def as_json(connection: sa.Connection) -> Iterator[str]:
    """One object: `schema`, and a list of flat rows for each of `EXPORTED`, a row a line."""
    yield json.dumps({"schema": EXPORT})[:-1]
    for name in EXPORTED:
        yield f',\n"{name}": ['
        for number, row in enumerate(exported(connection, name)):
            yield f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False)}"
        yield "]"
    yield "}\n"


# ---- in a terminal ---------------------------------------------------------------------------------------------------
# One line for each series, or for each commit of the one case that was asked for: heads, on the default branch where
# any of them is known to be there. Of very many points only the last are read, in the order of an index.

ENVIRONMENTS = 3
"""Of a case; the earlier ones are in --json."""
ROWS = 30
"""Of one series."""

ORDER = POINT.c.place, POINT.c.made, RECORD.c.name
"""Of heads that all have a place, or none: as `_place` orders them."""
SHOWN = (
    sa.select(POINT.c.us, POINT.c.error, POINT.c.finding, POINT.c.made, COMMIT.c.sha, COMPARISON.c.effect)
    .join(RECORD, RECORD.c.id == POINT.c.record_id)
    .outerjoin(COMMIT, COMMIT.c.id == POINT.c.commit_id)
    .outerjoin(
        COMPARISON,
        sa.and_(
            COMPARISON.c.series_id == POINT.c.series_id,
            COMPARISON.c.record_id == POINT.c.record_id,
            COMPARISON.c.status.is_not(None),
        ),
    )
)
COUNTED = sa.select(
    *(sa.func.coalesce(sa.func.sum(DAY.c.heads).filter(one), 0) for one in (DAY.c.placed, ~DAY.c.placed))
)


@dataclass(frozen=True)
class ShownSeries:
    """`last`: its last measurements, of `count`, the oldest first."""

    name: CaseName
    environment: str
    last: Sequence[Any]
    count: int
    first_us: float


def text(connection: sa.Connection, wanted: Wanted) -> str:
    """The newest series of what was asked for. Raises KernelgateError where nothing has these names."""
    found: list[ShownSeries] = []
    earlier = left_out = 0
    every = list(by_case(connection, wanted))
    most, since = ROWS if len(every) == 1 else 1, wanted.since or ""
    for name, alike in every:
        kept = [row for row in alike if row["newest"] >= since]
        ordered = sorted(kept, key=lambda row: (row["newest"], row["id"]))
        earlier += len(ordered[:-ENVIRONMENTS])
        for row in ordered[-ENVIRONMENTS:]:
            counted = COUNTED.where(DAY.c.series_id == row["id"], DAY.c.day >= since)
            placed, others = connection.execute(counted).one()
            if not placed + others:
                continue
            left_out += others if placed else 0
            heads = SHOWN.where(IS_HEAD, POINT.c.series_id == row["id"], POINT.c.made >= since)
            heads = heads.where(POINT.c.place.is_not(None) if placed else POINT.c.place.is_(None))
            last = connection.execute(heads.order_by(*(one.desc() for one in ORDER)).limit(most)).all()[::-1]
            first = connection.execute(heads.order_by(*ORDER).limit(1)).one()
            found.append(ShownSeries(name, _environment(row), last, placed or others, first.us))
    if not found:
        return "nothing was measured since then\n"
    if len(every) == 1:
        parts = [_named(found[0].name, found[0].name.written), *map(_commits, found)]
    else:
        groups: dict[str, list[ShownSeries]] = {}
        for shown in found:
            groups.setdefault(f"{_named(shown.name, shown.name.card)}\n{shown.environment}", []).append(shown)
        titles = "case", "#times", "#last", "#since first"
        parts = [f"{head}\n{render.in_columns(table(titles, map(_overview, rows)))}" for head, rows in groups.items()]
    if left_out:
        measured = formatting.counted(left_out, "measurement")
        parts.append(f"Left out: {measured} of commits that are not on the default branch; --json\nhas them.")
    if earlier:
        of = "" if len(every) == 1 else " of cases"
        parts.append(f"Left out: {formatting.counted(earlier, 'earlier environment')}{of}; --json has them.")
    return "\n\n".join(parts) + "\n"


def _overview(one: ShownSeries) -> tuple[Piece | Line, ...]:
    last = one.last[-1].us
    moved = formatting.percent(100 * (last / one.first_us - 1), sign=True) if one.count > 1 else formatting.MISSING
    return Code(one.name.case), str(one.count), formatting.durations(last), moved


def _named(one: CaseName, what: str) -> str:
    of = f"of {one.repository}" if one.repository else ""
    return " ".join(filter(None, (what, of, f"on {one.gpu or 'an unknown device'}")))


def _environment(row: Mapping[str, Any]) -> str:
    known = (f"{key.replace('_', ' ')} {row[key]}" for key in database.ENVIRONMENT if row[key])
    return textwrap.fill(", ".join(known) or "environment unknown", render.WIDTH)


def _commits(one: ShownSeries) -> str:
    """Heads alone: what base and reference took is in --json."""
    earlier = [f"({count} earlier ones: --json)"] if (count := one.count - len(one.last)) else []
    titles = "measured", "commit", "#time", "#±", "#against its base"
    return "\n".join([one.environment, *earlier, render.in_columns(table(titles, map(_row, one.last)))])


def _row(head: Any) -> tuple[Piece | Line, ...]:
    return (
        (head.made or "?")[:10],
        formatting.commit(head.sha, formatting.MISSING),
        formatting.durations(head.us),
        _percent(head.error),
        "not to be trusted" if head.finding else _percent(head.effect, sign=True),
    )


def _percent(log: float | None, sign: bool = False) -> str:
    found = pct(log)
    return formatting.MISSING if found is None else formatting.percent(found, 2, sign=sign)
