"""Writes the dashboard: pages that say all they know without a script, and scripts that draw, sort and compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from kernelgate.bench.core import files
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line
from kernelgate.ci.report.dashboard import change_lines, data, health, overview
from kernelgate.ci.report.dashboard.dashboard import Dashboard, SitePoint, SiteSeries
from kernelgate.ci.report.page import html

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

    `library`: uPlot's files, as `chart_library.files` gives them.
    """
    for name, content in _files(shown, library):
        files.write(folder / name, content)


def _files(shown: Dashboard, library: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, content in library.items():
        yield f"assets/{name}", content
    yield "assets/site.css", _environment().get_template("site.css").render()
    for name in ASSETS:
        yield f"assets/{name}", _environment().get_template(name).render()
    yield "index.html", _page("overview", shown, "", groups=overview.groups(shown), news=overview.news(shown)[:NEWS])
    every = list(data.newest_first(shown.series))
    compared = {"count": min(len(every), COMPARED), "all": len(every) <= COMPARED}
    yield "compare.html", _page("compare", shown, "", compared=compared)
    weeks = health.weeks(shown)
    yield "health.html", _page("health", shown, "", weeks=weeks, alarms=health.alarms(shown))
    yield "sessions.html", _page("sessions", shown, "")
    yield from data.commits(shown.series, every[:COMPARED]).items()
    for one in shown.series:
        yield f"series/{one.id}.js", data.series(one, change_lines.address_of(one.repository))
        yield f"series/{one.id}.html", _series(one, shown)


def _series(one: SiteSeries, shown: Dashboard) -> str:
    return _page(
        "series",
        shown,
        "../",
        one=one,
        line=overview.line(one, shown),
        changes=change_lines.of_series(one),
        points=[_point(point, one) for point in reversed(one.points[-ROWS:])],
        environments=[(data.letter(number), _words(where)) for number, where in enumerate(one.environments)],
        pin=change_lines.commit(one.pin, one.repository) if one.pin else None,
    )


def _page(name: str, shown: Dashboard, root: str, **values: object) -> str:
    """`root` leads from the page to the site's folder."""
    template = _environment().get_template(f"{name}.html.jinja")
    return template.render(page=name, root=root, shown=shown, **values)


@cache
def _environment() -> jinja2.Environment:
    places = [jinja2.PackageLoader("kernelgate.ci.report.dashboard"), jinja2.PackageLoader("kernelgate.ci.report.page")]
    return html.environment().overlay(loader=jinja2.ChoiceLoader(places))


def _point(point: SitePoint, one: SiteSeries) -> PointLine:
    reference = "" if point.reference_us is None else f"{formatting.significant(point.reference_us / point.us, 3)}×"
    return PointLine(
        point=point,
        commit=change_lines.commit(point.commit, one.repository),
        time=formatting.durations(point.us)[0],
        interval=formatting.MISSING if point.reach is None else f"± {formatting.percent(100 * point.reach, 2)}",
        reference=reference or formatting.MISSING,
    )


def _words(environment: Mapping[str, str]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in environment.items()) or "unknown"
