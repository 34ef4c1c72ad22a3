"""From the index to what `changes.py` reads, and back: each case's nights, its comparisons, and what became of them.

A night is a head that ran beside a pinned commit in the same processes. Nights of another pinned commit or of another
environment are apart: only what has both in common can be compared.

A case that never ran beside a pinned commit, such as one that another tool measured, is looked at by its times alone.
They scatter by more than one run shows, since nothing cancels the machine out; how far is seen from one to the next.
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
from kernelgate.ci.document import formatting, terminal
from kernelgate.ci.document.model import Code, Column, Line, Table
from kernelgate.ci.history import changes, confirm, shown
from kernelgate.ci.history.answer import ChangedSeries, ChangeShown, ShownChanges
from kernelgate.ci.history.changes import Change, Night
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.history.shown import ShownSeries, Wanted
from kernelgate.ci.history.tables import COMMIT, EVENT, POINT
from kernelgate.ci.policy.policy import Policy

HEADS = shown.POINTS.where(POINT.c.side == "head")
LEAST_TIMES = 4
"""Fewer do not show how far they scatter."""
NORMAL_MAD = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""


@dataclass(frozen=True)
class CaseChanges:
    """The changes of one case of a card on one kind of GPU, oldest first."""

    repository: str
    card: str
    case: str
    gpu: str
    places: tuple[int, ...]
    """Of the nights' commits, in their order."""
    changes: tuple[Change, ...]
    spread_pct: float | None = None
    """How far the case's processes scatter, by the median of its comparisons."""
    pinned: bool = True
    """Whether the nights are against a pinned commit; else they are times, which a change of the machine meets too."""

    @property
    def nights(self) -> int:
        return len(self.places)


def of_index(connection: sa.Connection, wanted: Wanted, policy: Policy) -> tuple[CaseChanges, ...]:
    """What the history knows of each case that has nights. Raises KernelgateError where nothing has these names."""
    places = {row.sha: row.place for row in connection.execute(sa.select(COMMIT.c.sha, COMMIT.c.place))}
    decided = [row._asdict() for row in connection.execute(sa.select(EVENT).order_by(EVENT.c.made, EVENT.c.name))]
    groups: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in shown.chosen(connection, wanted):
        groups.setdefault((row["card"], row["case"], row["gpu"], row["repository"]), []).append(row)
    made = []
    for (card, case, gpu, repository), rows in sorted(groups.items()):  # one at a time: all of them may be gigabytes
        group = shown.loaded(connection, rows, wanted.since, None)
        if not any(map(_pinned, (row for one in group for row in one.comparisons))):
            group = shown.loaded(connection, rows, wanted.since, HEADS)
        made.append(_of_case((repository, card, case, gpu), group, places, decided, policy))
    return tuple(one for one in made if one.nights)


def _of_case(
    key: tuple[str, str, str, str],
    group: Sequence[ShownSeries],
    places: Mapping[str, int | None],
    decided: Iterable[Mapping[str, Any]],
    policy: Policy,
) -> CaseChanges:
    same = [row for row in decided if (row["card"], row["case"], row["gpu"]) == key[1:]]
    own = [row for row in same if row["repository"] in ("", key[0])]
    excluded = {row["sha"] for row in own if row["kind"] == "excluded"}
    accepted = {row["sha"]: row for row in own if row["kind"] == "accepted"}
    against = [night for number, one in enumerate(group) for night in _nights(one, number)]
    times = [] if against else [night for number, one in enumerate(group) for night in _times(one, number)]
    nights = [night for night in (*against, *times) if night.commit not in excluded]
    measured = [pair for one in group for pair in pairs(one, places)]
    found = [_accepted(change, accepted) for change in changes.of_series(nights, policy.changes)]
    settled = tuple(confirm.settled(one, measured, policy) for one in found)
    ordered = tuple(sorted(night.place for night in nights))
    spread_pct = 100 * median(pair.spread for pair in measured) if measured else None
    return CaseChanges(*key, ordered, settled, spread_pct, pinned=bool(against))


def _nights(series: ShownSeries, number: int) -> Iterable[Night]:
    for row in series.comparisons:
        if _pinned(row) and row["head"] is not None and row["place"] is not None and row["error"] is not None:
            yield Night(
                commit=row["head"],
                place=row["place"],
                environment=f"{number} {row['base']}",
                log_ratio=row["effect"],
                error=row["error"],
                processes=row["processes"],
            )


def _times(series: ShownSeries, number: int) -> Iterator[Night]:
    """Each head's time. In the order of time where no commit's place is known, as in another project's past."""
    heads = [row for row in series.points if row["side"] == "head" and row["finding"] is None and row["commit"]]
    placed = [row for row in heads if row["place"] is not None]
    rows = placed or heads
    if len(rows) < LEAST_TIMES:
        return
    logs = [math.log(row["us"]) for row in rows]
    scatter = NORMAL_MAD * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2)
    for order, (row, value) in enumerate(zip(rows, logs, strict=True)):
        yield Night(
            commit=row["commit"],
            place=row["place"] if placed else order,
            environment=str(number),
            log_ratio=value,
            error=math.hypot(row["error"] or 0.0, scatter),
            processes=max(1, row["processes"]),
        )


def _pinned(row: Mapping[str, Any]) -> bool:
    """What the judge has no status of is no comparison of base and head; what has a finding is not to be believed."""
    return row["status"] is None and row["finding"] is None


def pairs(series: ShownSeries, places: Mapping[str, int | None]) -> Iterable[PairMeasured]:
    """Comparisons of two commits that are both on the default branch, in the order in which they were made."""
    for row in sorted(series.comparisons, key=lambda one: (one["made"] or "", one["record"])):
        base, head = places.get(row["base"]), row["place"]
        known = None not in (base, head, row["error"], row["spread_pct"]) and row["status"] is not None
        if known and row["finding"] is None and row["processes"] > 1:
            yield PairMeasured(
                base=row["base"],
                base_place=base or 0,
                head=row["head"],
                head_place=head,
                effect=row["effect"],
                error=row["error"],
                spread=row["spread_pct"] / 100,
                processes=row["processes"],
            )


def _accepted(change: Change, accepted: Mapping[str, Mapping[str, Any]]) -> Change:
    row = accepted.get(change.commit)
    return change if row is None else replace(change, state="accepted", why=f"by {row['who']}: {row['why']}")


def answer(found: Iterable[CaseChanges]) -> ShownChanges:
    """What `history changes --json` prints."""
    return ShownChanges(
        changes=tuple(
            ChangeShown(
                series=ChangedSeries(repository=one.repository, card=one.card, case=one.case, gpu=one.gpu),
                commit=change.commit,
                previous=change.previous,
                change_pct=change.change_pct,
                interval_pct=change.interval_pct,
                state=change.state,
                kind=change.kind,
                why=change.why,
                pinned=one.pinned,
            )
            for one, change in _oldest_first(found)
        )
    )


def text(found: Sequence[CaseChanges]) -> str:
    """What may be told, and what is still suspected; what was refuted is counted."""
    if not found:
        return (
            f"No changes can be looked for: no case has a head beside a pinned commit (a side\n"
            f"commit:<sha>) whose place on the default branch is known, nor {LEAST_TIMES} times of heads.\n"
        )
    every = _oldest_first(found)
    shown_ = [(one, change) for one, change in every if change.state != "refuted"]
    nights = formatting.counted(sum(one.nights for one in found), "night")
    looked = f"{formatting.counted(len(found), 'case')}, {nights}"
    refuted = len(every) - len(shown_)
    end = f"{looked}: {len(shown_) or 'no'} {'change' if len(shown_) == 1 else 'changes'}"
    end += f", {refuted} suspected and refuted\n" if refuted else "\n"
    unpinned = sum(not one.pinned for one in found)
    if unpinned:
        alone = formatting.counted(unpinned, "case")
        end += f"By times alone in {alone}: with no pinned commit beside them, the machine counts, too.\n"
    if not shown_:
        return end
    columns = (Column("commits"), Column("change", True), Column("state"), Column("case"))
    table = Table(columns, tuple(_row(one, change) for one, change in shown_))
    return f"{terminal.table(table)}\n\n{end}"


def _row(one: CaseChanges, change: Change) -> tuple[Line, ...]:
    slowly = " slowly" if change.kind == "drift" else ""
    return (
        (f"{change.previous[:7]}..{change.commit[:7]}",),
        (f"{formatting.percent(change.change_pct, 2, sign=True)}{slowly}",),
        (change.state,),
        (Code("/".join(filter(None, (one.card, one.case)))), *formatting.device(Device(name=one.gpu or None))),
    )


def _oldest_first(found: Iterable[CaseChanges]) -> list[tuple[CaseChanges, Change]]:
    every = [(one, change) for one in found for change in one.changes]
    return sorted(every, key=lambda pair: (pair[1].place, pair[0].card, pair[0].case, pair[0].gpu))
