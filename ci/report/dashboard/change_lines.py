"""Changes in words, and where links to their commits lead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line, Link, Mark
from kernelgate.ci.history.changes import State
from kernelgate.ci.report.dashboard.dashboard import SiteChange, SiteSeries

MARKS: Mapping[State, Mark] = {
    "suspected": Mark.UNKNOWN,
    "confirmed": Mark.SLIGHT,
    "refuted": Mark.NONE,
    "accepted": Mark.PASSED,
}
"""Of a confirmed one its direction says more."""
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,100}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class ChangeLine:
    series: SiteSeries
    change: SiteChange
    mark: Line
    size: str
    interval: str
    commit: Line
    diff: Line
    """What changed in the code."""


def of_series(series: SiteSeries) -> list[ChangeLine]:
    """Newest first."""
    return [_line(change, series) for change in reversed(series.changes)]


def address_of(repository: str) -> str | None:
    """Of a repository on GitHub; None where a record calls it something else."""
    return f"https://github.com/{repository}" if _REPOSITORY.fullmatch(repository) else None


def commit(sha: str, repository: str) -> Line:
    address = address_of(repository)
    if address and formatting.is_commit(sha):
        return (Link(sha[:7], f"{address}/commit/{sha}"),)
    return (formatting.commit(sha or None, formatting.MISSING),)


def _line(change: SiteChange, series: SiteSeries) -> ChangeLine:
    size, interval = formatting.signed(change.change_pct, change.interval_pct)
    return ChangeLine(
        series=series,
        change=change,
        mark=(_mark(change),),
        size=size,
        interval=interval,
        commit=commit(change.commit, series.repository),
        diff=_diff(change, series.repository),
    )


def _mark(change: SiteChange) -> Mark:
    if change.state == "confirmed":
        return Mark.SLOWER if change.change_pct > 0 else Mark.FASTER
    return MARKS[change.state]


def _diff(change: SiteChange, repository: str) -> Line:
    address = address_of(repository)
    if address and formatting.is_commit(change.previous) and formatting.is_commit(change.commit):
        return (Link("diff", f"{address}/compare/{change.previous}..{change.commit}"),)
    return ()
