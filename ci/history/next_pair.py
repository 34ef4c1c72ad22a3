"""The comparison that a workflow run is to make: tonight's most promising one, as far as the night's budget goes.

A run compares one pair of commits, on the runners of one kind of GPU; the next run of the night takes the next pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from kernelgate.ci.history import culprits, entry, store, tonight
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.schedule import PlannedPair
from kernelgate.ci.history.store import Store
from kernelgate.ci.history.tables import COST, RECORD
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.policy.pull_request_rules import RunnerGpu

NIGHT = timedelta(hours=12)
NEAR = 3
"""Commits around the middle of a range that runs take turns among."""
LOOKED_AT = 20
"""Records of a kind of GPU: those that people measured themselves have no label."""


@dataclass(frozen=True)
class ThisNight:
    now: datetime
    line: Sequence[str]
    """The commits of the default branch by place, as the checkout has them: the index knows measured ones alone."""


@dataclass(frozen=True)
class NextPair:
    gpu: RunnerGpu
    pair: PlannedPair


def of_index(
    connection: sa.Connection, kept: Store, found: Sequence[CaseChanges], policy: Policy, night: ThisNight
) -> NextPair | None:
    """None where nothing is suspected and no commit searched for, or nothing fits into what is left of the night."""
    for one in tonight.of_index(connection, found, policy):
        left = policy.changes.gpu_seconds_a_night - _spent(connection, one.gpu, night.now)
        less = policy.model_copy(update={"changes": policy.changes.model_copy(update={"gpu_seconds_a_night": left})})
        runner = _runner(connection, kept, one.gpu, policy)
        mine = (each for each in tonight.of_index(connection, found, less) if each.gpu == one.gpu)
        pairs = [pair for each in mine for pair in each.schedule.pairs]
        if runner is not None and pairs:
            return NextPair(runner, pairs[0])
    return _of_search(connection, kept, found, policy, night)


def _of_search(
    connection: sa.Connection, kept: Store, found: Sequence[CaseChanges], policy: Policy, night: ThisNight
) -> NextPair | None:
    """The next step towards the commit of a confirmed change; a commit that cannot be built is passed by, since the
    runs of a night take turns among those near the middle."""
    turn = int(night.now.timestamp() // 600)
    for one in culprits.of_index(connection, found, policy).searches:
        runner = _runner(connection, kept, one.gpu, policy)
        processes = policy.processes.to_direct
        seconds = policy.changes.process_seconds * processes
        left = policy.changes.gpu_seconds_a_night - _spent(connection, one.gpu, night.now)
        if runner is not None and seconds <= left and one.middle[0] < len(night.line):
            near = [night.line[place] for place in one.middle[:NEAR] if place < len(night.line)]
            case = "/".join(filter(None, (one.card, one.case)))
            return NextPair(runner, PlannedPair(one.base, near[turn % len(near)], (case,), processes, seconds))
    return None


def outputs(found: NextPair | None) -> dict[str, str]:
    """As later steps read them; `gpu` is empty where nothing is to be measured."""
    if found is None:
        return dict.fromkeys(("gpu", "target", "base_sha", "head_sha", "cases", "processes"), "")
    return {
        "gpu": found.gpu.label,
        "target": found.gpu.target,
        "base_sha": found.pair.previous,
        "head_sha": found.pair.commit,
        "cases": " ".join(found.pair.series),
        "processes": str(found.pair.processes),
    }


def _spent(connection: sa.Connection, gpu: str, now: datetime) -> float:
    """GPU-seconds of this night's comparisons on this kind of GPU."""
    since = (now.astimezone(UTC) - NIGHT).strftime("%Y-%m-%dT%H:%M:%SZ")
    asked = (
        sa.select(sa.func.sum(COST.c.gpu_seconds))
        .join(RECORD, RECORD.c.id == COST.c.record_id)
        .where(
            RECORD.c.gpu == gpu, RECORD.c.made >= since, RECORD.c.event == "schedule", RECORD.c.base_sha.is_not(None)
        )
    )
    return float(connection.execute(asked).scalar() or 0.0)


def _runner(connection: sa.Connection, kept: Store, gpu: str, policy: Policy) -> RunnerGpu | None:
    """Whose runners have this kind of GPU, as its newest record says that was made with a label."""
    asked = sa.select(RECORD.c.name, RECORD.c.rules).where(RECORD.c.gpu == gpu, RECORD.c.rules != "")
    for row in connection.execute(asked.order_by(RECORD.c.made.desc(), RECORD.c.id.desc()).limit(LOOKED_AT)):
        data = store.get(kept, "judgements", f"{row.name}-{row.rules}")
        label = entry.from_json(data, row.name).run.gpu if data else None
        if label is not None:
            return next((one for one in policy.measure.gpus if one.label == label), None)
    return None
