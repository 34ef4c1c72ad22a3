"""Writes the dashboard: pages that say all they know without a script, and scripts that draw, sort and compare. The
data is a script itself, pure JSON behind a name, since a page that is opened from a file may load nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Mark, Table, table
from kernelgate.ci.history.canary import APART_PCT
from kernelgate.ci.history.facts import pct
from kernelgate.ci.report import machine
from kernelgate.ci.report.dashboard import Dashboard, SiteSeries

ASSETS = ("site.css", "list.js", "series.js", "compare.js")
ROWS = 30
COMPARED = 2_000
"""Commits that can be compared; each has a file of its own."""


def write(shown: Dashboard, library: Mapping[str, str], folder: Path) -> None:
    """Puts the site with uPlot's files into the folder; others there are left alone. Raises OutputError."""
    templates = render.html("kernelgate.ci.report")

    def page(name: str, root: str = "", **values: object) -> str:
        """`root` leads from the page to the site's folder."""
        return templates.get_template(f"{name}.html.jinja").render(
            page=name, root=root, shown=shown, stacked=True, **values
        )

    last: dict[str, tuple[str, int]] = {}  # of every commit its latest measurement
    for at, point in ((at, point) for one in shown.series for at, point in enumerate(one.points)):
        last[point.commit] = max(last.get(point.commit, ("", 0)), (point.made, at))
    every = sorted(last, key=lambda sha: last[sha], reverse=True)
    compared = {"count": min(len(every), COMPARED), "all": len(every) <= COMPARED}
    named = ((one, f"{one.card} {one.case} on {one.gpu or 'an unknown device'}") for one in shown.decisions)
    rows = ((one.made[:10], one.kind, case, Code(one.sha[:7]), one.who, one.why) for one, case in named)
    decisions = table(("when", "what", "case", "commit", "by", "why"), rows)
    health: dict[str, Any] = {"weeks": _weeks(shown), "canaries": _canaries(shown), "decisions": decisions}
    health |= {"prices": machine.prices(shown.costs), "apart": formatting.percent(APART_PCT, 0)}
    content = {
        **{f"assets/{name}": text for name, text in library.items()},
        **{f"assets/{name}": templates.get_template(name).render() for name in ASSETS},
        "index.html": page("overview"),
        "compare.html": page("compare", compared=compared),
        "health.html": page("health", **health),
        "sessions.html": page("sessions"),
        **_commits(shown.series, every[:COMPARED]),
    }
    for one in shown.series:
        environments = [
            (_letter(at), ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in where.items()) or "unknown")
            for at, where in enumerate(one.environments)
        ]
        tables = {"environments": environments, "changes": _changes(one), "points": _points(one)}
        content[f"series/{one.id}.js"] = _series(one)
        content[f"series/{one.id}.html"] = page("series", "../", one=one, **tables)
    for name, text in content.items():
        files.write(folder / name, text)


# The tables -----------------------------------------------------------------------------------------------------------


def _changes(one: SiteSeries) -> Table:
    rows = []
    for change in reversed(one.changes):
        where = formatting.separated(filter(None, (one.commits(change), one.diff(change))))
        made = one.made(change.commit)[:10] or formatting.MISSING
        rows.append(((one.mark(change), f" {change.state}"), " ".join(change.words), where, made, change.why))
    return table(("state", "#change", "commit", "measured", "why"), rows)


def _points(one: SiteSeries) -> Table:
    rows = []
    for point in reversed(one.points[-ROWS:]):
        reach = formatting.MISSING if point.reach is None else f"± {formatting.percent(100 * point.reach, 2)}"
        made, time = point.made[:10] or formatting.MISSING, formatting.durations(point.us)[0]
        where = _letter(point.environment)
        rows.append((made, one.commit(point.commit), time, reach, point.multiple, where, point.finding))
    return table(("measured", "commit", "#time", "#95%", f"#{one.times_reference}", "environment", "remark"), rows)


def _weeks(shown: Dashboard) -> Table:
    rows = []
    for week in shown.weeks:
        phases = ((phase, part) for phase, part in week.gpu_seconds.most_common() if part)
        price = shown.costs.of(week.gpu)
        spent = [f"{phase} {formatting.percent(100 * part / week.seconds, 0)}" for phase, part in phases]
        money = machine.amount(price, week.seconds, shown.costs) if price else formatting.MISSING
        reasons = [f"{reason}: {count}" for reason, count in week.unjudged.most_common(3)]
        rows.append(
            (
                week.monday,
                week.gpu or "unknown",
                f"{week.seconds:,.0f}",
                *((money,) if shown.costs.gpu_hour else ()),
                ", ".join(spent) or formatting.MISSING,
                formatting.percent(100 * week.retried_seconds / week.seconds) if week.seconds else formatting.MISSING,
                f"{week.untrusted} of {week.cases}" if week.cases else formatting.MISSING,
                formatting.percent(median(week.spreads_pct), 2) if week.spreads_pct else formatting.MISSING,
                "; ".join((f"{sum(week.unjudged.values())} of {week.records}", *reasons)),
            )
        )
    priced = ("#money",) if shown.costs.gpu_hour else ()
    titles = ("week from", "GPU", "#GPU-seconds", *priced, "spent on", "#repeated", "#cases not to be trusted")
    return table((*titles, "#spread", "without verdict"), rows)


def _canaries(shown: Dashboard) -> Table:
    titles = ("GPU", "machine", "#equal: false alarms", "#2% more: found", "#newest", "#beside its siblings", "")
    rows = []
    for one in shown.canaries:
        counts = (f"{one.false_alarms} of {one.equal}", f"{one.detected} of {one.more}")
        apart = formatting.MISSING if one.apart_pct is None else formatting.percent(one.apart_pct, 1, sign=True)
        odd = (Mark.SLOWER, " does not measure") if one.odd else ""
        rows.append((one.gpu, Code(one.machine[:12]), *counts, formatting.durations(one.us)[0], apart, odd))
    return table(titles, rows)


# What the scripts draw ------------------------------------------------------------------------------------------------

SHORT = 12
"""Characters of a commit's id in a data file; GitHub takes them for the commit."""


def _series(shown: SiteSeries) -> str:
    points = shown.points
    places = {one.commit: at for at, one in enumerate(points)}
    value = {
        "commit": [_short(one.commit) for one in points],
        "made": [int(datetime.fromisoformat(one.made).timestamp()) if one.made else None for one in points],
        "environment": [one.environment for one in points],
        "us": [_rounded(one.us) for one in points],
        "reach": [_rounded(one.reach, 3) for one in points],
        "pinned": [_rounded(one.pinned) for one in points],
        "pinned_reach": [_rounded(one.pinned_reach, 3) for one in points],
        "reference": [_rounded(one.reference_us) for one in points],
        "finding": {at: visible(one.finding) for at, one in enumerate(points) if one.finding},
        "letters": [_letter(number) for number in range(len(shown.environments))],
        "changes": [
            {"at": places[one.commit], "state": one.state, "change": one.words[0]}
            for one in shown.changes
            if one.commit in places
        ],
        "times_reference": shown.times_reference,
        "pin": _short(shown.pin),
        "address": shown.address,
    }
    return f"const kernelgate_series = {_json(value)};\n"


def _commits(shown: Sequence[SiteSeries], order: Sequence[str]) -> dict[str, str]:
    """The scripts behind the comparison of two commits, by their file names: a list of them all, and one for each."""
    names = [[visible(one.card), visible(one.case), visible(one.gpu), one.id] for one in shown]
    wanted = set(order)
    measured: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    together: defaultdict[str, list[Any]] = defaultdict(list)
    for number, one in enumerate(shown):
        for point in one.trusted:
            if point.commit in wanted:  # the newest record of it is the last
                over = [point.pinned, point.pinned_reach] if point.pinned is not None else []
                figures = [_rounded(point.us), _rounded(point.reach), point.environment, *map(_rounded, over)]
                measured[point.commit][number] = [*figures, _short(one.pin)] if over else figures
        for compared in one.comparisons:
            if compared.head in wanted:
                interval = [_rounded(end) for end in compared.interval_pct] if compared.interval_pct else None
                change = _rounded(pct(compared.effect))
                together[compared.head].append([number, _short(compared.base), change, interval])
    days = {point.commit: point.made[:10] for one in shown for point in one.points}
    listed, found = [], {}
    for sha in (sha for sha in order if measured[sha]):
        # A record may call its commit anything: what is no id must not become a path.
        name = sha[:SHORT] if formatting.is_commit(sha) else hashlib.sha256(sha.encode()).hexdigest()
        listed.append([_short(sha), days[sha], name])
        value = {"measured": measured[sha], "together": together[sha]}
        found[f"commits/{name}.js"] = f"kernelgate_commit({_json(_short(sha))}, {_json(value)});\n"
    found["commits.js"] = f"const kernelgate_commits = {_json({'series': names, 'commits': listed})};\n"
    return found


def _letter(number: int) -> str:
    """Names an environment in the chart: A to Z, then A2 and so on."""
    round_, place = divmod(number, 26)
    return chr(ord("A") + place) + (str(round_ + 1) if round_ else "")


def _short(sha: str) -> str:
    return sha[:SHORT] if formatting.is_commit(sha) else visible(sha, 40)


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


HERE = Path(__file__).parent
LIBRARY = {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"}
"""The files of the package that a site needs, and what they are called there."""


def chart_library(folder: Path | None = None) -> dict[str, str]:
    """The files of uPlot, which draws the series, by their names in a site: from `folder`, else from beside this module
    or the working folder. Raises KernelgateError, which says how to install it."""
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    wanted: str = lock["packages"]["node_modules/uplot"]["version"]
    places = [folder] if folder else [HERE / "node_modules/uplot", Path("node_modules/uplot")]
    for place in places:
        with suppress(OSError, ValueError):
            if json.loads((place / "package.json").read_text(encoding="utf-8")).get("version") == wanted:
                return {name: (place / file).read_text(encoding="utf-8") for file, name in LIBRARY.items()}
    how = f"`npm install --ignore-scripts --no-save uplot@{wanted}` puts it into ./node_modules"
    raise KernelgateError(f"no whole uPlot {wanted} in {' or '.join(map(str, places))}, which draws the charts: {how}")
