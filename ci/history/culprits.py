"""Which commits made a case slower, certainly enough to tell people, and what became of each since.

A change is told once a comparison of both its commits confirmed it. Where several commits lie between the two, they are
searched first, by halves (`nights.narrowed`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import sqlalchemy as sa

from kernelgate.ci.document import formatting
from kernelgate.ci.history import confirm, nights, series
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.history.database import COMMIT, COMPARISON, RECORD, SERIES
from kernelgate.ci.history.facts import CaseName, Change, CommitSearch, Culprit, CulpritCase, KnownCulprits
from kernelgate.ci.history.levels import SMALLEST_PCT
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.series import Wanted

LONGEST = 300
"""Characters of a name or a reason that is told."""


def of_index(connection: sa.Connection, found: Sequence[CaseChanges]) -> KnownCulprits:
    """All that may be told of these cases. Those that got faster are nobody's fault."""
    asked = sa.select(COMMIT.c.sha, COMMIT.c.place).where(COMMIT.c.place.is_not(None))
    places: dict[str, int] = {row.sha: row.place for row in connection.execute(asked)}
    line = {place: sha for sha, place in places.items()}
    groups: dict[tuple[str, str, str], list[CulpritCase]] = {}
    searches = []
    for one in found:
        name = one.series
        for at, change in enumerate(one.changes):
            if change.state not in ("confirmed", "accepted") or change.change_pct <= 0:
                continue
            measured = _measured(connection, name, places) if change.place - change.previous_place > 1 else []
            left = confirm.narrowed(change, measured)
            good, bad = ends = line.get(left.low, change.previous), line.get(left.high, change.commit)
            if left.middle:
                where = {"gpu": name.gpu, "card": name.card, "case": name.case, "good": good, "bad": bad}
                searches.append(CommitSearch(**where, base=change.previous, middle=left.middle))
                continue
            state, by = _since(change, one.changes[at + 1 :])
            case = CulpritCase(
                card=name.card[:LONGEST],
                case=name.case[:LONGEST],
                gpu=name.gpu[:LONGEST],
                change_pct=change.change_pct,
                interval_pct=change.interval_pct,
                why=change.why[:LONGEST],
                state=state,
                by=by[:LONGEST],
                record=_record(connection, name, change),
            )
            groups.setdefault((name.repository[:LONGEST], *ends), []).append(case)
    culprits = (
        Culprit(repository=repository, previous=old, commit=new, commits=_between(places, old, new), cases=tuple(cases))
        for (repository, old, new), cases in groups.items()
    )
    oldest_first = sorted(culprits, key=lambda one: places.get(one.commit, 0))
    return KnownCulprits(schema="kernelgate.culprits/1", culprits=tuple(oldest_first), searches=tuple(searches))


def _measured(connection: sa.Connection, name: CaseName, places: Mapping[str, int]) -> list[PairMeasured]:
    """All comparisons of the case."""
    every = series.series(connection, Wanted(name.card, name.case, name.gpu))
    mine = (one for one in every if (one.repository, one.gpu) == (name.repository, name.gpu))
    return [pair for one in mine for pair in nights.pairs(one, places)]


def _between(places: Mapping[str, int], previous: str, commit: str) -> int:
    """How many commits come into question."""
    return max(1, places[commit] - places[previous]) if {previous, commit} <= places.keys() else 1


def _since(change: Change, later: Sequence[Change]) -> tuple[Literal["slower", "fixed", "accepted"], str]:
    """What became of it, and by what: the commit that fixed it, or who accepted it. It is fixed once confirmed changes
    since have taken all of it back, but for what counts as none.
    """
    if change.state == "accepted":
        return "accepted", change.why
    total = math.log1p(change.change_pct / 100)
    for other in (one for one in later if one.state in ("confirmed", "accepted")):
        total += math.log1p(other.change_pct / 100)
        if 100 * math.expm1(total) < SMALLEST_PCT:
            return "fixed", other.commit
    return "slower", ""


def _record(connection: sa.Connection, name: CaseName, change: Change) -> str | None:
    """The newest record that compared both commits."""
    base, head = COMMIT.alias(), COMMIT.alias()
    compared = (
        sa.select(RECORD.c.name)
        .join(COMPARISON, COMPARISON.c.record_id == RECORD.c.id)
        .join(SERIES, COMPARISON.c.series_id == SERIES.c.id)
        .join(base, COMPARISON.c.base_id == base.c.id)
        .join(head, COMPARISON.c.head_id == head.c.id)
        .where(base.c.sha == change.previous, head.c.sha == change.commit, COMPARISON.c.status.is_not(None))
        .where(SERIES.c.card == name.card, SERIES.c.case == name.case, SERIES.c.gpu == name.gpu)
        .order_by(RECORD.c.made.desc(), RECORD.c.name)
    )
    return connection.execute(compared).scalars().first()


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
