"""The last times of a case on the default branch, for whoever looks at one pull request."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from kernelgate.ci.history.tables import COMMIT, POINT, RECORD, SERIES

LAST = 20


@dataclass(frozen=True)
class RecentTimes:
    """Of one environment, the oldest first: times of two do not compare."""

    times_us: tuple[float, ...]
    first_day: str
    """Such as 2026-08-01; empty where the record does not say."""
    last_day: str


def of_case(connection: sa.Connection, names: tuple[str, str, str, str]) -> RecentTimes | None:
    """By repository, card, case and kind of GPU: heads of the default branch that a verdict may rest on."""
    own = (SERIES.c.repository, SERIES.c.card, SERIES.c.case, SERIES.c.gpu)
    asked = (
        sa.select(POINT.c.series_id, POINT.c.us, RECORD.c.made)
        .join(SERIES, SERIES.c.id == POINT.c.series_id)
        .join(RECORD, RECORD.c.id == POINT.c.record_id)
        .join(COMMIT, COMMIT.c.id == POINT.c.commit_id)
        .where(*(column == name for column, name in zip(own, names, strict=True)))
        .where(POINT.c.side == "head", POINT.c.finding.is_(None), COMMIT.c.place.is_not(None))
        .order_by(COMMIT.c.place.desc(), RECORD.c.made.desc(), RECORD.c.id.desc())
        .limit(LAST)
    )
    newest_first = connection.execute(asked).all()
    rows = [row for row in reversed(newest_first) if row.series_id == newest_first[0].series_id]
    if not rows:
        return None
    return RecentTimes(tuple(row.us for row in rows), (rows[0].made or "")[:10], (rows[-1].made or "")[:10])
