"""Which commits made a case slower, certainly enough to tell people, and what became of each since.

A change is told once a comparison of both its commits confirmed it. Where several commits lie between the two, they are
searched first: by halves (`narrow.py`), or by `kernelgate bisect`, which leaves an event `found`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from kernelgate.ci.document import formatting
from kernelgate.ci.history import narrow, nights, shown
from kernelgate.ci.history.answer import ShownCulprits
from kernelgate.ci.history.changes import Change
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.history.tables import COMMIT, COMPARISON, EVENT, RECORD, SERIES
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class CulpritCase:
    """What the commit did to one case on one kind of GPU."""

    card: str
    case: str
    gpu: str
    change_pct: float
    interval_pct: tuple[float, float]
    """95%."""
    why: str
    """What confirmed it."""
    state: Literal["slower", "fixed", "accepted"]
    by: str
    """The commit that fixed it, or who accepted it; empty while it is slower."""
    record: str | None
    """Of the comparison of both commits, by its name in the store."""


@dataclass(frozen=True)
class Culprit:
    """One of the commits after `previous`, up to `commit`; mostly there is but one."""

    repository: str
    previous: str
    commit: str
    commits: int
    cases: tuple[CulpritCase, ...]


@dataclass(frozen=True)
class CommitSearch:
    """A confirmed change that lies somewhere among several commits."""

    gpu: str
    card: str
    case: str
    good: str
    bad: str
    """The change was made after `good`, and not after `bad`."""
    base: str
    """The older end of the comparisons, and …"""
    middle: tuple[int, ...]
    """… places of commits to compare it with, the one that tells most first."""


@dataclass(frozen=True)
class KnownCulprits:
    culprits: tuple[Culprit, ...]
    """The oldest first."""
    searches: tuple[CommitSearch, ...]
    """What is to be searched for before it is told."""


def of_index(connection: sa.Connection, found: Sequence[CaseChanges], policy: Policy) -> KnownCulprits:
    """All that may be told of these cases. Those that got faster are nobody's fault."""
    places: dict[str, int] = {
        row.sha: row.place
        for row in connection.execute(sa.select(COMMIT.c.sha, COMMIT.c.place).where(COMMIT.c.place.is_not(None)))
    }
    line = {place: sha for sha, place in places.items()}
    searched = [row._asdict() for row in connection.execute(sa.select(EVENT).filter_by(kind="found"))]
    groups: dict[tuple[str, str, str], list[CulpritCase]] = {}
    searches = []
    for one in found:
        for at, change in enumerate(one.changes):
            if change.state not in ("confirmed", "accepted") or change.change_pct <= 0:
                continue
            ends = _searched(one, change, searched, places)
            if ends is None:
                measured = _measured(connection, one, places) if change.place - change.previous_place > 1 else []
                left = narrow.of_change(change, measured, policy)
                ends = line.get(left.low, change.previous), line.get(left.high, change.commit)
                if left.middle:
                    searches.append(CommitSearch(one.gpu, one.card, one.case, *ends, change.previous, left.middle))
                    ends = None
            if ends is not None:
                case = _case(connection, one, change, one.changes[at + 1 :], policy)
                groups.setdefault((one.repository, *ends), []).append(case)
    culprits = [Culprit(*key, _between(places, *key[1:]), tuple(cases)) for key, cases in groups.items()]
    return KnownCulprits(tuple(sorted(culprits, key=lambda one: places.get(one.commit, 0))), tuple(searches))


def _searched(
    one: CaseChanges, change: Change, searched: Iterable[Mapping[str, Any]], places: Mapping[str, int]
) -> tuple[str, str] | None:
    """The commits that `kernelgate bisect` came down to; None where nobody asked it."""
    for event in searched:
        mine = (event["card"], event["case"], event["gpu"]) == (one.card, one.case, one.gpu)
        place = places.get(event["sha"])
        if mine and event["previous"] and place is not None and change.previous_place < place <= change.place:
            return event["previous"], event["sha"]
    return None


def _measured(connection: sa.Connection, one: CaseChanges, places: Mapping[str, int]) -> list[PairMeasured]:
    """All comparisons of the case."""
    every = shown.series(connection, Wanted(one.card, one.case, one.gpu))
    mine = (each for each in every if (each.repository, each.card, each.case, each.gpu) == _names(one))
    return [pair for each in mine for pair in nights.pairs(each, places)]


def _names(one: CaseChanges) -> tuple[str, str, str, str]:
    return one.repository, one.card, one.case, one.gpu


def _between(places: Mapping[str, int], previous: str, commit: str) -> int:
    """How many commits come into question."""
    return max(1, places[commit] - places[previous]) if {previous, commit} <= places.keys() else 1


def _case(
    connection: sa.Connection, one: CaseChanges, change: Change, later: Sequence[Change], policy: Policy
) -> CulpritCase:
    became, by = _since(change, later, policy)
    return CulpritCase(
        card=one.card,
        case=one.case,
        gpu=one.gpu,
        change_pct=change.change_pct,
        interval_pct=change.interval_pct,
        why=change.why,
        state=became,
        by=by,
        record=_record(connection, one, change),
    )


def _since(
    change: Change, later: Sequence[Change], policy: Policy
) -> tuple[Literal["slower", "fixed", "accepted"], str]:
    """It is fixed once confirmed changes since have taken all of it back, but for what counts as none."""
    if change.state == "accepted":
        return "accepted", change.why
    total = math.log1p(change.change_pct / 100)
    for other in (one for one in later if one.state in ("confirmed", "accepted")):
        total += math.log1p(other.change_pct / 100)
        if 100 * math.expm1(total) < policy.changes.smallest_pct:
            return "fixed", other.commit
    return "slower", ""


def _record(connection: sa.Connection, one: CaseChanges, change: Change) -> str | None:
    """The newest record that compared both commits."""
    base, head = COMMIT.alias(), COMMIT.alias()
    compared = (
        sa.select(RECORD.c.name)
        .join(COMPARISON, COMPARISON.c.record_id == RECORD.c.id)
        .join(SERIES, COMPARISON.c.series_id == SERIES.c.id)
        .join(base, COMPARISON.c.base_id == base.c.id)
        .join(head, COMPARISON.c.head_id == head.c.id)
        .where(base.c.sha == change.previous, head.c.sha == change.commit, COMPARISON.c.status.is_not(None))
        .where(SERIES.c.card == one.card, SERIES.c.case == one.case, SERIES.c.gpu == one.gpu)
        .order_by(RECORD.c.made.desc(), RECORD.c.name)
    )
    return connection.execute(compared).scalars().first()


# ---- in words --------------------------------------------------------------------------------------------------------


def answer(told: KnownCulprits) -> ShownCulprits:
    """What `history culprits --json` prints."""
    return ShownCulprits.model_validate(told, from_attributes=True)


def text(told: KnownCulprits) -> str:
    """A line for each case of each commit, and one for each search."""
    lines = [
        f"{one.commit[:12]}: {case.card}/{case.case} on {case.gpu} "
        f"{formatting.percent(case.change_pct, 2, sign=True)}, {case.state} {case.by}".rstrip()
        for one in told.culprits
        for case in one.cases
    ]
    lines += [f"kernelgate bisect {one.good} {one.bad} --case {one.card}/{one.case}" for one in told.searches]
    return "\n".join(lines) or "No confirmed change has made anything slower."
