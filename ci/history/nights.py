"""Each case's nights, its comparisons, and what became of them.

A night is a head that ran beside a pinned commit in the same processes. Nights of another pinned commit or environment
are apart. A case that never ran beside a pinned commit is looked at by its times alone, which scatter by more than one
run shows: how far is seen from one to the next.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import median
from typing import Any, Final

import numpy as np
import sqlalchemy as sa

from kernelgate.bench.record import Device
from kernelgate.ci.bisect import posterior
from kernelgate.ci.bisect.posterior import CHANCE, CommitTime, Search
from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.document.model import Code, Line, table
from kernelgate.ci.history import changes, series
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.database import COMMIT, COMPARISON, EVENT, RECORD
from kernelgate.ci.history.facts import CaseName, Change, HistoryComparison, MeasuredSeries
from kernelgate.ci.history.levels import SMALLEST_PCT
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.judge import prior
from kernelgate.ci.judge.prior import KnownSpread
from kernelgate.ci.judge.stats import INTERVAL_LEVEL, Array, Pooled

LEAST_TIMES = 4
"""Fewer do not show how far they scatter."""
NO_CARDS = "[]"
"""Of a record without a case, as the index has it: such as of a pair of commits of which one does not compile."""
NIGHTS_KNOWN = 20
"""Of which the scatter of a case's processes is known: of older ones nothing is left."""
PLACED_WITHIN: Final = 4
"""A step is known to lie within fewer nights than that between its two commits; a drift is not."""
NORMAL_MAD = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""


@dataclass(frozen=True)
class CaseChanges:
    """The changes of one case, oldest first."""

    series: CaseName
    places: tuple[int, ...]
    """Of the nights' commits, in their order."""
    changes: tuple[Change, ...]
    spread_pct: float | None
    """How far the case's processes scatter, by the median of its comparisons."""
    pinned: bool
    """Whether the nights are against a pinned commit; else they are times, which a change of the machine meets too."""
    measured: tuple[PairMeasured, ...]
    """Its comparisons of two commits of the default branch, in the order in which they were made."""
    known: KnownSpread | None = None
    """What its nights show of its processes."""
    in_vain: frozenset[tuple[int, int]] = frozenset()
    """Places of two commits that were to be compared often enough, and never could."""

    def may_become_drift(self, change: Change) -> bool:
        """Whether nights do not show its place, and are too few since to tell a step from the beginning of a drift."""
        within = sum(change.previous_place < place < change.place for place in self.places)
        since = sum(place > change.place for place in self.places)
        return change.kind == "step" and within > PLACED_WITHIN and since < changes.DRIFT_NIGHTS


def of_index(connection: sa.Connection, wanted: Wanted) -> tuple[CaseChanges, ...]:
    """What the history knows of each case that has nights. Raises KernelgateError where nothing has these names."""
    places = {row.sha: row.place for row in connection.execute(sa.select(COMMIT.c.sha, COMMIT.c.place))}
    decided = connection.execute(sa.select(EVENT).order_by(EVENT.c.made, EVENT.c.name)).all()
    empty = sa.select(RECORD.c.base_sha, RECORD.c.head_sha).where(RECORD.c.cards == NO_CARDS)
    never = [(places.get(row.base_sha), places.get(row.head_sha)) for row in connection.execute(empty)]
    found = []
    # Of pull requests there may be a hundred times as many, which have no part in it.
    here = series.COMPARISONS.where(sa.or_(series.HEAD.c.place.is_not(None), COMPARISON.c.status.is_(None)))
    for name, rows in series.by_case(connection, wanted):  # one at a time: all of them may be gigabytes
        group = series.loaded(connection, rows, None, here)
        if not any(_is_pinned(row) for one in group for row in one.comparisons):
            placed = series.HEADS.where(COMMIT.c.place.is_not(None))
            group = series.loaded(connection, rows, placed, here)
            if not any(one.points for one in group):
                group = series.loaded(connection, rows, series.HEADS, here)
        same = (row for row in decided if (row.card, row.case, row.gpu) == (name.card, name.case, name.gpu))
        own = [row for row in same if row.repository in ("", name.repository)]
        found.append(_of_case(name, group, places, own, never))
    return tuple(one for one in found if one.places)


def _of_case(
    name: CaseName,
    group: Sequence[MeasuredSeries],
    places: Mapping[str, int | None],
    decided: Sequence[Any],
    never: Sequence[tuple[int | None, int | None]],
) -> CaseChanges:
    excluded = {row.sha for row in decided if row.kind == "excluded"}
    accepted = {row.sha: f"by {row.who}: {row.why}" for row in decided if row.kind == "accepted"}
    accepted_at = {places.get(sha): why for sha, why in accepted.items()}
    seen = ([night for number, one in enumerate(group) for night in of(one, number)] for of in (_nights, _times))
    against, alone = seen
    nights = [night for night in against or alone if night.commit not in excluded]
    compared = sorted((row for one in group for row in one.comparisons), key=lambda row: (row.made or "", row.record))
    measured = tuple(_pairs(compared, places))
    rows = [(row.made, row.head) for row in compared]
    rows += [(row.made, row.commit) for one in group for row in one.points if row.side == "head"]
    first = {commit: made for made, commit in sorted((made, commit) for made, commit in rows if made and commit)[::-1]}
    known = _known(compared)
    ended = []
    for change in changes.of_series(nights):
        found = settled(change, measured, known)
        # With later nights the place of a step shifts a little, and its commit may be one that no night has measured.
        within = range(change.previous_place + 1, change.place + 1) if change.kind == "step" else ()
        whys = [accepted.get(change.commit), *map(accepted_at.get, within)]
        if (why := next(filter(None, whys), None)) is not None:
            found = replace(change, state="accepted", why=why)
        commits = max(1, found.place - found.previous_place)
        ended.append(replace(found, series=name, pinned=bool(against), made=first.get(found.commit), commits=commits))
    ordered = tuple(sorted(night.place for night in nights))
    spread_pct = 100 * median(pair.spread for pair in measured) if measured else None
    useless = [(places.get(row.base), row.place) for row in compared if row.finding is not None]
    tried = Counter((old, new) for old, new in [*never, *useless] if old is not None and new is not None)
    in_vain = frozenset(pair for pair, times in tried.items() if times >= LOOKS)
    return CaseChanges(name, ordered, tuple(ended), spread_pct, bool(against), measured, known, in_vain)


def _known(compared: Sequence[HistoryComparison]) -> KnownSpread | None:
    """What comparisons with a pinned commit show, the newest most: no pair that is to be settled counts twice."""
    rows = [row for row in compared if _is_pinned(row) and row.spread_pct and row.processes > 1]
    seen = [
        KnownSpread(
            spread_pct=min(row.spread_pct or 0.0, prior.MOST_PCT), noise_pct=0.0, df=row.processes - 1, comparisons=1
        )
        for row in rows[-NIGHTS_KNOWN:]
    ]
    found = reduce(prior.joined, seen) if seen else None
    return found if found and found.df >= prior.HISTORY_DF else None


def _nights(one: MeasuredSeries, number: int) -> Iterator[Night]:
    rows = (row for row in one.comparisons if _is_pinned(row) and row.head is not None and row.place is not None)
    for same in _alike((row, row.base, row.head) for row in rows if row.error is not None):
        value, error = _together([(row.effect, row.error or 0.0, row.processes) for row in same])
        yield Night(same[0].head or "", same[0].place or 0, f"{number} {same[0].base}", value, error)


def _times(one: MeasuredSeries, number: int) -> Iterator[Night]:
    """Each head's time. In the order of time where no commit's place is known."""
    heads = [row for row in one.points if row.side == "head" and row.finding is None and row.commit]
    placed = [row for row in heads if row.place is not None]
    rows = _alike((row, row.commit) for row in placed or heads)
    if len(rows) < LEAST_TIMES:
        return
    taken = [_together([(math.log(row.us), row.error or 0.0, row.processes) for row in same]) for same in rows]
    scatter = NORMAL_MAD * float(np.median(np.abs(np.diff([value for value, _ in taken])))) / math.sqrt(2)
    for order, ((row, *_), (value, error)) in enumerate(zip(rows, taken, strict=True)):
        place = order if row.place is None else row.place
        yield Night(row.commit or "", place, str(number), value, math.hypot(error, scatter))


def _alike(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Each night's records of the same code together: they share what the night was like, and are one look at it."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row, *what in rows:
        groups.setdefault((*what, row.made and row.made[:10]), []).append(row)
    return list(groups.values())


def _together(looks: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """The mean over all processes of these values, and its error. Each has an error and a number of processes."""
    count = sum(processes for *_, processes in looks)
    mean = sum(processes * value for value, _, processes in looks) / count
    return mean, math.hypot(*(processes * error for _, error, processes in looks)) / count


def _is_pinned(row: HistoryComparison) -> bool:
    """What the judge has no status of is no comparison of base and head; what has a finding is not to be believed."""
    return row.status is None and row.finding is None


def _pairs(compared: Sequence[HistoryComparison], places: Mapping[str, int | None]) -> Iterator[PairMeasured]:
    """Comparisons of two commits that are both on the default branch."""
    for row in compared:
        base = places.get(row.base)
        if row.status is None or row.finding is not None or row.processes < 2 or base is None or row.place is None:
            continue
        if row.head is not None and row.error is not None and row.spread_pct is not None:
            ends = (row.base, base, row.head, row.place)
            yield PairMeasured(*ends, row.effect, row.error, row.spread_pct / 100, row.processes, row.record)


def oldest_first(found: Iterable[CaseChanges]) -> tuple[Change, ...]:
    return tuple(sorted((change for one in found for change in one.changes), key=lambda one: (one.place, one.series)))


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
    end += f", {len(every) - len(told)} suspected and refuted\n" if len(told) < len(every) else "\n"
    if unpinned := sum(not one.pinned for one in found):
        alone = formatting.counted(unpinned, "case")
        end += f"By times alone in {alone}: with no pinned commit beside them, the machine counts, too.\n"
    if not told:
        return end
    changed = table(("commits", "#change", "95%", "state", "case"), map(_row, told))
    return "\n".join([render.in_columns(changed), "", *dict.fromkeys(map(_commit, told)), "", end])


def _commit(change: Change) -> str:
    """When the commit was first measured, and who wrote it, as far as the checkout knows."""
    among = f" (the last of {change.commits} commits)" if change.commits > 1 else ""
    words = f"{change.commit[:7]}  {(change.made or '?')[:10]}"
    words += f"  {change.author}: {change.subject}" if change.subject is not None else ""
    return escape.visible(words, render.WIDTH - len(among)) + among


def _row(change: Change) -> tuple[str | Line, ...]:
    size, interval = change.words
    return (
        f"{change.previous[:7]}..{change.commit[:7]}",
        size,
        interval,
        change.state,
        (Code(change.series.written), *formatting.device(Device(name=change.series.gpu or None))),
    )


# ---- what comparisons confirm ----------------------------------------------------------------------------------------

LONGER = 4
"""A comparison over so many times as many commits says nothing of a change."""

CONFIRM_P: Final = 1e-4
"""People are told of a change that a comparison of both commits shows, too, where chance makes it this rarely."""
LOOKS: Final = 3
"""A comparison that decides nothing, or cannot be made, is repeated, until there were so many."""


@dataclass(frozen=True)
class PairMeasured:
    """One comparison of two commits in one case, as the store keeps it. Logarithms of head over base."""

    base: str
    base_place: int
    head: str
    head_place: int
    effect: float
    error: float
    """Its standard error, as the judge gave it."""
    spread: float
    """Standard deviation of the processes' effects."""
    processes: int
    """At least 2."""
    record: str | None = None
    """By its sha256."""

    @property
    def commits(self) -> int:
        return self.head_place - self.base_place

    def shared(self, change: Change) -> int:
        """Commits that are the change's, too."""
        return min(change.place, self.head_place) - max(change.previous_place, self.base_place)

    @property
    def effects(self) -> Array:
        """Of processes with this mean and standard deviation; equally precise ones tell nothing more."""
        shape = np.linspace(-1.0, 1.0, self.processes)
        return np.asarray(self.effect + self.spread * shape / np.std(shape, ddof=1))


def settled(change: Change, measured: Sequence[PairMeasured], known: KnownSpread | None = None) -> Change:
    """The change as all comparisons of the case leave it: confirmed, refuted, or still suspected. One that was compared
    has the commits and the size that were measured side by side. `known`: what is known of the case's processes."""
    mine = change.place - change.previous_place
    near = [(one, one.shared(change)) for one in measured if one.commits <= LONGER * mine]
    # The ends of a drift shift every night. Of one of its steps, as it was suspected before, it is no more than a part.
    least = mine / 2 if change.kind == "drift" else mine
    if covering := [one for one, shared in near if shared >= least]:
        return _judged(change, covering, known)
    # With later nights the place shifts a little: a pair that holds a part of the change may confirm, but not refute.
    inside = [one for one, shared in near if 2 * shared >= min(mine, one.commits)]
    found = _judged(change, inside, known) if inside else change
    return found if found.state == "confirmed" else change


def _judged(change: Change, near: Sequence[PairMeasured], known: KnownSpread | None) -> Change:
    """By the comparisons of the one pair of commits that comes closest to the change's."""
    pair = min(near, key=lambda one: abs(one.base_place - change.previous_place) + abs(one.head_place - change.place))
    own = [one for one in near if (one.base, one.head) == (pair.base, pair.head)]
    pooled = together(own, known)
    half = pooled.half_width(1 - INTERVAL_LEVEL)
    low, size, high = (as_percent(pooled.change + off) for off in (-half, 0.0, half))
    seen = replace(
        change,
        previous=pair.base,
        previous_place=pair.base_place,
        commit=pair.head,
        place=pair.head_place,
        change_pct=size,
        interval_pct=(low, high),
    )
    # Looking again is another chance of being wrong: each look has half of the level that the one before it had.
    certain = pooled.p() <= CONFIRM_P / 2 ** len(own)
    along = (size > 0) == (change.change_pct > 0)
    most = high if change.change_pct > 0 else -low
    said = f"measured side by side: {formatting.percent(size, 2, sign=True)}"
    if certain and along and abs(size) >= SMALLEST_PCT:
        return replace(seen, state="confirmed", why=said)
    if certain and not along:
        return replace(seen, state="refuted", why=f"{said}, which is the other direction")
    if most < SMALLEST_PCT:
        return replace(seen, state="refuted", why=f"{said}, and no change as large as {SMALLEST_PCT:g}%")
    if len(own) >= LOOKS:
        times = formatting.counted(len(own), "comparison")
        return replace(seen, state="refuted", why=f"{said}, which {times} could not tell from no change")
    between = f"{formatting.percent(low, 2, sign=True)} to {formatting.percent(high, 2, sign=True)}"
    return replace(seen, state="suspected", why=f"measured side by side: {between}, which decides nothing yet")


def together(measured: Sequence[PairMeasured], known: KnownSpread | None = None) -> Pooled:
    """All processes of all comparisons, as the judge combines them; no more certain than the judge said of any part."""
    values = np.concatenate([one.effects for one in measured])
    # What rounds add is part of the spread that is seen.
    before = prior.prior(prior.CHANGE_PCT, known)
    found = prior.fit(values, np.zeros(len(values)), before).pooled(before.share, math.inf)
    floor = 1 / math.sqrt(sum(1 / max(one.error, 1e-12) ** 2 for one in measured))
    return replace(found, error=max(found.error, floor))


# ---- among several commits -------------------------------------------------------------------------------------------
# For workflows, which compare pairs. The commit that is found is in the end compared with the one before it.

MOST_COMPARISONS = 24
"""A search that needs more ends with the whole range, of which no commit is blamed."""


@dataclass(frozen=True)
class Bracket:
    """A confirmed change was made after the place `low`, and not after `high`."""

    low: int
    high: int
    pairs: tuple[tuple[int, int], ...] = ()
    """Of commits to compare next, those that tell most first; none where it is done, or nothing tells more."""
    gradual: bool = False
    """No single commit made most of it."""


def narrowed(change: Change, case: CaseChanges) -> Bracket:
    """What all comparisons of the case tell of where the change was made."""
    first, last = change.previous_place, change.place
    inside = [one for one in case.measured if first <= one.base_place < one.head_place <= last]
    if change.kind == "drift" or last - first <= 1 or not inside:
        return Bracket(first, last, gradual=change.kind == "drift")
    reads = tuple(
        {one.base_place - first: CommitTime(0.0, 0.0), one.head_place - first: CommitTime(float(value), 0.0)}
        for one in inside
        for value in one.effects
    )
    spread_pct = case.known.spread_pct if case.known else 100 * median(one.spread for one in inside)
    found = posterior.of(Search(last - first, reads, spread_pct=max(spread_pct, prior.CHANGE_PCT)))
    if found.several >= CHANCE:
        return Bracket(first, last, gradual=True)
    # A commit that only stands in pairs that cannot be compared is stepped over: it is told with the one after it.
    pairs = {(one.base_place, one.head_place) for one in inside}
    out = {place for pair in case.in_vain for place in pair} - {place for pair in pairs for place in pair}
    ends = [at for at in range(first + 1, last + 1) if at not in out]
    before = [first, *ends]
    sums = np.cumsum(found.culprit)[np.array(ends) - first] / max(1 - found.several, 1e-300)
    chances = np.diff(sums, prepend=0.0)
    best = int(np.argmax(chances))
    if chances[best] >= CHANCE:
        pair = before[best], ends[best]
        return Bracket(*pair, () if pair in pairs | case.in_vain else (pair,))
    if len(inside) >= MOST_COMPARISONS:
        return Bracket(first, last, gradual=True)
    low, high = (int(np.searchsorted(sums[:-1], share)) for share in ((1 - CHANCE) / 2, (1 + CHANCE) / 2))
    splits = sorted(range(len(ends) - 1), key=lambda at: abs(sums[at] - sums[-1] / 2))
    left = tuple(pair for pair in ((first, ends[at]) for at in splits) if pair not in case.in_vain)
    return Bracket(before[low], ends[high], left)
