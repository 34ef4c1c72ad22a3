"""What to try next on a profiled kernel, in the cookbook's order, and what came of such tries in all sessions.

How often an action helps is said from five sessions on: tries of one session share a kernel and a base, so that they
are not as many observations as they are tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.explain.recommend import CATALOGUE, against
from kernelgate.ci.judge.case import Status
from kernelgate.ci.lab import folder, log
from kernelgate.ci.lab.log import TriedChange

FEW = 5
"""Sessions below which an action is not measured."""
SHOWN = 5
"""The most actions that are recommended."""
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
    """Did not build, or was wrong."""
    gains_pct: tuple[float, float] | None
    """The least and the largest share of the time that went away; None where nothing was timed."""
    nvidia_pct: float | None
    """The median of what NVIDIA's rules had estimated; None where they said nothing."""

    @property
    def measured(self) -> bool:
        return self.sessions >= FEW

    @property
    def helped_words(self) -> str:
        return f"{self.helped} of {self.tries}" if self.measured else "not measured"

    @property
    def gain_words(self) -> str:
        if self.gains_pct is None:
            return "–"
        low, high = self.gains_pct
        return f"{low:.1f}%" if low == high else f"{low:.1f} to {high:.1f}%"


@dataclass(frozen=True)
class AdvisedAction:
    action: str
    """A stable name: ci/explain/recommend.py."""
    words: str
    """What to do, fitted to the kernel where the profile says how."""
    reason: str | None
    """Why the profile calls for it; None where the cookbook alone does."""
    link: str
    """Its section of the cookbook."""
    tried: TriedAction | None
    """What came of it against this bottleneck; None where no session tried it."""


@dataclass(frozen=True)
class Recommended:
    """What `kernelgate recommend` answers."""

    kernel: str
    architecture: str
    bottleneck: str
    recommendations: tuple[AdvisedAction, ...]
    """The best first, by the cookbook."""


@dataclass(frozen=True)
class ActionTable:
    """What `kernelgate outcomes` answers: every action that was tried, by bottleneck."""

    sessions: int
    tries: int
    helped: int
    actions: tuple[TriedAction, ...]


def recommend(analysis: Analysis, table: ActionTable) -> Recommended:
    bottleneck, capability = analysis.bottleneck.bottleneck, analysis.kernel.compute_capability
    called = {one.name: one for one in analysis.recommendations}
    known = {one.action: one for one in table.actions if one.bottleneck == bottleneck.value}
    names = list(dict.fromkeys([*called, *(one.name for one in against(bottleneck))]))
    return Recommended(
        kernel=analysis.kernel.name,
        architecture=f"sm_{capability[0]}{capability[1]}" if capability else UNKNOWN,
        bottleneck=bottleneck.value,
        recommendations=tuple(
            AdvisedAction(
                name,
                called[name].action if name in called else CATALOGUE[name].words,
                called[name].reason if name in called else None,
                CATALOGUE[name].link,
                known.get(name),
            )
            for name in names[:SHOWN]
        ),
    )


def table(sessions: Path) -> ActionTable:
    """From the logs below a folder. Raises SessionError naming the line that is no event.

    Not of sessions that people recorded in documents, nor of a try that nobody named an action for or that could not be
    measured.
    """
    cells: dict[tuple[str, str], list[tuple[str, TriedChange]]] = {}
    for path in sorted(sessions.glob(f"*/{log.FILE}")):
        session = folder.read(path.parent)
        for one in log.tries(session.events):
            if session.opened.source == "measured" and one.action is not None and one.failed != "measurement":
                cells.setdefault((one.action, one.bottleneck or UNKNOWN), []).append((session.name, one))
    every = [pair for tried in cells.values() for pair in tried]
    return ActionTable(
        sessions=len({name for name, _ in every}),
        tries=len(every),
        helped=sum(helped(one) for _, one in every),
        actions=tuple(_cell(*cell, tried) for cell, tried in sorted(cells.items())),
    )


def _cell(action: str, bottleneck: str, tried: Sequence[tuple[str, TriedChange]]) -> TriedAction:
    gains = [one.gain_pct for _, one in tried if one.gain_pct is not None]
    estimates = [one.nvidia_gain_pct for _, one in tried if one.nvidia_gain_pct is not None]
    return TriedAction(
        action,
        bottleneck,
        tries=len(tried),
        sessions=len({name for name, _ in tried}),
        helped=sum(helped(one) for _, one in tried),
        failed=sum(one.failed is not None for _, one in tried),
        gains_pct=(min(gains), max(gains)) if gains else None,
        nvidia_pct=median(estimates) if estimates else None,
    )


def helped(tried: TriedChange) -> bool:
    """Whether a try is certain to be an improvement, by the judge: faster in a case, and slower in none.

    What did not build, was wrong, or could not be told from no change at all did not help.
    """
    statuses = [Status[one.status.upper()] for one in tried.outcomes]
    return any(one.is_faster for one in statuses) and not any(one.is_slower for one in statuses)


# ---- in words --------------------------------------------------------------------------------------------------------


def recommended_lines(answer: Recommended) -> Iterator[str]:
    yield f"{answer.kernel} on {answer.architecture}: {answer.bottleneck.replace('_', ' ')}"
    for number, one in enumerate(answer.recommendations, 1):
        yield f"  {number}. {one.action}: {one.words}"
        yield f"     {evidence(one.tried)}"
        yield f"     {one.reason}. {one.link}" if one.reason else f"     {one.link}"


def evidence(tried: TriedAction | None) -> str:
    """What came of an action, in a sentence."""
    if tried is None:
        return "not tried against this bottleneck yet"
    where = f"{tried.tries} {'try' if tried.tries == 1 else 'tries'} in {tried.sessions} of at least {FEW} sessions"
    if not tried.measured:
        return f"not measured: {where}"
    gained = f"; gains of {tried.gain_words} of the time" if tried.gains_pct else ""
    return f"helped in {tried.helped_words} tries against this bottleneck{gained}"


def table_lines(known: ActionTable) -> Iterator[str]:
    """A table in Markdown, which reads as well in a terminal."""
    yield f"{known.tries} tries of {known.sessions} sessions, of which {known.helped} helped."
    yield ""
    yield "| action | bottleneck | tries | sessions | failed | helped | gained | NVIDIA estimated |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for one in known.actions:
        estimated = "–" if one.nvidia_pct is None else f"{one.nvidia_pct:.1f}%"
        yield (
            f"| {one.action} | {one.bottleneck} | {one.tries} | {one.sessions} | {one.failed} | {one.helped_words} "
            f"| {one.gain_words} | {estimated} |"
        )
