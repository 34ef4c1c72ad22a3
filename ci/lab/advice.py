"""What to try next on a profiled kernel, in the cookbook's order, and what came of such tries in all sessions.

How often an action helps is said from five sessions on: tries of one session share a kernel and a base, so that they
are not as many observations as they are tries.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.explain import ncu_reader
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.explain.bottleneck import Bottleneck
from kernelgate.ci.explain.recommend import CATALOGUE, against
from kernelgate.ci.judge.case import Status
from kernelgate.ci.lab import folder, log
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, TriedChange, tries
from kernelgate.ci.lab.state import AdviceAtHand
from kernelgate.ci.report import why

FEW = 5
"""Sessions below which an action is not measured."""
SHOWN = 5
"""The most actions that are recommended."""
PROFILE = "profile"
"""The folder of the profiler's reports, of the gate and of each try."""
DONE_PCT = 90.0
"""Of a roof: from there on a kernel has nothing more to gain below it."""
SURPLUS = 1.2
"""Times the bytes that the card says a call must move: with more, a full DRAM is no sign of a good kernel."""
ROOFS = {Bottleneck.DRAM: ("dram_pct", "DRAM"), Bottleneck.TENSOR: ("tensor_pct", "the tensor cores")}
UNKNOWN = "unknown"
"""The bottleneck of a try before which nobody made a profile."""


@dataclass(frozen=True)
class TriedAction:
    """What came of an action against a bottleneck, in all sessions that were measured."""

    action: str
    bottleneck: str
    tries: int
    sessions: int
    helped: int
    """A certain improvement, by the judge: faster in a case, and slower in none."""
    failed: int
    gains_pct: tuple[float, float] | None
    """The least and the largest share of the time that went away; None where nothing was timed."""

    @property
    def measured(self) -> bool:
        return self.sessions >= FEW

    @property
    def helped_words(self) -> str:
        return f"{self.helped} of {self.tries}" if self.measured else "not measured"


@dataclass(frozen=True)
class AdvisedAction:
    """What to do, fitted to the kernel where the profile says how, and what came of it against this bottleneck."""

    action: str
    words: str
    reason: str | None
    """Why the profile calls for it; None where the cookbook alone does."""
    link: str
    tries: int
    """Against this bottleneck, in all sessions. How much was gained says nothing of another kernel: no skill of such a
    prediction has been shown."""
    sessions: int
    helped: int


@dataclass(frozen=True)
class Recommended:
    """What `kernelgate recommend` answers: the best first, by the cookbook."""

    kernel: str
    architecture: str
    bottleneck: str
    recommendations: tuple[AdvisedAction, ...]
    done: str | None
    """That the kernel is at its roof, and which; None where it is not."""


@dataclass(frozen=True)
class ActionTable:
    """What `kernelgate outcomes` answers: every action that was tried, by bottleneck."""

    sessions: int
    tries: int
    helped: int
    followed: int
    """Tries of an action that was recommended at that time."""
    followed_helped: int
    actions: tuple[TriedAction, ...]


def recommend(analysis: Analysis, table: ActionTable, needed_bytes: float | None = None) -> Recommended:
    """`needed_bytes`: that a call must move, by its card."""
    bottleneck, capability = analysis.bottleneck.bottleneck, analysis.kernel.compute_capability
    called = {one.name: one for one in analysis.recommendations}
    known = {one.action: one for one in table.actions if one.bottleneck == bottleneck.value}
    advised = []
    for name in list(dict.fromkeys([*called, *(one.name for one in against(bottleneck))]))[:SHOWN]:
        words, reason = (called[name].action, called[name].reason) if name in called else (CATALOGUE[name].words, None)
        counts = (seen.tries, seen.sessions, seen.helped) if (seen := known.get(name)) else (0, 0, 0)
        advised.append(AdvisedAction(name, words, reason, CATALOGUE[name].link, *counts))
    architecture = f"sm_{capability[0]}{capability[1]}" if capability else UNKNOWN
    over = done(analysis, needed_bytes)
    return Recommended(analysis.kernel.name, architecture, bottleneck.value, tuple(advised), over)


def done(analysis: Analysis, needed_bytes: float | None) -> str | None:
    """That the kernel is at a roof. DRAM is one only of a kernel that moves no more than it must, as far as its card
    says how much that is."""
    figure, roof = ROOFS.get(analysis.bottleneck.bottleneck, ("", ""))
    busy, moved = analysis.kernel.figures.get(figure, 0.0), analysis.kernel.figures.get("dram_bytes", 0.0)
    if busy < DONE_PCT or (figure == "dram_pct" and (needed_bytes is None or moved > SURPLUS * needed_bytes)):
        return None
    return f"you are done: {busy:.0f}% of {roof}"


def table(sessions: Path) -> ActionTable:
    """From the logs below a folder. Not of sessions that people recorded in documents, nor of a try that nobody named
    an action for or that could not be measured."""
    cells: dict[tuple[str, str], list[tuple[str, TriedChange]]] = {}
    for session in folder.below(sessions):
        for one in log.tries(session.events):
            if session.opened.source == "measured" and one.action is not None and one.failed != "measurement":
                cells.setdefault((one.action, one.bottleneck or UNKNOWN), []).append((session.name, one))
    actions = []
    for cell, tried in sorted(cells.items()):
        gains = [one.gain_pct for _, one in tried if one.gain_pct is not None]
        sure, failed = (sum(helped(one) for _, one in tried), sum(one.failed is not None for _, one in tried))
        least_and_most = (min(gains), max(gains)) if gains else None
        actions.append(TriedAction(*cell, len(tried), len({name for name, _ in tried}), sure, failed, least_and_most))
    every = [named for tried in cells.values() for named in tried]
    followed = [helped(one) for _, one in every if one.recommended]
    return ActionTable(
        sessions=len({name for name, _ in every}),
        tries=len(every),
        helped=sum(one.helped for one in actions),
        followed=len(followed),
        followed_helped=sum(followed),
        actions=tuple(actions),
    )


def helped(tried: TriedChange) -> bool:
    """Whether a try is certain to be an improvement, by the judge: faster in a case, and slower in none. What did not
    build, was wrong, or could not be told from no change at all did not help."""
    statuses = [Status.__members__.get(one.status.upper(), Status.UNDECIDED) for one in tried.outcomes]
    return any(one.is_faster for one in statuses) and not any(one.is_slower for one in statuses)


# ---- the profile that it goes by -------------------------------------------------------------------------------------


def profile(source: Path, case: str | None) -> Analysis:
    """The launch that takes longest; of a record the head's, and that of the case where one is named. Raises
    KernelgateError where nothing was profiled or the file cannot be read, UsageError for a report's case."""
    if ncu_reader.is_report(source):
        if case is not None:
            raise UsageError("--case is for run records: a report does not say which case it is of")
        return longest(analyze.analyze(source))
    found = [one for one in why.both_sides(record.read(source)) if case in (None, one.key.id)]
    if not found:
        of = f"of {case} " if case else ""
        raise KernelgateError(f"{source} holds no profile {of}of the head: kernelgate profile --record {source}")
    return longest(analyze.analyze_kernel(one.head) for one in found)


def needed_bytes(source: Path, case: str | None = None) -> float | None:
    """That a call of the profiled case must move, by the record, or by the one that a session keeps beside a report."""
    records = [source]
    if ncu_reader.is_report(source):
        case = source.name.partition(".")[2].removesuffix(".head.ncu-rep")
        places = (source.parents[1] / name for name in (folder.RECORD, "performance.json"))
        records = [one for one in places if one.exists()][:1]
    cases = (one for path in records for one in record.read(path).cases)
    known = {one.id: one.work.bytes for one in cases if one.work and case in (None, one.id)}
    return next(iter(known.values())) if len(known) == 1 else None


def longest(analyses: Iterable[Analysis]) -> Analysis:
    return max(analyses, key=lambda one: one.kernel.figures.get("duration_us", 0.0))


# ---- of a session ----------------------------------------------------------------------------------------------------


def at_hand(session: Session, root: Path) -> AdviceAtHand | None:
    """What is recommended now; None where there is no profile of the last kept state on this machine. A profile that
    cannot be read is named all the same: `kernelgate recommend` says what is wrong with it."""
    source = profile_of(session)
    if source is None:
        return None
    command = f"kernelgate recommend {shlex.quote(os.path.relpath(source))}"
    try:
        found = answer(source, root / folder.FOLDER)
    except KernelgateError:
        return AdviceAtHand(command, None, ())
    return AdviceAtHand(command, found.bottleneck, tuple(one.action for one in found.recommendations), found.done)


def answer(source: Path, sessions: Path, case: str | None = None) -> Recommended:
    """What `kernelgate recommend` answers of this file. Raises KernelgateError where it cannot be read."""
    return recommend(profile(source, case), table(sessions), needed_bytes(source, case))


def profile_of(session: Session) -> Path | None:
    """The report, or the record with a profile, of the last kept state; None where there is none."""
    work = session.work
    kept = {one.number for one in tries(session.events) if one.decision == "kept"}
    overwritten = False
    for at, event in reversed([*enumerate(session.events)]):
        if isinstance(event, TriedChange) and event.number in kept:
            path = work / f"try-{event.number}" / folder.RECORD
            if (report := newest(path.parent / PROFILE, "*.head.ncu-rep")) or not path.exists():
                return report
            return path if any(one.side == "head" for one in record.read(path).profile) else None
        if isinstance(event, GateAttempt) and event.gate == "profile" and not event.skipped:
            waiting = {one.number for one in tries(session.events[:at]) if one.decision is None}
            if event.passed and waiting <= kept:  # else the gate looked at a change that was reverted
                return None if overwritten else newest(work / PROFILE, "*.ncu-rep")
            overwritten = True  # what an earlier attempt left
    return None


def newest(at: Path, pattern: str) -> Path | None:
    return max(at.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)


# ---- in words --------------------------------------------------------------------------------------------------------


def recommended_lines(answer: Recommended) -> Iterator[str]:
    yield f"{answer.kernel} on {answer.architecture}: {answer.bottleneck.replace('_', ' ')}"
    if answer.done:
        yield answer.done
    for number, one in enumerate(answer.recommendations, 1):
        yield f"  {number}. {one.action}: {one.words}"
        times = f"{counted(one.tries, 'time')} in {counted(one.sessions, 'session')}"
        tried = f"tried {times} against this bottleneck, helped {counted(one.helped, 'time')}"
        yield f"     {tried if one.tries else 'not tried against this bottleneck yet'}"
        yield f"     {one.reason}. {one.link}" if one.reason else f"     {one.link}"


def summary_line(known: ActionTable) -> str:
    others, helped_others = known.tries - known.followed, known.helped - known.followed_helped
    return (
        f"{known.helped} of {known.tries} tries in {known.sessions} sessions helped: {known.followed_helped} of the "
        f"{known.followed} that followed a recommendation, {helped_others} of the {others} others."
    )


def table_lines(known: ActionTable) -> Iterator[str]:
    """A table in Markdown, which reads as well in a terminal."""
    yield summary_line(known)
    yield ""
    yield "| action | bottleneck | tries | sessions | failed | helped | gained |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in known.actions:
        gained = " to ".join(f"{pct:.1f}" for pct in sorted(set(one.gains_pct or ())))
        yield (
            f"| {one.action} | {one.bottleneck} | {one.tries} | {one.sessions} | {one.failed} | {one.helped_words} "
            f"| {f'{gained}%' if gained else '–'} |"
        )
