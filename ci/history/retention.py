"""Which records keep their samples, and how the others lose them.

What a record was is in the store, in another form, before the samples go: whoever is killed has lost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Final

import numpy as np
import sqlalchemy as sa

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Condensed, Timing
from kernelgate.ci.history import database, index, keep, nights, series, store
from kernelgate.ci.history.database import COMMIT, COMPARISON, EVENT, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import CONDENSED, CondensedRecord
from kernelgate.ci.history.facts import CondensedRecords
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.judge import validity

RAW_DAYS: Final = 90
"""So many days `kernelgate history condense` keeps every sample: comparisons are repeated within weeks, if at all."""
QUANTILES = (5, 25, 50, 75, 95)
LAGS = 3
BY_SAMPLE = ("samples_us", "positions", "previous", "started_us", "sm_mhz")
DIGITS = 7
"""Significant ones, of numbers that nothing is computed from."""
COMMITTED = POINT.c.commit_id.is_not(None)
RUN = 5
"""Measurements in a row whose median is a series' best, as on the dashboard."""


def condense(archive: Archive, released: Collection[str], today: datetime) -> CondensedRecords:
    """Takes the samples from every record that can decide nothing more. `released`: the commits up to the release."""
    with database.reading(archive.database) as connection:
        kept = needed(connection, released, today)
        rows = connection.execute(sa.select(RECORD.c.name, RECORD.c.condensed)).all()
    sizes: list[tuple[int, int]] = []
    left: list[str] = []
    for name, was in rows:
        if was is not None:
            _remove(archive, name)  # as after one that was killed
        elif name not in kept:
            try:
                sizes.append(_condense(archive, name))
            except KernelgateError as error:
                left.append(f"left as it is: {error}")
    before, after = (sum(one[at] for one in sizes) for at in (0, 1))
    raw = sum(was is None and name in kept for name, was in rows)
    return CondensedRecords(len(sizes), before, after, raw, tuple(left))


def _condense(archive: Archive, name: str) -> tuple[int, int]:
    """Its size before and after."""
    data = store.get(archive.store, "records", name)
    if data is None:
        return 0, 0  # another process was faster
    judged = store.names(archive.store, "judgements", name)
    before = store.size(archive.store, "records", name)
    before += sum(store.size(archive.store, "judgements", one) for one in judged)
    made = record.from_json(data, name)
    entry = keep.judgement(archive, name, made)
    processes = [one.model_copy(update={"timings": tuple(map(_condensed, one.timings))}) for one in made.processes]
    short = made.model_copy(update={"processes": tuple(processes)})
    condensed = CondensedRecord(schema_=CONDENSED, raw=name, record=short, entry=entry)
    new = condensed.model_dump_json(by_alias=True, exclude_defaults=True).encode()
    own = store.name_of(new)
    store.put(archive.store, "condensed", own, new)
    store.get(archive.store, "condensed", own)  # raises where it is not what was written
    with database.writing(archive.database) as connection:
        index.add(connection, entry, own)
    _remove(archive, name)
    return before, store.size(archive.store, "condensed", own)


def _remove(archive: Archive, name: str) -> None:
    for one in store.names(archive.store, "judgements", name):
        store.remove(archive.store, "judgements", one)
    store.remove(archive.store, "records", name)


def needed(connection: sa.Connection, released: Collection[str], today: datetime) -> set[str]:
    begin = (today.astimezone(UTC) - timedelta(days=RAW_DAYS)).strftime("%Y-%m-%dT%H:%M:%SZ")
    recent = sa.or_(RECORD.c.made >= begin, RECORD.c.made.is_(None))
    kept = set(connection.execute(sa.select(RECORD.c.name).where(recent)).scalars())
    kept.update(_regressed(connection))
    if connection.execute(sa.select(SERIES.c.id).limit(1)).first() is None:
        return kept
    for case in nights.of_index(connection, Wanted()):
        kept.update(_suspected(connection, case))
    for _, rows in series.by_case(connection, Wanted()):
        newest = max(rows, key=lambda row: (row["newest"], row["id"]))
        for row in rows:
            kept.update(_measures(connection, row["id"], released, row is newest))
    return kept


def _regressed(connection: sa.Connection) -> Iterator[str]:
    """Records of a regression on the default branch that nobody has accepted."""
    accepted = sa.select(EVENT.c.name).where(
        EVENT.c.kind == "accepted",
        EVENT.c.sha == COMMIT.c.sha,
        EVENT.c.card == SERIES.c.card,
        EVENT.c.case == SERIES.c.case,
        EVENT.c.gpu == SERIES.c.gpu,
        EVENT.c.repository.in_(("", SERIES.c.repository)),
    )
    asked = (
        sa.select(RECORD.c.name)
        .join(COMPARISON, COMPARISON.c.record_id == RECORD.c.id)
        .join(SERIES, SERIES.c.id == COMPARISON.c.series_id)
        .join(COMMIT, COMMIT.c.id == COMPARISON.c.head_id)
        .where(COMPARISON.c.status == "regressed", COMMIT.c.place.is_not(None), ~accepted.exists())
    )
    yield from connection.execute(asked.distinct()).scalars()


def _suspected(connection: sa.Connection, case: CaseChanges) -> Iterator[str]:
    """Records of the commits between which an open suspicion lies, both among them."""
    own = sa.select(SERIES.c.id).filter_by(**vars(case.series))
    for change in (one for one in case.changes if one.state == "suspected"):
        between = sa.or_(COMMIT.c.place.between(change.previous_place, change.place), COMMIT.c.place.is_(None))
        asked = series.HEADS.with_only_columns(RECORD.c.name).where(POINT.c.series_id.in_(own), COMMITTED, between)
        yield from connection.execute(asked.distinct()).scalars()


def _measures(connection: sa.Connection, number: int, released: Collection[str], newest: bool) -> Iterator[str]:
    """What later times are held against: the release's and, in a case's newest environment, the last and the best."""
    asked = series.HEADS.where(POINT.c.series_id == number, COMMITTED, POINT.c.finding.is_(None))
    placed = COMMIT.c.place.is_not(None), COMMIT.c.place
    rows = connection.execute(asked.order_by(*placed, RECORD.c.made, RECORD.c.name)).all()
    held = [row for row in rows if row.commit in released][-1:]
    if rows and newest:
        runs = [rows[start : start + RUN] for start in range(max(1, len(rows) - RUN + 1))]
        held += [rows[-1], *min(runs, key=lambda run: median(row.us for row in run))]
    yield from (row.record for row in held)


def _condensed(timing: Timing) -> Timing:
    kept = {side: _side(samples) for side, samples in timing.samples_us.items() if samples}
    return timing.model_copy(update={**{key: {} for key in BY_SAMPLE}, "condensed": {**timing.condensed, **kept}})


def _side(samples_us: Sequence[float]) -> Condensed:
    logs = np.log(samples_us)
    off = logs - logs.mean()
    variance = float(off @ off / max(1, len(logs) - 1))
    lags = range(1, min(LAGS, len(logs) - 1) + 1) if variance else ()
    two = validity.two_modes([logs])
    return Condensed(
        count=len(logs),
        location_us=_rounded(float(np.median(samples_us))),
        variance=_rounded(variance),
        autocorrelation=tuple(_rounded(float(off[lag:] @ off[:-lag] / (off @ off))) for lag in lags),
        quantiles_us={str(one): _rounded(float(np.percentile(samples_us, one))) for one in QUANTILES},
        mode_shares=(_rounded(1 - two.shares[0]), _rounded(two.shares[0])) if two else (),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
