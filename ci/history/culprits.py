"""Which commits made a case slower, as comparisons of both commits confirmed, and what became of each since. Where
several commits lie between the two, they are searched first; a drift is not: no commit made it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

import sqlalchemy as sa

from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.history import entry, facts, nights, store
from kernelgate.ci.history.changes import NIGHTS
from kernelgate.ci.history.database import COMMIT, COST, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import Entry, moment
from kernelgate.ci.history.facts import CaseName, Change, KnownCulprits, NightPlan
from kernelgate.ci.history.levels import SMALLEST_PCT
from kernelgate.ci.history.nights import CONFIRM_P, Bracket, CaseChanges
from kernelgate.ci.history.store import Store
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.prior import CHANGE_PCT
from kernelgate.ci.judge.stats import POWER
from kernelgate.ci.policy.policy import TO_DIRECT, Policy, RunnerGpu

LONGEST = 300
"""Characters of a name or a reason that is told."""


def of_index(connection: sa.Connection, found: Sequence[CaseChanges]) -> KnownCulprits:
    """All that may be told of these cases. Those that got faster are nobody's fault."""
    placed = connection.execute(sa.select(COMMIT.c.sha, COMMIT.c.place).where(COMMIT.c.place.is_not(None)))
    places: dict[str, int] = {row.sha: row.place for row in placed}
    line = {place: sha for sha, place in places.items()}
    groups: dict[tuple[str, str, str, str], list[facts.CulpritCase]] = {}
    searches = []
    for one, change, bracket in _narrowed(found):
        name = one.series
        good, bad = line.get(bracket.low, change.previous), line.get(bracket.high, change.commit)
        if bracket.pairs:
            searches.append(facts.CommitSearch(**vars(name), good=good, bad=bad, pairs=bracket.pairs))
            continue
        state, by = _since(change, one.changes[one.changes.index(change) + 1 :])
        records = [pair.record for pair in one.measured if (pair.base, pair.head) == (change.previous, change.commit)]
        said = {"card": name.card, "case": name.case, "gpu": name.gpu, "why": change.why, "by": by}
        case = facts.CulpritCase(
            **{key: text[:LONGEST] for key, text in said.items()},
            change_pct=change.change_pct,
            interval_pct=change.interval_pct,
            state=state,
            record=records[-1] if records else None,
        )
        kind = "drift" if bracket.gradual else "commit"
        groups.setdefault((kind, name.repository[:LONGEST], good, bad), []).append(case)
    culprits = []
    for (kind, repository, old, new), cases in groups.items():
        commits = max(1, places[new] - places[old]) if {old, new} <= places.keys() else 1
        about = {"kind": kind, "repository": repository, "previous": old, "commit": new, "commits": commits}
        culprits.append(facts.Culprit.model_validate({**about, "cases": tuple(cases)}))
    culprits.sort(key=lambda one: places.get(one.commit, 0))
    return KnownCulprits(schema="kernelgate.culprits/1", culprits=tuple(culprits), searches=tuple(searches))


def _narrowed(found: Sequence[CaseChanges]) -> Iterator[tuple[CaseChanges, Change, Bracket]]:
    """What made these cases slower, for certain, and where it lies by now."""
    for case, change in ((one, change) for one in found for change in one.changes):
        if change.change_pct > 0 and change.is_certain and not case.may_become_drift(change):
            yield case, change, nights.narrowed(change, case)


def _since(change: Change, later: Sequence[Change]) -> tuple[Literal["slower", "fixed", "accepted"], str]:
    """What became of it, and by whom or which commit: it is fixed once confirmed changes have taken all of it back."""
    if change.state == "accepted":
        return "accepted", change.why
    total = math.log1p(change.change_pct / 100)
    for other in (one for one in later if one.is_certain):
        total += math.log1p(other.change_pct / 100)
        if as_percent(total) < SMALLEST_PCT:
            return "fixed", other.commit
    return "slower", ""


def text(told: KnownCulprits) -> str:
    """A line for each case of each commit, and one for each search."""
    lines = [
        f"{f'drift since {one.previous[:12]} up to ' if one.kind == 'drift' else ''}{one.commit[:12]}: "
        f"{case.card}/{case.case} on {case.gpu} "
        f"{formatting.percent(case.change_pct, 2, sign=True)}, {case.state} {case.by}".rstrip()
        for one in told.culprits
        for case in one.cases
    ]
    lines += [f"kernelgate bisect {one.good} {one.bad} --case {one.card}/{one.case}" for one in told.searches]
    return "\n".join(lines) or "No confirmed change has made anything slower."


# ---- what to compare tonight -----------------------------------------------------------------------------------------

NIGHT = timedelta(hours=12)
NEAR = 3
"""Pairs of a search, those that tell most, of which it takes one that other searches take, too."""
PAIRS = 15
"""Of a workflow's run: as many records as the jobs that keep them take of one."""
SURELY = 3.0
"""Standard errors between nothing, or all of a change, and half of it."""
LOOKED_AT = 20
"""Records of a kind of GPU: those that people measured themselves have no label."""

PROCESS_SECONDS: Final = 3.0
"""What a process takes of the GPU for a case of which the history knows no cost: recorded ones take 0.3 to 6, half of
them less than 1.6."""


@dataclass(frozen=True)
class WantedPair:
    """Two commits that are to be compared in a case."""

    series: CaseName
    previous: str
    commit: str
    gain: float
    """Percent of change that it is likely to reveal, more with each night of waiting."""
    processes: int
    process_seconds: float = PROCESS_SECONDS
    """GPU-seconds of one process of the comparison, for this case."""


def planned(wanted: Iterable[WantedPair], policy: Policy, spent: Mapping[str, float] | None = None) -> NightPlan:
    """The pairs that fit, those first that reveal most in a second. `spent`: GPU-seconds by kind of GPU."""
    groups: dict[tuple[str, str, str], list[WantedPair]] = {}
    for one in wanted:
        groups.setdefault((one.series.gpu, one.previous, one.commit), []).append(one)
    seconds_of = {key: sum(one.process_seconds for one in group) for key, group in groups.items()}
    worth = {key: sum(one.gain for one in group) / max(seconds_of[key], 1e-9) for key, group in groups.items()}
    left: dict[str, float] = {}
    pairs, postponed = [], []
    for key in sorted(groups, key=lambda key: (key[0], -worth[key])):
        (gpu, previous, commit), group, seconds = key, groups[key], seconds_of[key]
        budget = left.setdefault(gpu, policy.changes.gpu_seconds_a_night - (spent or {}).get(gpu, 0.0))
        fitting = policy.processes.limit if seconds <= 0 else math.floor(budget / seconds)
        processes = min(max(one.processes for one in group), fitting)
        cases = tuple(one.series.written for one in group)
        if processes < policy.processes.minimum:
            postponed += [facts.PostponedCase(gpu, case, previous, commit) for case in cases]
            continue
        record = f"out/{previous[:12]}-{commit[:12]}.json"
        words = [word for name in cases for word in ("--case", name)] + ["--processes", str(processes), "-o", record]
        measure = escape.shell("kernelgate", "bench", "--base", previous, "--head", commit, "--same", *words)
        commands = measure, escape.shell("kernelgate", "history", "add", record)
        pairs.append(facts.PlannedPair(gpu, previous, commit, cases, processes, seconds * processes, commands))
        left[gpu] -= seconds * processes
    return NightPlan(tuple(pairs), tuple(postponed))


def needed(size_pct: float, spread_pct: float | None, policy: Policy) -> int:
    """Processes that show a change of this size, or the limit. `spread_pct`: how far the case's scatter."""
    spread, size = max(spread_pct or 0.0, CHANGE_PCT) / 100, abs(math.log1p(size_pct / 100))
    for processes in range(TO_DIRECT, policy.processes.limit):
        if spread / math.sqrt(processes) * stats.noncentrality(processes - 1, CONFIRM_P / 2, POWER) <= size:
            return processes
    return policy.processes.limit


def plan(
    connection: sa.Connection,
    found: Sequence[CaseChanges],
    policy: Policy,
    line: Sequence[str] = (),
    now: datetime | None = None,
) -> NightPlan:
    """What is to be compared of these cases. `line`: the commits of the default branch by place; the index knows
    measured ones alone. `now`: in a night whose comparisons have cost already."""
    placed = connection.execute(sa.select(COMMIT.c.place, COMMIT.c.sha).where(COMMIT.c.place.is_not(None)))
    shas = {row.place: row.sha for row in placed} | dict(enumerate(line))
    wanted = [
        *_suspected(connection, found, set(shas.values()), policy),
        *_next_steps(connection, found, shas, policy),
    ]
    spent = {}
    if now is not None:
        begin = moment((now - NIGHT).isoformat())
        compared = RECORD.c.event == "schedule", RECORD.c.base_sha.is_not(None)
        asked = sa.select(RECORD.c.gpu, sa.func.sum(COST.c.gpu_seconds)).join(RECORD, RECORD.c.id == COST.c.record_id)
        rows = connection.execute(asked.where(RECORD.c.made >= begin, *compared).group_by(RECORD.c.gpu))
        spent = {gpu: float(seconds) for gpu, seconds in rows}
    return planned(wanted, policy, spent)


def _suspected(
    connection: sa.Connection, found: Sequence[CaseChanges], here: Set[str], policy: Policy
) -> Iterator[WantedPair]:
    """Both commits of each suspicion; those that are not on the default branch cannot be built here."""
    for case, change in ((one, change) for one in found for change in one.changes):
        can = {change.previous, change.commit} <= here and (change.previous_place, change.place) not in case.in_vain
        if change.state == "suspected" and can:
            # It waits since the night on which it could be suspected first.
            waited = max(0, sum(place >= change.place for place in case.places) - NIGHTS)
            gain = change.chance * abs(change.change_pct) * (1 + waited)
            processes = needed(change.change_pct, case.spread_pct, policy)
            seconds = _process_seconds(connection, case.series)
            yield WantedPair(case.series, change.previous, change.commit, gain, processes, seconds)


def _next_steps(
    connection: sa.Connection, found: Sequence[CaseChanges], shas: Mapping[int, str], policy: Policy
) -> Iterator[WantedPair]:
    """The pair of each search that tells most, or of those near it the one that most searches have."""
    searches = [
        (case, change, [(case.series.gpu, *pair) for pair in bracket.pairs[:NEAR] if {*pair} <= shas.keys()])
        for case, change, bracket in _narrowed(found)
        if change.state == "confirmed"
    ]
    searched = Counter(pair for *_, pairs in searches for pair in pairs)
    for case, change, pairs in searches:
        if pairs:
            _, old, new = max(pairs, key=searched.__getitem__)
            processes = TO_DIRECT
            if case.known is not None:  # so that the mean is mostly on the right side of half the change
                errors = SURELY * max(case.known.spread_pct, CHANGE_PCT) / (change.change_pct / 2)
                processes = min(max(math.ceil(errors**2), policy.processes.minimum), policy.processes.limit)
            seconds = _process_seconds(connection, case.series)
            yield WantedPair(case.series, shas[old], shas[new], change.change_pct, processes, seconds)


def _process_seconds(connection: sa.Connection, case: CaseName) -> float:
    """What a process took for this case in its last record that says so: the record's GPU-seconds in equal parts."""
    own = POINT.c.series_id.in_(sa.select(SERIES.c.id).filter_by(**vars(case)))
    priced = POINT.c.record_id.in_(sa.select(COST.c.record_id))
    last = sa.select(sa.func.max(POINT.c.record_id)).where(own, priced).scalar_subquery()
    spent = connection.execute(sa.select(sa.func.sum(COST.c.gpu_seconds)).where(COST.c.record_id == last)).scalar()
    counts = sa.select(sa.func.count(POINT.c.series_id.distinct()), sa.func.max(POINT.c.processes))
    cases, processes = connection.execute(counts.where(POINT.c.record_id == last)).one()
    return float(spent) / (cases * processes) if spent else PROCESS_SECONDS


def plan_text(plan: NightPlan, policy: Policy) -> str:
    """The commands, ready for a shell; what else there is to say stands in comments."""
    lines = []
    for gpu in sorted({one.gpu for one in plan.pairs} | {one.gpu for one in plan.postponed}):
        pairs = [one for one in plan.pairs if one.gpu == gpu]
        seconds = f"{sum(one.gpu_seconds for one in pairs):.0f} of {policy.changes.gpu_seconds_a_night:.0f}"
        lines.append(f"# on {escape.visible(gpu or 'a GPU without a name')}: about {seconds} GPU-seconds")
        lines += [command for pair in pairs for command in pair.commands]
        if postponed := sum(one.gpu == gpu for one in plan.postponed):
            lines.append(f"# another night: {formatting.counted(postponed, 'comparison')}")
    return "\n".join(lines) or "# nothing is to be compared"


def of_run(connection: sa.Connection, kept: Store, plan: NightPlan, policy: Policy) -> tuple[facts.ComparedPair, ...]:
    """What a workflow's run measures of the plan: where some runner has the kind of GPU."""
    runners = {gpu: _runner(connection, kept, gpu, policy) for gpu in {pair.gpu for pair in plan.pairs}}
    chosen = [(pair, runner) for pair in plan.pairs if (runner := runners[pair.gpu]) is not None][:PAIRS]
    return tuple(
        facts.ComparedPair(
            name=f"-{number}",
            gpu=runner.label,
            target=runner.target,
            base_sha=pair.previous,
            head_sha=pair.commit,
            cases=" ".join(pair.cases),
            processes=str(pair.processes),
        )
        for number, (pair, runner) in enumerate(chosen, 1)
    )


def _runner(connection: sa.Connection, kept: Store, gpu: str, policy: Policy) -> RunnerGpu | None:
    """Whose runners have this kind of GPU, as its newest record says that was made with a label."""
    asked = sa.select(RECORD.c.name, RECORD.c.rules).where(RECORD.c.gpu == gpu)
    for row in connection.execute(asked.order_by(RECORD.c.made.desc(), RECORD.c.id.desc()).limit(LOOKED_AT)):
        data = store.get(kept, "judgements", f"{row.name}-{row.rules}")
        label = entry.parsed(Entry, data, row.name).run.gpu if data else None
        if label is not None:
            return next((one for one in policy.measure.gpus if one.label == label), None)
    return None
