"""What to compare tonight: each GPU's share of `schedule.py`, as commands whose records confirm or refute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from kernelgate.ci.document import escape, formatting
from kernelgate.ci.history import schedule
from kernelgate.ci.history.answer import PairTonight, PostponedCase, ShownTonight
from kernelgate.ci.history.changes import Change
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.schedule import PlannedPair, Schedule, Suspicion
from kernelgate.ci.history.tables import COMMIT, COST, POINT, SERIES
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class Tonight:
    """What one kind of GPU is to measure."""

    gpu: str
    schedule: Schedule


def of_index(connection: sa.Connection, found: Sequence[CaseChanges], policy: Policy) -> tuple[Tonight, ...]:
    """One for each kind of GPU that has a suspicion; each has the whole of the policy's GPU-seconds.

    Commits that are not on the default branch, as in another project's past, cannot be built here.
    """
    here = set(connection.execute(sa.select(COMMIT.c.sha).where(COMMIT.c.place.is_not(None))).scalars())
    asked: dict[str, list[Suspicion]] = {}
    for case in found:
        open_ = [one for one in case.changes if one.state == "suspected" and {one.previous, one.commit} <= here]
        if open_:
            seconds = _process_seconds(connection, case)
            asked.setdefault(case.gpu, []).extend(_suspicion(case, one, seconds, policy) for one in open_)
    return tuple(Tonight(gpu, schedule.of_night(every, policy)) for gpu, every in sorted(asked.items()))


def _suspicion(case: CaseChanges, change: Change, seconds: float | None, policy: Policy) -> Suspicion:
    """It waits since the night on which it could be suspected first."""
    after = sum(place >= change.place for place in case.places)
    return Suspicion(
        series="/".join(filter(None, (case.card, case.case))),
        change=change,
        process_seconds=policy.changes.process_seconds if seconds is None else seconds,
        spread_pct=case.spread_pct,
        waited=max(0, after - policy.changes.nights),
    )


def _process_seconds(connection: sa.Connection, case: CaseChanges) -> float | None:
    """What a process took for this case in its last record that says so: the record's GPU-seconds in equal parts."""
    own = sa.select(SERIES.c.id).filter_by(repository=case.repository, card=case.card, case=case.case, gpu=case.gpu)
    last = connection.execute(
        sa.select(sa.func.max(POINT.c.record_id)).where(
            POINT.c.series_id.in_(own), POINT.c.record_id.in_(sa.select(COST.c.record_id))
        )
    ).scalar()
    if last is None:
        return None
    spent = connection.execute(sa.select(sa.func.sum(COST.c.gpu_seconds)).where(COST.c.record_id == last)).scalar()
    cases, processes = connection.execute(
        sa.select(sa.func.count(POINT.c.series_id.distinct()), sa.func.max(POINT.c.processes)).where(
            POINT.c.record_id == last
        )
    ).one()
    return float(spent) / (cases * processes) if spent else None


# ---- in words --------------------------------------------------------------------------------------------------------


def commands(pair: PlannedPair) -> tuple[str, str]:
    """Measure it, and tell the history."""
    record = f"out/{pair.previous[:12]}-{pair.commit[:12]}.json"
    cases = [word for name in pair.series for word in ("--case", name)]
    measure = ("kernelgate", "bench", "--base", pair.previous, "--head", pair.commit, *cases)
    return (
        escape.shell(*measure, "--processes", str(pair.processes), "-o", record),
        escape.shell("kernelgate", "history", "add", record),
    )


def answer(found: Sequence[Tonight]) -> ShownTonight:
    """What `history tonight --json` prints."""
    pairs = (
        PairTonight(
            gpu=one.gpu,
            previous=pair.previous,
            commit=pair.commit,
            cases=tuple(pair.series),
            processes=pair.processes,
            gpu_seconds=pair.gpu_seconds,
            commands=commands(pair),
        )
        for one in found
        for pair in one.schedule.pairs
    )
    postponed = (
        PostponedCase(gpu=one.gpu, case=each.series, previous=each.change.previous, commit=each.change.commit)
        for one in found
        for each in one.schedule.postponed
    )
    return ShownTonight(pairs=tuple(pairs), postponed=tuple(postponed))


def text(found: Sequence[Tonight], policy: Policy) -> str:
    """The commands, ready for a shell; what else there is to say stands in comments."""
    if not found:
        return "# nothing is suspected"
    lines = []
    for one in found:
        taken = f"about {one.schedule.gpu_seconds:.0f} of {policy.changes.gpu_seconds_a_night:.0f} GPU-seconds"
        lines.append(f"# on {escape.visible(one.gpu or 'a GPU without a name')}: {taken}")
        lines += [command for pair in one.schedule.pairs for command in commands(pair)]
        if one.schedule.postponed:
            lines.append(f"# another night: {formatting.counted(len(one.schedule.postponed), 'suspicion')}")
    return "\n".join(lines)
