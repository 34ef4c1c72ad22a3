"""Which nights of a series arouse suspicion: steps, and gradual drift.

A series is one case of a card on one kind of GPU. Its nights are ordered by the commits' places on the default branch.
In a new environment (driver, torch, GPU) head and pinned commit may change unequally, so each environment is looked at
by itself, and the level at which one begins tells nothing about the code.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

import numpy as np
import scipy

from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.history import levels
from kernelgate.ci.history.facts import Change
from kernelgate.ci.history.levels import SMALLEST_PCT, SURELY, Levels
from kernelgate.ci.judge.stats import NORMAL_95, Array

LIKELY = 0.001
"""A gap between nights belongs to a change if it holds it with at least this probability."""
FEW, PLACED = 3, 0.95
"""A change is one of its own, whatever is beside it, where so few gaps hold it with this probability."""
KNOTS = 32
"""Nights at which a ramp is tried to begin or to end."""
AT_ONCE = 50
"""Ramps that are tried together: what is reckoned of more does not stay in the processor's cache."""
NUMBERS: Final = {"step": 3, "drift": 5}
"""What each may choose: its size, and its places, of which each counts twice since it is one of all nights."""
TINY = 1e-9
"""Of all weights: a change that is left so little beside others cannot be told from them."""

SUSPECT: Final = 0.5
"""A change is suspected from this probability on, and when so many NIGHTS before it and after it have been seen: one
alone may be a bad one."""
NIGHTS: Final = 2
PLACE: Final = 0.999
"""The two commits of a change are as far apart as it takes for the change to lie between them with this probability."""
DRIFT_PCT: Final = 0.5
"""Gradual drift: by at least this much, over at least DRIFT_NIGHTS, where chance explains it as rarely as DRIFT_P."""
DRIFT_NIGHTS: Final = 20
DRIFT_P: Final = 1e-4


@dataclass(frozen=True)
class Night:
    """What one night measured of one case."""

    commit: str
    place: int
    """Of the commit in the first-parent order of the default branch."""
    environment: str
    """A key: nights with the same one are alike in all but the code."""
    log_ratio: float
    """Of the head's time over the pinned commit's, in the same processes."""
    error: float


def of_series(nights: Iterable[Night]) -> tuple[Change, ...]:
    """All changes that the nights of one series suggest, oldest first."""
    ordered = sorted(nights, key=lambda one: one.place)
    environments = dict.fromkeys(one.environment for one in ordered)
    parts = {key: [one for one in ordered if one.environment == key] for key in environments}
    seen = {key: np.array([(one.log_ratio, one.error) for one in part]).T for key, part in parts.items()}
    known = {key: levels.of_series(*columns) for key, columns in seen.items()}
    found = _once([change for key, part in parts.items() for change in _steps(part, known[key])])
    return tuple(_with_drift(_good(parts, known), found))


def _steps(nights: Sequence[Night], known: Levels) -> list[Change]:
    if len(nights) < 2:
        return []
    # Gap i lies before night i + 1. What is above any gap's: where nights scatter, each may hold a small change.
    chances = np.maximum(0.0, known.chances - np.median(known.chances))
    likely = np.flatnonzero(chances >= LIKELY)
    runs = np.split(likely, np.flatnonzero(np.diff(likely) > 1) + 1)
    turns = (turn for run in runs if len(run) for turn in _turns(range(run[0], run[-1] + 1), known.means))
    parts = (part for turn in turns for part in _apart(turn, chances))
    made = (_step(nights, known, part.start, chances[part.start : part.stop]) for part in parts)
    return [one for one in made if one is not None]


def _turns(run: range, means: Array) -> list[range]:
    """These gaps, cut where the level turns for more than a night: a step and a drift back are no single change."""
    inside = means[run.start : run.stop + 1]
    for along in (inside, -inside):
        lasting = np.minimum(along[:-1], along[1:])
        at = int(lasting.argmax())
        if lasting[at] - max(along[0], along[-1]) >= math.log1p(SMALLEST_PCT / 100):
            return [*_turns(run[:at], means), *_turns(run[at:], means)]
    return [run]


def _apart(run: range, chances: Array) -> list[range]:
    """These gaps, cut beside a change that lies in few of them where they hold more than that: a step on a drift."""
    own = chances[run.start : run.stop]
    for wide in range(1, FEW + 1) if own.sum() >= 1 + SUSPECT else ():
        sums = np.convolve(own, np.ones(wide), "valid")
        at = int(sums.argmax())
        if sums[at] >= PLACED:
            return [*_apart(run[:at], chances), run[at : at + wide], *_apart(run[at + wide :], chances)]
    return [run] if len(run) else []


def _step(nights: Sequence[Night], known: Levels, first: int, chances: Array) -> Change | None:
    """The change in the gaps from `first` on that have these chances; None where there is too little to suspect one."""
    chance = min(1.0, float(chances.sum()))
    likely = first + 1 + int(np.argmax(chances))
    good = known.bad < SURELY
    if chance < SUSPECT or min(good[:likely].sum(), good[likely:].sum()) < NIGHTS:
        return None
    sums, tail = np.cumsum(chances) / chances.sum(), (1 - PLACE) / 2
    before = first + int(np.searchsorted(sums, tail, side="right"))
    after = first + int(np.searchsorted(sums, 1 - tail - 1e-12)) + 1
    while before > 0 and known.bad[before] > SURELY:
        before -= 1
    while after < len(nights) - 1 and known.bad[after] > SURELY:
        after += 1
    size = float(known.means[after] - known.means[before])
    if abs(size) < math.log1p(SMALLEST_PCT / 100):
        return None
    error = math.hypot(known.deviations[before], known.deviations[after])
    return _change("step", nights[before], nights[after], (size, error), chance)


def _change(
    kind: Literal["step", "drift"], before: Night, after: Night, found: tuple[float, float], chance: float = 1.0
) -> Change:
    """`found`: its size as a log ratio, and the standard error of that."""
    low, size, high = (as_percent(found[0] + off * NORMAL_95 * found[1]) for off in (-1, 0, 1))
    same = before.commit == after.commit
    return Change(
        kind=kind,
        previous=before.commit,
        previous_place=before.place,
        commit=after.commit,
        place=after.place,
        environment=after.environment,
        change_pct=size,
        interval_pct=(low, high),
        state="refuted" if same else "suspected",
        chance=chance,
        why="the same commit was measured on both sides: the machine changed, not the code" if same else "",
    )


def _once(found: Sequence[Change]) -> list[Change]:
    """The oldest first. Of two environments' changes that overlap, the one that is known closer."""
    kept: list[Change] = []
    for change in sorted(found, key=lambda one: (one.place - one.previous_place, -one.chance)):
        alike = (one for one in kept if (one.change_pct > 0) == (change.change_pct > 0))
        elsewhere = (one for one in alike if one.environment != change.environment)
        if not any(one.previous_place < change.place and change.previous_place < one.place for one in elsewhere):
            kept.append(change)
    return sorted(kept, key=lambda one: one.place)


# ---- drift -----------------------------------------------------------------------------------------------------------
# A drift and the steps that it may stand for are compared by the misfit of all nights, to which each free number adds
# log n (Schwarz 1978, Annals of Statistics 6). The other changes and the levels are fitted anew each time.


@dataclass(frozen=True, eq=False)
class Looks:
    """The good nights of all environments, by place."""

    nights: Sequence[Night]
    roots: Array
    """Of the nights' weights."""
    levels: Array
    """Of each environment, as shapes."""

    def beside(self, others: Sequence[Array]) -> Array:
        """What these changes and the levels explain, as orthogonal columns, and last what they leave of the nights."""
        known = scipy.linalg.orth((self.roots * np.array([*self.levels, *others])).T)
        seen = self.roots * np.array([one.log_ratio for one in self.nights])
        return np.column_stack([known, seen - known @ (seen @ known)])

    def best(self, shapes: Array, beside: Array, first: int = 0) -> tuple[int, float, float, float]:
        """Of these shapes of a change, from night `first` on, the one that fits best beside others: which, its size,
        the standard error of that, and the misfit."""
        end, left, rooted = first + shapes.shape[1], beside[:, -1], self.roots[:, None] * beside
        shares = shapes @ rooted[first:end] + rooted[end:].sum(axis=0)
        across = shapes**2 @ self.roots[first:end] ** 2 + np.square(self.roots[end:]).sum()
        across -= np.square(shares[:, :-1]).sum(axis=1)
        across[across < TINY * np.square(self.roots).sum()] = math.inf  # such as a step with a new environment
        along = shares[:, -1]
        at = int(np.argmax(along**2 / across))
        size, error = float(along[at] / across[at]), 1 / math.sqrt(float(across[at]))
        return at, size, error, float(left @ left - along[at] ** 2 / across[at])


@dataclass(frozen=True, eq=False)
class Ramp:
    """The level moves by `size`, a log ratio, from night `first` to night `last`."""

    first: int
    last: int
    size: float
    error: float
    misfit: float
    shape: Array


def _good(parts: Mapping[str, Sequence[Night]], known: Mapping[str, Levels]) -> Looks:
    nights = []
    for key, part in parts.items():
        kept = (night for night, odd in zip(part, known[key].odd, strict=True) if not odd)
        nights += [replace(night, error=math.hypot(night.error, known[key].alone)) for night in kept]
    nights.sort(key=lambda one: one.place)
    levels = [[one.environment == key for one in nights] for key in parts]
    return Looks(nights, np.array([1 / one.error for one in nights]), np.array(levels, dtype=float))


def _with_drift(looks: Looks, found: Sequence[Change]) -> list[Change]:
    """The changes, oldest first, in which drift takes the place of the steps that it explains better."""
    told, places = list(found), [one.place for one in looks.nights]
    ends = [sorted((bisect_right(places, one.previous_place), bisect_left(places, one.place))) for one in told]
    tried = [(np.arange(len(places)) >= np.arange(low, high + 1)[:, None]).astype(float) for low, high in ends]
    shapes = [one[len(one) // 2] for one in tried]
    for at, every in enumerate(tried):  # each where it fits best while the others stay
        shapes[at] = every[looks.best(every, looks.beside([*shapes[:at], *shapes[at + 1 :]]))[0]]
    while slow := _slowest(looks, told, shapes):
        run, parts = slow
        told[run], shapes[run] = [change for change, _ in parts], [shape for _, shape in parts]
    return _joined(looks, told)


def _joined(looks: Looks, told: Sequence[Change]) -> list[Change]:
    """Without small steps beside a drift in its direction: no drift begins and ends as evenly as a ramp."""
    places, made = [one.place for one in looks.nights], list[Change]()
    for change in told:
        before = made[-1] if made else change
        kinds, sizes = {before.kind, change.kind}, (before.change_pct, change.change_pct)
        small = all(abs(one.change_pct) < DRIFT_PCT for one in (before, change) if one.kind == "step")
        small = small and before.state == change.state == "suspected"
        nights = bisect_left(places, change.previous_place) - bisect_left(places, before.place)
        if made and "drift" in kinds and small and sizes[0] * sizes[1] > 0 and nights <= DRIFT_NIGHTS / 2:
            logs = [[math.log1p(pct / 100) for pct in (*one.interval_pct, one.change_pct)] for one in (before, change)]
            error = math.hypot(*((high - low) / (2 * NORMAL_95) for low, high, _ in logs))
            ends = (bisect_left(places, place) for place in (before.previous_place, change.place))
            first, last = (looks.nights[min(at, len(places) - 1)] for at in ends)
            made[-1] = _change("drift", first, last, (sum(size for *_, size in logs), error))
        else:
            made.append(change)
    return made


def _slowest(
    looks: Looks, told: Sequence[Change], shapes: Sequence[Array]
) -> tuple[slice, list[tuple[Change, Array]]] | None:
    """The drift that explains the nights better than changes in one direction do, by most, and which it replaces."""
    free, places = math.log(max(1, len(looks.nights))), [one.place for one in looks.nights]
    now = looks.best(np.array(shapes[:1]), looks.beside(shapes[1:]))[-1] if told else 0.0
    most, found = 0.0, None
    for first, last, on in _runs(told):
        run = [told[at] for at in range(first, last) if at != on]
        low = bisect_left(places, told[first - 1].place) if first else 0
        high = bisect_right(places, told[last].previous_place) if last < len(told) else len(places)
        ramp = _ramp(looks, [one for at, one in enumerate(shapes) if at == on or not first <= at < last], low, high)
        if ramp is None or abs(ramp.size) < math.log1p(DRIFT_PCT / 100):
            continue
        gain = now - ramp.misfit + (sum(NUMBERS[one.kind] for one in run) - NUMBERS["drift"]) * free
        if gain > most and 2 * float(scipy.special.ndtr(-abs(ramp.size) / ramp.error)) < DRIFT_P:
            steps = [] if on is None else [(told[on], shapes[on])]
            most, found = gain, (slice(first, last), list(_parts(looks, ramp, steps)))
    return found


def _runs(told: Sequence[Change]) -> Iterator[tuple[int, int, int | None]]:
    """Neighbours in one direction, from one until another; also those beside the largest step between them."""
    for first, last in combinations(range(len(told) + 1), 2):
        inside = [at for at in range(first + 1, last - 1) if told[at].kind == "step"]
        for on in (None, *sorted(inside, key=lambda at: -abs(told[at].change_pct))[:1]):
            run = [told[at] for at in range(first, last) if at != on]
            along = len({(one.state, one.change_pct > 0) for one in run}) == 1 and run[0].state == "suspected"
            fewer = len(run) > (1 if on is None else 2) or any(one.kind == "step" for one in run)
            if along and fewer:
                yield first, last, on


def _parts(looks: Looks, ramp: Ramp, steps: Sequence[tuple[Change, Array]]) -> Iterator[tuple[Change, Array]]:
    """The ramp before the step, the step if there is one, and the ramp after it."""
    places, low, high = [one.place for one in looks.nights], ramp.last, ramp.last
    for step, _ in steps:
        low, high = bisect_right(places, step.previous_place) - 1, bisect_left(places, step.place)
    for first, last in ((ramp.first, min(low, ramp.last)), (max(high, ramp.first), ramp.last)):
        share = ramp.shape[last] - ramp.shape[first]
        if share > 0:
            change = _change("drift", looks.nights[first], looks.nights[last], (share * ramp.size, share * ramp.error))
            yield change, np.clip((ramp.shape - ramp.shape[first]) / share, 0.0, 1.0)
        yield from steps
        steps = ()


def _ramp(looks: Looks, others: Sequence[Array], low: int, high: int) -> Ramp | None:
    """The ramp between these nights, over at least DRIFT_NIGHTS, that fits best beside the others."""
    places = np.array([one.place for one in looks.nights])
    beside, gap = looks.beside(others), max(1, (high - low) // KNOTS)
    firsts = lasts = [*range(low, high - 1, gap), high - 1]
    while True:
        long = [(a, b) for a in firsts for b in lasts if b - a >= DRIFT_NIGHTS and places[a] < places[b]]
        if not long:
            return None
        ends = np.array(long)
        fitted = (_fitted(looks, beside, places, some) for some in np.array_split(ends, len(ends) // AT_ONCE + 1))
        ramp = min(fitted, key=lambda one: one.misfit)
        if gap == 1:
            return ramp
        near, gap = range(-gap, gap + 1, max(1, gap // 4)), max(1, gap // 4)  # closer and closer around the best
        firsts, lasts = ([end + off for off in near if low <= end + off < high] for end in (ramp.first, ramp.last))


def _fitted(looks: Looks, beside: Array, places: Array, ends: Array) -> Ramp:
    """The drift from one of these nights to another that fits best: even ones by commits, since nights may have none or
    many, and those that begin or end slowly, or do both."""
    start, stop = ends.min(), ends.max() + 1  # where any of them is under way
    firsts, lasts = places[ends[:, :1]], places[ends[:, 1:]]
    even = np.clip((places[start:stop] - firsts) / (lasts - firsts), 0.0, 1.0)
    late, early = even**2, (1 - even) ** 2
    shapes = np.concatenate([even, late, 1 - early, late**2, 1 - early**2, late * (3 - 2 * even)])
    best, size, error, misfit = looks.best(shapes, beside, start)
    first, last = ends[best % len(ends)].tolist()
    shape = np.pad(shapes[best], (start, len(places) - stop), constant_values=(0.0, 1.0))
    return Ramp(first, last, size, error, misfit, shape)
