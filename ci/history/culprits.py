"""Which commits made a case slower, certainly enough to tell people, and what became of each since.

A change is told once a comparison of both its commits confirmed it. Where several commits lie between the two, they are
searched first (`nights.narrowed`); a drift is told as such, and not searched: no commit made it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, Literal

import sqlalchemy as sa

from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.history import entry, facts, nights, store
from kernelgate.ci.history.changes import NIGHTS
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import Entry
from kernelgate.ci.history.facts import CaseName, Change, KnownCulprits, NightPlan
from kernelgate.ci.history.levels import SMALLEST_PCT
from kernelgate.ci.history.nights import CONFIRM_P, CaseChanges
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
    every = ((case, at, change) for case in found for at, change in enumerate(case.changes))
    for one, at, change in every:
        if change.change_pct <= 0 or not change.is_certain or one.may_become_drift(change):
            continue
        name, bracket = one.series, nights.narrowed(change, one.measured, one.known)
        good, bad = line.get(bracket.low, change.previous), line.get(bracket.high, change.commit)
        if bracket.pairs:
            searches.append(facts.CommitSearch(**vars(name), good=good, bad=bad, pairs=bracket.pairs))
            continue
        state, by = _since(change, one.changes[at + 1 :])
        said = {"card": name.card, "case": name.case, "gpu": name.gpu, "why": change.why, "by": by}
        case = facts.CulpritCase(
            **{key: text[:LONGEST] for key, text in said.items()},
            change_pct=change.change_pct,
            interval_pct=change.interval_pct,
            state=state,
            record=_record(connection, name, change),
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


def _since(change: Change, later: Sequence[Change]) -> tuple[Literal["slower", "fixed", "accepted"], str]:
    """What became of it, and by what: the commit that fixed it, or who accepted it. It is fixed once confirmed changes
    since have taken all of it back, but for what counts as none."""
    if change.state == "accepted":
        return "accepted", change.why
    total = math.log1p(change.change_pct / 100)
    for other in (one for one in later if one.is_certain):
        total += math.log1p(other.change_pct / 100)
        if as_percent(total) < SMALLEST_PCT:
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
        f"{f'drift since {one.previous[:12]} up to ' if one.kind == 'drift' else ''}{one.commit[:12]}: "
        f"{case.card}/{case.case} on {case.gpu} "
        f"{formatting.percent(case.change_pct, 2, sign=True)}, {case.state} {case.by}".rstrip()
        for one in told.culprits
        for case in one.cases
    ]
    lines += [f"kernelgate bisect {one.good} {one.bad} --case {one.card}/{one.case}" for one in told.searches]
    return "\n".join(lines) or "No confirmed change has made anything slower."


# ---- what to compare tonight -----------------------------------------------------------------------------------------
#
# The pairs of commits that fit into the night's GPU-seconds on each kind of GPU, as commands whose records confirm or
# refute what is suspected. A workflow's run takes one of them, the next run the next.

NIGHT = timedelta(hours=12)
NEAR = 3
"""Pairs of a search, those that tell most, among which runs take turns."""
LOOKED_AT = 20
"""Records of a kind of GPU: those that people measured themselves have no label."""

OUTPUTS = ("gpu", "target", "base_sha", "head_sha", "cases", "processes")
"""Of the workflow's step."""

PROCESS_SECONDS: Final = 10.0
"""What a process takes of the GPU for a case of which the history knows no cost."""


@dataclass(frozen=True)
class Suspicion:
    """A suspected change of one series, with what comparing its commits takes."""

    series: CaseName
    change: Change
    process_seconds: float
    """GPU-seconds of one process of a comparison, for this case."""
    spread_pct: float | None = None
    """How far the case's processes are known to scatter; None where it is not known."""
    waited: int = 0
    """Nights that it has been waiting for its turn."""


def planned(suspicions: Iterable[Suspicion], policy: Policy, spent: Mapping[str, float] | None = None) -> NightPlan:
    """The most promising pairs that fit: by how much change each second is likely to reveal, and how long it waited.
    `spent`: GPU-seconds of this night by kind of GPU; each has the whole of the policy's."""
    groups: dict[tuple[str, str, str], list[Suspicion]] = {}
    for one in suspicions:
        if one.change.state == "suspected":
            groups.setdefault((one.series.gpu, one.change.previous, one.change.commit), []).append(one)
    by_worth = sorted(groups.items(), key=lambda item: _worth(item[1]), reverse=True)
    left: dict[str, float] = {}
    pairs, postponed = [], []
    for (gpu, previous, commit), group in sorted(by_worth, key=lambda item: item[0][0]):
        budget = left.setdefault(gpu, policy.changes.gpu_seconds_a_night - (spent or {}).get(gpu, 0.0))
        seconds = sum(one.process_seconds for one in group)
        fitting = policy.processes.limit if seconds <= 0 else math.floor(budget / seconds)
        processes = min(max(needed(one, policy) for one in group), fitting)
        cases = tuple(one.series.written for one in group)
        if processes < policy.processes.minimum:
            postponed += [facts.PostponedCase(gpu, case, previous, commit) for case in cases]
            continue
        record = f"out/{previous[:12]}-{commit[:12]}.json"
        words = [word for name in cases for word in ("--case", name)] + ["--processes", str(processes), "-o", record]
        measure = escape.shell("kernelgate", "bench", "--base", previous, "--head", commit, *words)
        commands = measure, escape.shell("kernelgate", "history", "add", record)
        pairs.append(facts.PlannedPair(gpu, previous, commit, cases, processes, seconds * processes, commands))
        left[gpu] -= seconds * processes
    return NightPlan(tuple(pairs), tuple(postponed))


def needed(suspicion: Suspicion, policy: Policy) -> int:
    """Processes that show a change of the suspected size; the policy's limit where no fewer would."""
    spread = max(suspicion.spread_pct or 0.0, CHANGE_PCT) / 100
    size = abs(math.log1p(suspicion.change.change_pct / 100))
    for processes in range(TO_DIRECT, policy.processes.limit):
        if spread / math.sqrt(processes) * stats.noncentrality(processes - 1, CONFIRM_P / 2, POWER) <= size:
            return processes
    return policy.processes.limit


def _worth(group: Sequence[Suspicion]) -> float:
    """Percent of change that a second of the GPU is likely to reveal, more with each night of waiting."""
    gain = sum(one.change.chance * abs(one.change.change_pct) for one in group)
    seconds = max(sum(one.process_seconds for one in group), 1e-9)
    return gain / seconds * (1 + max(one.waited for one in group))


def plan(
    connection: sa.Connection, found: Sequence[CaseChanges], policy: Policy, since: datetime | None = None
) -> NightPlan:
    """What may confirm or refute these changes. `since`: when the night began whose comparisons have cost already.
    Commits that are not on the default branch cannot be built here."""
    here = set(connection.execute(sa.select(COMMIT.c.sha).where(COMMIT.c.place.is_not(None))).scalars())
    suspicions = []
    for case, change in ((one, change) for one in found for change in one.changes):
        if change.state == "suspected" and {change.previous, change.commit} <= here:
            # It waits since the night on which it could be suspected first.
            waited = max(0, sum(place >= change.place for place in case.places) - NIGHTS)
            seconds = _process_seconds(connection, case.series)
            suspicions.append(Suspicion(case.series, change, seconds, case.spread_pct, waited))
    gpus = {one.series.gpu for one in suspicions}
    return planned(suspicions, policy, {gpu: _spent(connection, gpu, since) for gpu in gpus} if since else None)


def _process_seconds(connection: sa.Connection, case: CaseName) -> float:
    """What a process took for this case in its last record that says so: the record's GPU-seconds in equal parts."""
    own = POINT.c.series_id.in_(sa.select(SERIES.c.id).filter_by(**vars(case)))
    priced = POINT.c.record_id.in_(sa.select(COST.c.record_id))
    last = sa.select(sa.func.max(POINT.c.record_id)).where(own, priced).scalar_subquery()
    spent = connection.execute(sa.select(sa.func.sum(COST.c.gpu_seconds)).where(COST.c.record_id == last)).scalar()
    counts = sa.select(sa.func.count(POINT.c.series_id.distinct()), sa.func.max(POINT.c.processes))
    cases, processes = connection.execute(counts.where(POINT.c.record_id == last)).one()
    return float(spent) / (cases * processes) if spent else PROCESS_SECONDS


def _spent(connection: sa.Connection, gpu: str, since: datetime) -> float:
    """GPU-seconds of this night's comparisons on this kind of GPU."""
    begin = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    compared = RECORD.c.event == "schedule", RECORD.c.base_sha.is_not(None)
    asked = sa.select(sa.func.sum(COST.c.gpu_seconds)).join(RECORD, RECORD.c.id == COST.c.record_id)
    return float(connection.execute(asked.where(RECORD.c.gpu == gpu, RECORD.c.made >= begin, *compared)).scalar() or 0)


def plan_text(plan: NightPlan, policy: Policy) -> str:
    """The commands, ready for a shell; what else there is to say stands in comments."""
    lines = []
    for gpu in sorted({one.gpu for one in plan.pairs} | {one.gpu for one in plan.postponed}):
        pairs = [one for one in plan.pairs if one.gpu == gpu]
        seconds = f"{sum(one.gpu_seconds for one in pairs):.0f} of {policy.changes.gpu_seconds_a_night:.0f}"
        lines.append(f"# on {escape.visible(gpu or 'a GPU without a name')}: about {seconds} GPU-seconds")
        lines += [command for pair in pairs for command in pair.commands]
        if postponed := sum(one.gpu == gpu for one in plan.postponed):
            lines.append(f"# another night: {formatting.counted(postponed, 'suspicion')}")
    return "\n".join(lines) or "# nothing is suspected"


# ---- one pair for a workflow's run -----------------------------------------------------------------------------------


def next_pair(
    connection: sa.Connection,
    kept: Store,
    found: Sequence[CaseChanges],
    policy: Policy,
    now: datetime,
    line: Sequence[str],
) -> dict[str, str]:
    """A suspicion, or the next step towards the commit of a confirmed change, as later steps read it. `gpu` is empty
    where there is nothing of both, or nothing fits into what is left of the night. `line`: the commits of the default
    branch by place, as the checkout has them: the index knows measured ones alone."""
    since, turn = now - NIGHT, int(now.timestamp() // 600)
    wanted = [
        (pair.gpu, pair.previous, pair.commit, pair.cases, pair.processes)
        for pair in plan(connection, found, policy, since).pairs
    ]
    near: dict[tuple[str, int, int], list[CaseName]] = {}
    chosen, searches = [], of_index(connection, found).searches
    for one in searches:
        keys = [(one.gpu, *places) for places in one.pairs[:NEAR] if places[1] < len(line)]
        for key in keys:
            near.setdefault(key, []).append(CaseName(one.repository, one.card, one.case, one.gpu))
        if keys:
            chosen.append(keys[turn // (len(wanted) + len(searches)) % len(keys)])
    searched = {key: near[key] for key in chosen}  # in all cases that it tells much of
    for (gpu, old, new), cases in sorted(searched.items(), key=lambda item: -len(item[1])):
        left = policy.changes.gpu_seconds_a_night - _spent(connection, gpu, since)
        seconds = accumulate(TO_DIRECT * _process_seconds(connection, case) for case in cases)
        fitting = tuple(case.written for case, taken in zip(cases, seconds, strict=True) if taken <= left)
        wanted += [(gpu, line[old], line[new], fitting, TO_DIRECT)] if fitting else []
    # A commit that cannot be built is passed by: the runs of a night take turns.
    first = turn % max(1, len(wanted))
    for gpu, base, head, written, processes in (*wanted[first:], *wanted[:first]):
        if (runner := _runner(connection, kept, gpu, policy)) is not None:
            what = runner.label, runner.target, base, head, " ".join(written), str(processes)
            return dict(zip(OUTPUTS, what, strict=True))
    return dict.fromkeys(OUTPUTS, "")


def _runner(connection: sa.Connection, kept: Store, gpu: str, policy: Policy) -> RunnerGpu | None:
    """Whose runners have this kind of GPU, as its newest record says that was made with a label."""
    asked = sa.select(RECORD.c.name, RECORD.c.rules).where(RECORD.c.gpu == gpu)
    for row in connection.execute(asked.order_by(RECORD.c.made.desc(), RECORD.c.id.desc()).limit(LOOKED_AT)):
        data = store.get(kept, "judgements", f"{row.name}-{row.rules}")
        label = entry.parsed(Entry, data, row.name).run.gpu if data else None
        if label is not None:
            return next((one for one in policy.measure.gpus if one.label == label), None)
    return None
