"""All cards and cases at a glance: each case's newest time against release, best and reference, with its last times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Mark
from kernelgate.ci.report.dashboard import against, change_lines
from kernelgate.ci.report.dashboard.against import Against
from kernelgate.ci.report.dashboard.change_lines import ChangeLine
from kernelgate.ci.report.dashboard.dashboard import Dashboard, SitePoint, SiteSeries
from kernelgate.ci.report.page import drawing

DRAWN = 60
"""Points of a sparkline."""
WIDTH, HEIGHT = 150.0, 28.0
FLAT = 0.01
"""A sparkline is at least 1% of the time high, so that noise draws no mountains."""
TOLD = ("confirmed", "accepted")
"""Changes of these states are told; a suspicion is shown on its case's page alone, until a comparison has decided."""
MEANS = {
    "together": "measured in the same processes",
    "pinned": "each against the same pinned commit",
    "moved": "≈ each against the same pinned commit, in two environments",
    "times": "≈ times of different days",
}
CERTAIN = ("together", "pinned")
"""What is known in another way may be the machine's doing."""


@dataclass(frozen=True)
class Cell:
    """`sort` orders by it: the change in percent."""

    text: str
    interval: str = ""
    how: str = ""
    mark: Mark | None = None
    sort: float | None = None


@dataclass(frozen=True)
class CaseLine:
    series: SiteSeries
    time: str
    reference: Cell
    release: Cell
    best: Cell
    spark: Markup | None
    last: str
    news: ChangeLine | None
    """The newest change that people are told of."""


@dataclass(frozen=True)
class News:
    """What one commit changed: the largest of its changes, and how many cases changed beside it."""

    line: ChangeLine
    others: int


@dataclass(frozen=True)
class CardGroup:
    """The cases of a card on one kind of GPU."""

    repository: str
    card: str
    gpu: str
    lines: tuple[CaseLine, ...]

    @property
    def times_reference(self) -> str:
        """What stands above the cases' multiples of it."""
        named = {line.series.times_reference for line in self.lines}
        return named.pop() if len(named) == 1 else "× reference"


def groups(shown: Dashboard) -> list[CardGroup]:
    ordered = sorted(shown.series, key=lambda one: (one.repository, one.card, one.gpu, one.case))
    return [
        CardGroup(*key, tuple(line(one, shown) for one in of_card))
        for key, of_card in groupby(ordered, key=lambda one: (one.repository, one.card, one.gpu))
    ]


def news(shown: Dashboard) -> list[News]:
    """What people are told of, newest first."""
    lines = [line for one in shown.series for line in change_lines.of_series(one) if line.change.state in TOLD]
    lines.sort(key=_key, reverse=True)
    return [_largest(list(alike)) for _, alike in groupby(lines, key=_key)]


def line(series: SiteSeries, shown: Dashboard) -> CaseLine:
    newest = against.now(series)
    base = against.released(series, shown.released)
    return CaseLine(
        series=series,
        time=formatting.durations(newest.us)[0] if newest else formatting.MISSING,
        reference=_reference(newest),
        release=cell(against.between(series, newest, base) if newest and base else None, shown.margin_pct),
        best=cell(against.best(series), shown.margin_pct),
        spark=sparkline(series.points),
        last=newest.made[:10] if newest else "",
        news=next((one for one in change_lines.of_series(series) if one.change.state in TOLD), None),
    )


def cell(found: Against | None, margin_pct: float) -> Cell:
    """Marked as slower or faster only where that is certain, of some size, and not the machine's doing."""
    if found is None:
        return Cell(formatting.MISSING)
    change, interval = formatting.signed(found.change_pct, found.interval_pct)
    low, high = found.interval_pct or (-1.0, 1.0)
    certain = found.means in CERTAIN and (low > 0 or high < 0) and abs(found.change_pct) >= margin_pct
    direction = Mark.SLOWER if found.change_pct > 0 else Mark.FASTER
    about = "" if found.means in CERTAIN else "≈ "
    return Cell(
        f"{about}{change}",
        interval if found.interval_pct else "",
        MEANS[found.means],
        direction if certain else None,
        found.change_pct,
    )


def sparkline(points: Sequence[SitePoint]) -> Markup | None:
    """The last times, the longest highest; the line breaks where the environment changes."""
    last = [point for point in points if not point.finding][-DRAWN:]
    if len(last) < 2:
        return None
    low = min(point.us for point in last)
    height = max(max(point.us for point in last) - low, FLAT * low)
    step = (WIDTH - 6) / (DRAWN - 1)
    first = WIDTH - 3 - step * (len(last) - 1)
    places = [(first + step * at, HEIGHT - 3 - (HEIGHT - 6) * (one.us - low) / height) for at, one in enumerate(last)]
    breaks = [at for at, (one, other) in enumerate(pairwise(last), 1) if one.environment != other.environment]
    parts = [places[start:end] for start, end in pairwise([0, *breaks, len(last)])]
    drawn = [drawing.path(part, "spark") for part in parts if len(part) > 1]
    end = drawing.tag("circle", cx=places[-1][0], cy=places[-1][1], r=2.5, class_="now")
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}"}
    return drawing.tag("svg", *drawn, end, role="img", aria_label=_aloud(last), **size)


def _key(line: ChangeLine) -> tuple[str, str, str]:
    return line.change.made[:10], line.change.commit, line.change.state


def _largest(lines: Sequence[ChangeLine]) -> News:
    return News(max(lines, key=lambda one: abs(one.change.change_pct)), len(lines) - 1)


def _aloud(points: Sequence[SitePoint]) -> str:
    first, last = formatting.durations(points[0].us, points[-1].us)
    return f"the last {len(points)} times, from {first} to {last}"


def _reference(point: SitePoint | None) -> Cell:
    if point is None or point.reference_us is None:
        return Cell(formatting.MISSING)
    times = point.reference_us / point.us
    return Cell(f"{formatting.significant(times, 3)}×", sort=times)
