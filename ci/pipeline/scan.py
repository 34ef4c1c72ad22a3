"""`kernelgate scan`: which past commits changed a kernel's time.

Past commits are built and timed beside each other, several in one process, each time with the newest one. Where two
neighbours differ by more than chance explains, they are compared as a pull request is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Final

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.measure import bisect
from kernelgate.bench.measure.bisect import DISK_FULL, Workbench
from kernelgate.bench.record import CaseKey
from kernelgate.bench.system import environment, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import side_by_side
from kernelgate.ci.bisect.posterior import ProcessRead
from kernelgate.ci.bisect.rounds import LIBRARIES, PROCESSES, SMALLEST_PCT, spread_pct, times
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge.case import Direction
from kernelgate.ci.pipeline import local
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.scan import SHORT, ScanAnswer, ScannedCase, ScannedChange, ScannedLevel

SURVEY: Final = "survey.json"
"""The record of all commits beside each other."""
SUSPECTED: Final = 3.0
"""Standard errors by which neighbours differ that are compared: what is missed here is missed for good, and a needless
comparison takes a minute."""
BUILT_BY, TIMED_BY = 0.5, 0.7
"""Shares of the budget after which no further commit is built, and none is timed; the rest is for comparisons."""
CORES_A_BUILD = 4
PROCESSES_A_COMPARISON = 4
"""As long as so many processes the first comparison is taken to last: two of both commits, one of each alone."""


class Budget:
    """Of time. A step begins if it ends in time even where it takes as long as the longest one of its kind did."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._spent_s = seconds, lock.stopwatch()
        self._longest: dict[str, float] = {}

    @property
    def left_s(self) -> float:
        return self._seconds - self._spent_s()

    def holds(self, kind: str, until: float = 1.0) -> bool:
        """Whether another step ends before this share of the whole is spent."""
        longest = {"comparison": PROCESSES_A_COMPARISON * self._longest.get("process", 0.0)} | self._longest
        return self.left_s - longest.get(kind, 0.0) > (1 - until) * self._seconds

    @contextmanager
    def step(self, kind: str) -> Iterator[None]:
        took = lock.stopwatch()
        yield
        self._longest[kind] = max(self._longest.get(kind, 0.0), took())


@dataclass(frozen=True)
class Scan:
    """What is scanned: the commits after the first of `ends`, up to the second."""

    repo: Path
    since: str
    ends: tuple[str, str]
    cards: Path
    case: str | None
    budget_s: float
    rounds: int
    seed: int | None


@dataclass
class Survey:
    bench: Workbench
    touching: frozenset[int]
    reads: list[ProcessRead] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)
    built: set[int] = field(default_factory=set)

    @property
    def libraries(self) -> list[int]:
        """The first commit of each run of commits that are built to one library."""
        kept: list[int] = []
        for place in sorted(self.built - self.faults.keys()):
            if not kept or not self.bench.same(kept[-1], place):
                kept.append(place)
        return kept

    def difference(self, one: int, other: int) -> tuple[float, float] | None:
        """The log change from one commit to another that lay in the same processes, and its standard error."""
        reads = [read for read in self.reads if {one, other} <= read.keys()]
        if not reads:
            return None
        spread = spread_pct(self.bench.setup.device, self.bench.together) / 100
        change = sum(read[other].log_time - read[one].log_time for read in reads) / len(reads)
        variance = sum(read[one].variance + read[other].variance for read in reads) / len(reads)
        return change, sqrt((2 * spread**2 + variance) / len(reads))


def run(asked: Scan, policy: Policy, out: Path) -> ScanAnswer:
    """Leaves in `out` a folder for each card with the survey's record, and one for each change with what a pull request
    leaves. Raises UsageError for a case that is none."""
    device = environment.kind(environment.describe())
    named = (asked.case,) if asked.case else ()
    chosen = cards.select(cards.of_checkout(asked.repo, asked.cards), device, None, named)
    first = {one.card.name: f"{one.card.name}/{one.case.id}" for one in reversed(chosen)}
    if not first:
        raise cards.none_for(device)
    ends, whole, found = bisect.between(asked.repo, *asked.ends), Budget(asked.budget_s), list[ScannedCase]()
    for at, (card, case) in enumerate(sorted(first.items())):
        one = replace(asked, case=case, budget_s=whole.left_s / (len(first) - at))
        try:
            found.append(_scanned(one, policy, out / card))
        except KernelgateError as error:
            found.append(ScannedCase(case=case, fault=str(error)))
    return ScanAnswer(since=asked.since, ends=(ends.shas[0], ends.shas[-1]), commits=ends.last, cases=tuple(found))


def _scanned(asked: Scan, policy: Policy, out: Path) -> ScannedCase:
    """Of one case. Raises KernelgateError where the newest commit cannot be measured."""
    budget = Budget(asked.budget_s)
    files.try_file(out / SURVEY)
    how = bisect.measuring(asked.rounds, asked.seed)

    def keep(made: record.RunRecord) -> None:
        record.write(made, out / SURVEY)

    opened = bisect.opened(asked.repo, asked.ends, asked.case, how, policy.timing.lock_clocks, keep, asked.cards)
    with opened as bench:
        made = survey(bench, budget)
    kept = made.libraries
    changes: list[tuple[Direction, ScannedChange]] = []
    differences = _differences(made)
    for before, after, change, least in sorted(differences, key=lambda one: -abs(one[2])):
        if abs(change) > least:
            suspected = partial(_change, made, before, after, as_percent(change))
            if budget.holds("comparison"):
                with budget.step("comparison"):
                    changes.append(_compared(asked, bench, (before, after), suspected, policy, out))
            else:
                changes.append((Direction.NONE, suspected("suspected, and not compared: the budget is spent")))
    by = {way: tuple(one for found, one in changes if found is way) for way in Direction}
    levels = [(place, made.difference(kept[-1], place)) for place in kept]
    shas = bench.shas
    return ScannedCase(
        case=f"{bench.card.name}/{bench.case.id}",
        touching=len(made.touching),
        levels=tuple(
            ScannedLevel(commit=shas[place], subject=bench.range.subject(place), above_newest_pct=as_percent(level[0]))
            for place, level in levels
            if level is not None
        ),
        visible_pct=as_percent(max(least for *_, least in differences)) if differences else None,
        slower=by[Direction.SLOWER],
        faster=by[Direction.FASTER],
        unconfirmed=by[Direction.NONE],
        not_measured={shas[place]: why for place, why in sorted(made.faults.items())},
        no_time=len(made.touching - made.built - made.faults.keys()),
    )


def survey(bench: Workbench, budget: Budget) -> Survey:
    """Builds the commits that touch the kernel, and times them in windows. Raises KernelgateError where the newest one
    cannot be called."""
    last = bench.range.last
    made = Survey(bench, bench.range.touching(bench.paths()))
    places = sorted({0, last} | made.touching)
    say(f"{len(made.touching)} of {last} commits touch what {bench.card.name} is built from")
    if not made.touching:
        return made
    width = max(1, (os.cpu_count() or 1) // CORES_A_BUILD)
    order = list(halving(places))
    for at in range(0, len(order), width):
        some = order[at : at + width]
        if at and not budget.holds("build", BUILT_BY):
            break
        with budget.step("build"):
            if len(some) > 1:
                side_by_side([partial(_build_ahead, bench, place) for place in some], width)
            reasons = [_built(bench, place) for place in some]
        for place, why in zip(some, reasons, strict=True):
            if why is None:
                made.built.add(place)
            elif place == last:
                raise KernelgateError(f"{bench.shas[place][:SHORT]}, the newest commit, cannot be measured: {why}")
            else:
                say(f"{bench.shas[place][:SHORT]} is left out: {why}")
                made.faults[place] = why
    processes = [window for window in windows(made.libraries, LIBRARIES) for _ in range(PROCESSES)]
    for number, window in enumerate(processes, 1):
        if number > 1 and not budget.holds("process", TIMED_BY):
            break
        with budget.step("process"):
            _time(made, [place for place in window if place not in made.faults], number)
    return made


def _build_ahead(bench: Workbench, place: int) -> None:
    """Into the cache; what is wrong is told when the library is asked for."""
    with suppress(KernelgateError):
        bench.range.build(place, HowToBuild(forgiving=True, only=(bench.card.name,)))


def _built(bench: Workbench, place: int) -> str | None:
    """Why a commit cannot be called, else None. Raises KernelgateError where the disk is full."""
    try:
        return bench.build(place)
    except KernelgateError as error:
        if DISK_FULL in str(error):
            raise
        return str(error)


def _time(survey: Survey, places: Sequence[int], number: int) -> None:
    together = survey.bench.together
    measured = survey.bench.measure(places, number)
    survey.faults |= measured.faults
    if measured.together != together:
        survey.reads.clear()  # what was measured together is evidence of another kind
    if measured.timing is not None and len(measured.places) > 1:
        sides = {survey.bench.side(place): place for place in measured.places}
        survey.reads.append(times(measured.timing, sides))
    survey.reads[:] = [{at: one for at, one in read.items() if at not in survey.faults} for read in survey.reads]


def halving(places: Sequence[int]) -> Iterator[int]:
    """Both ends, the last first, then the middles of the largest gaps: what was taken is spread evenly all along."""
    yield from dict.fromkeys((places[-1], places[0]))
    gaps = [(0, len(places) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            yield places[middle]
            gaps += [(low, middle), (middle, high)]


def windows(places: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """What shares a process, the newest first: the last place, and neighbours, one of them in two windows."""
    if len(places) < 2:
        return
    *others, newest = places
    end = len(others)
    while end > 0:
        start = max(0, end - size + 1)
        yield (*others[start:end], newest)
        end = start + 1 if start else 0


def _differences(survey: Survey) -> list[tuple[int, int, float, float]]:
    timed = [place for place in survey.libraries if any(place in read for read in survey.reads)]
    found = []
    for before, after in pairwise(timed):
        if difference := survey.difference(before, after):
            change, error = difference
            found.append((before, after, change, max(SUSPECTED * error, SMALLEST_PCT / 100)))
    return found


def _compared(
    asked: Scan,
    bench: Workbench,
    pair: tuple[int, int],
    suspected: Callable[[str], ScannedChange],
    policy: Policy,
    out: Path,
) -> tuple[Direction, ScannedChange]:
    """What a pull request of the later commit against the earlier one would get, for this case alone. `suspected`: the
    change, with what is said of it."""
    base, head = (bench.shas[place] for place in pair)
    folder = out / head[:SHORT]
    say(f"comparing {base[:SHORT]} with {head[:SHORT]}: {bench.range.subject(pair[1])}")
    case = CaseKey(bench.card.name, bench.case.id)
    compare = local.Compare(asked.repo, base, head, asked.cards, cases=(f"{case.card}/{case.id}",))
    gates = policy.gates.model_copy(update={"sanitizer": "ignore"})  # what was merged long ago is asked for its time
    try:
        result = local.run(compare, folder, policy.model_copy(update={"gates": gates}))
    except KernelgateError as error:
        return Direction.NONE, suspected(str(error))
    files.write_each({folder / name: text for name, text in result.files.items()})
    if result.verdict is None:
        return Direction.NONE, suspected("it does not compile")
    judged = next((one for one in result.verdict.cases if one.key == case), None)
    if judged is None:
        return Direction.NONE, suspected(result.verdict.reason)
    told: dict[str, object] = {"folder": str(folder)}
    if judged.change_pct is not None and judged.direction is not Direction.NONE:
        told |= {"change_pct": judged.change_pct, "interval_pct": judged.interval_pct}
    return judged.direction, suspected(judged.sentence).model_copy(update=told)


def _change(survey: Survey, before: int, after: int, change_pct: float, said: str) -> ScannedChange:
    bench = survey.bench
    alike = [place for place in survey.built if before < place < after and bench.same(before, place)]
    since = max(alike, default=before)
    return ScannedChange(
        commit=bench.shas[after],
        subject=bench.range.subject(after),
        before=bench.shas[since],
        between=tuple(bench.shas[place] for place in sorted(survey.touching) if since < place < after),
        change_pct=change_pct,
        said=said,
    )
