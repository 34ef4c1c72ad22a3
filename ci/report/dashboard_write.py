"""Writes the dashboard: pages that say all they know without a script, and scripts that draw, sort and compare."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import drawing, formatting, render
from kernelgate.ci.document.model import Line
from kernelgate.ci.report import dashboard_lines as lines
from kernelgate.ci.report import dashboard_scripts as scripts
from kernelgate.ci.report.dashboard import Dashboard, SitePoint, SiteSeries, SiteWeek

ASSETS = ("list.js", "series.js", "compare.js")
ROWS = 30
"""Of a series' table of measurements."""
NEWS = 6
"""Changes on the first page."""
COMPARED = 2_000
"""Commits that can be compared; each has a file of its own."""


@dataclass(frozen=True)
class PointLine:
    point: SitePoint
    commit: Line
    time: str
    interval: str
    reference: str


def write(shown: Dashboard, library: Mapping[str, str], folder: Path) -> None:
    """Puts the site into the folder; other files there are left alone. Raises OutputError.

    `library`: uPlot's files, as `chart_library` gives them.
    """
    for name, content in _files(shown, library):
        files.write(folder / name, content)


def _files(shown: Dashboard, library: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    templates = render.html("kernelgate.ci.report")

    def page(name: str, root: str = "", **values: object) -> str:
        """`root` leads from the page to the site's folder."""
        return templates.get_template(f"{name}.html.jinja").render(page=name, root=root, shown=shown, **values)

    for name, content in library.items():
        yield f"assets/{name}", content
    for name in ("site.css", *ASSETS):
        yield f"assets/{name}", templates.get_template(name).render()
    yield "index.html", page("overview", groups=lines.groups(shown), news=lines.news(shown)[:NEWS])
    every = list(scripts.newest_first(shown.series))
    compared = {"count": min(len(every), COMPARED), "all": len(every) <= COMPARED}
    yield "compare.html", page("compare", compared=compared)
    largest = max((sum(one.gpu_seconds.values()) for one in shown.weeks), default=0.0) or 1.0
    weeks = [_week(one, shown, largest) for one in shown.weeks]
    yield "health.html", page("health", weeks=weeks, alarms=_alarms(shown))
    yield "sessions.html", page("sessions")
    yield from scripts.commits(shown.series, every[:COMPARED]).items()
    for one in shown.series:
        yield f"series/{one.id}.js", scripts.series(one, lines.address_of(one.repository))
        environments = [
            (
                scripts.letter(number),
                ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in where.items()) or "unknown",
            )
            for number, where in enumerate(one.environments)
        ]
        yield (
            f"series/{one.id}.html",
            page(
                "series",
                "../",
                one=one,
                line=lines.line(one, shown),
                changes=lines.changes(one),
                points=[_point(point, one) for point in reversed(one.points[-ROWS:])],
                environments=environments,
                pin=lines.commit(one.pin, one.repository) if one.pin else None,
            ),
        )


def _point(point: SitePoint, one: SiteSeries) -> PointLine:
    return PointLine(
        point=point,
        commit=lines.commit(point.commit, one.repository),
        time=formatting.durations(point.us)[0],
        interval=formatting.MISSING if point.reach is None else f"± {formatting.percent(100 * point.reach, 2)}",
        reference=lines.multiple(lines.reference_times(point)),
    )


# Costs and health -----------------------------------------------------------------------------------------------------

HOUR_S = 3600.0
BAR = 90.0
"""Units that the largest week's bar is long."""


@dataclass(frozen=True)
class WeekLine:
    week: SiteWeek
    seconds: float
    bar: Markup
    """Its share of the largest week."""
    money: str
    """Empty where the policy names no price of this kind of GPU."""
    phases: str
    retried: str
    unjudged: str
    reasons: tuple[str, ...]
    untrusted: str
    spread: str


def _week(week: SiteWeek, shown: Dashboard, largest: float) -> WeekLine:
    seconds = sum(week.gpu_seconds.values())
    phases = sorted(week.gpu_seconds.items(), key=lambda one: -one[1])
    price = (shown.prices or {}).get(week.gpu)
    filled = drawing.rect((0, 2), BAR * seconds / largest, 8, "bar")
    return WeekLine(
        week=week,
        seconds=seconds,
        bar=drawing.tag("svg", filled, width=BAR, height=12.0, viewBox=f"0 0 {BAR:g} 12", aria_hidden="true"),
        money="" if price is None else f"{price * seconds / HOUR_S:,.2f} {shown.currency}".rstrip(),
        phases=", ".join(f"{phase} {formatting.percent(100 * part / seconds, 0)}" for phase, part in phases if part),
        retried=formatting.percent(100 * week.retried_seconds / seconds) if seconds else formatting.MISSING,
        unjudged=_share(sum(week.unjudged.values()), week.records),
        reasons=tuple(f"{reason}: {count}" for reason, count in Counter(week.unjudged).most_common(3)),
        untrusted=_share(week.untrusted, week.cases),
        spread=formatting.MISSING if week.spread_pct is None else formatting.percent(week.spread_pct, 2),
    )


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else formatting.MISSING


def _alarms(shown: Dashboard) -> str:
    """How suspicions ended."""
    states = Counter(change.state for one in shown.series for change in one.changes)
    confirmed, refuted, waiting = (states[state] for state in ("confirmed", "refuted", "suspected"))
    decided = confirmed + refuted
    left = f" {formatting.counted(waiting, 'suspicion')} not decided yet." if waiting else ""
    if not decided:
        return f"No suspicion has been decided by a comparison of both commits.{left}"
    share = formatting.percent(100 * refuted / decided, 0)
    counted = f"{confirmed} confirmed, {refuted} refuted ({share})"
    return f"Of {formatting.counted(decided, 'suspicion')} that were decided: {counted}.{left}"


# uPlot ----------------------------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
LIBRARY = {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"}
"""The files of the package that a site needs, and what they are called there."""


class ChartLibraryError(KernelgateError):
    """uPlot is not installed, or in another version."""


def chart_library(folder: Path | None = None) -> dict[str, str]:
    """The files of uPlot, which draws the series, by their names in a site: from `folder`, else from beside this module
    or the working folder. From npm, at the version of package-lock.json, never kept in the repository.

    Raises ChartLibraryError, which says how to install it.
    """
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    wanted: str = lock["packages"]["node_modules/uplot"]["version"]
    places = [folder] if folder else [HERE / "node_modules/uplot", Path("node_modules/uplot")]
    installed = next((place for place in places if (place / "package.json").is_file()), None)
    how = f"`npm install --ignore-scripts --no-save uplot@{wanted}` puts it into ./node_modules"
    if installed is None:
        raise ChartLibraryError(f"no uPlot in {' or '.join(map(str, places))}, which draws the charts: {how}")
    try:
        have = json.loads((installed / "package.json").read_text(encoding="utf-8"))["version"]
        read = {name: (installed / file).read_text(encoding="utf-8") for file, name in LIBRARY.items()}
    except (OSError, ValueError, KeyError, TypeError):
        raise ChartLibraryError(f"the uPlot in {installed} is not whole: {how}") from None
    if have != wanted:
        raise ChartLibraryError(f"the uPlot in {installed} is version {have}, not {wanted}: {how}")
    return read
