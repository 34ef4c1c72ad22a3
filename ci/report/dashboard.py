"""What the dashboard shows, as plain data: whoever fills it decides what is known, whoever writes it only how it looks.

Levels are natural logarithms, and a `reach` is half of a 95% interval of one. Changes are of time, in percent: positive
is slower.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.ci.document.escape import visible
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change

ID_CHARACTERS = 60


def page_id(names: tuple[str, str, str, str]) -> str:
    """Of the page of a series, by its repository, card, case and kind of GPU."""
    readable = re.sub(r"[^a-z0-9]+", "-", " ".join(names[1:]).lower())[:ID_CHARACTERS].strip("-")
    return f"{readable}-{hashlib.sha256(repr(names).encode()).hexdigest()[:10]}".lstrip("-")


@dataclass(frozen=True)
class SitePoint:
    """What one record measured of a case's head."""

    commit: str
    made: str
    """ISO 8601, UTC; empty where the record does not say."""
    environment: int
    """Which of the series' environments."""
    us: float
    reach: float | None = None
    """Of the time's logarithm, from the scatter between processes; None of a single process."""
    pinned: float | None = None
    """The logarithm of its time over the pinned commit's, in the same processes."""
    pinned_reach: float | None = None
    reference_us: float | None = None
    finding: str = ""
    """Why no verdict may rest on it."""


@dataclass(frozen=True)
class SiteComparison:
    """Two commits in the same processes, as the judge has it."""

    base: str
    head: str
    change_pct: float
    interval_pct: tuple[float, float] | None


@dataclass(frozen=True)
class SiteSeries:
    """One case of a card on one kind of GPU, in all environments that it was measured in."""

    repository: str
    card: str
    case: str
    gpu: str
    environments: tuple[Mapping[str, str], ...]
    points: tuple[SitePoint, ...]
    """In the order of the default branch's commits, then of time."""
    reference: str = ""
    """What the points' `reference_us` is of, where a card said so."""
    pin: str = ""
    """The commit that `pinned` compares with."""
    comparisons: tuple[SiteComparison, ...] = ()
    changes: tuple[Change, ...] = ()
    note: str = ""
    """Which measurements are not among the points, and what their order is where it is not that."""

    def made(self, commit: str) -> str:
        """When a commit was first measured."""
        return next((point.made for point in self.points if point.commit == commit), "")

    @property
    def times_reference(self) -> str:
        return f"× {visible(self.reference) or 'reference'}"

    @property
    def id(self) -> str:
        """Names the series' page: the same as long as its names are."""
        return page_id((self.repository, self.card, self.case, self.gpu))


@dataclass(frozen=True)
class SiteWeek:
    """What one kind of GPU did in the week from Monday `monday` on."""

    monday: str
    gpu: str
    records: int
    unjudged: Mapping[str, int]
    """Records without a verdict, by their reason."""
    cases: int
    untrusted: int
    """Cases whose times no verdict may rest on."""
    spread_pct: float | None
    """Median over the cases of the standard deviation between processes."""
    gpu_seconds: Mapping[str, float]
    """By phase."""
    retried_seconds: float


@dataclass(frozen=True)
class SiteSession:
    """An optimisation session, in words."""

    name: str
    aside: str
    """What it is, where kernelgate did not measure a session: recorded by people, or a search of a script."""
    objective: str
    opened: str
    """A day; empty where the log has none."""
    where: str
    """The card, and what it ran on."""
    minutes: str
    speed: str
    tries: str
    cost: str
    ended: str


@dataclass(frozen=True)
class SiteSessions:
    rows: tuple[SiteSession, ...] = ()
    """Newest first."""
    figures: tuple[tuple[str, str], ...] = ()
    """What can be said over them: a name, and the figure with its interval or why there is none."""
    remarks: tuple[str, ...] = ()
    drawings: tuple[Markup, ...] = ()


@dataclass(frozen=True)
class Dashboard:
    made: str
    """When the site was written."""
    series: tuple[SiteSeries, ...]
    weeks: tuple[SiteWeek, ...] = ()
    """Newest first."""
    decisions: tuple[SeriesEvent, ...] = ()
    """What people decided against a verdict, or of a measurement: newest first."""
    release: str = ""
    """The name of the last release, such as v1.2; empty where there is none."""
    released: frozenset[str] = frozenset()
    """The commits of the default branch up to that release; a series' last point of them stands for it."""
    margin_pct: float = 1.0
    """Changes below it are of no concern."""
    prices: Mapping[str, float] | None = None
    """What a GPU-hour costs, by kind."""
    currency: str = ""
    sessions: SiteSessions = SiteSessions()
