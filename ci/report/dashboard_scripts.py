"""What the pages' scripts draw, as scripts themselves: a page that is opened from a file may load nothing else.

Pure JSON in ASCII behind a name; numbers with as many digits as a drawing shows.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.report.dashboard import SiteSeries

SHORT = 12
"""Characters of a commit's id in a data file; GitHub takes them for the commit."""


def series(shown: SiteSeries, address: str | None) -> str:
    """The script behind a series' page."""
    points = shown.points
    places = {one.commit: at for at, one in enumerate(points)}
    changes = [
        {
            "at": places[one.commit],
            "state": one.state,
            "change": formatting.signed(one.change_pct, one.interval_pct)[0],
        }
        for one in shown.changes
        if one.commit in places
    ]
    value = {
        "commit": [short(one.commit) for one in points],
        "made": [_seconds(one.made) for one in points],
        "environment": [one.environment for one in points],
        "us": [_rounded(one.us) for one in points],
        "reach": [_rounded(one.reach, 3) for one in points],
        "pinned": [_rounded(one.pinned) for one in points],
        "pinned_reach": [_rounded(one.pinned_reach, 3) for one in points],
        "reference": [_rounded(one.reference_us) for one in points],
        "finding": {at: visible(one.finding) for at, one in enumerate(points) if one.finding},
        "letters": [letter(number) for number in range(len(shown.environments))],
        "changes": changes,
        "times_reference": shown.times_reference,
        "pin": short(shown.pin),
        "address": address,
    }
    return f"const kernelgate_series = {_json(value)};\n"


def commits(shown: Sequence[SiteSeries], order: Sequence[str]) -> dict[str, str]:
    """The scripts behind the comparison of two commits, by their file names: a list of them all, and one for each."""
    names = [[visible(one.card), visible(one.case), visible(one.gpu), one.id] for one in shown]
    wanted = set(order)
    measured: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    together: defaultdict[str, list[Any]] = defaultdict(list)
    for number, one in enumerate(shown):
        for point in one.points:
            if point.commit in wanted and not point.finding:  # the newest record of it is the last
                over = [point.pinned, point.pinned_reach] if point.pinned is not None else []
                figures = [_rounded(point.us), _rounded(point.reach), point.environment, *map(_rounded, over)]
                measured[point.commit][number] = [*figures, short(one.pin)] if over else figures
        for compared in one.comparisons:
            if compared.head in wanted:
                interval = [_rounded(end) for end in compared.interval_pct] if compared.interval_pct else None
                together[compared.head].append([number, short(compared.base), _rounded(compared.change_pct), interval])
    days = {point.commit: point.made[:10] for one in shown for point in one.points}
    listed = [[short(sha), days.get(sha, ""), file_name(sha)] for sha in order if measured[sha]]
    found = {"commits.js": f"const kernelgate_commits = {_json({'series': names, 'commits': listed})};\n"}
    for sha in order:
        if measured[sha]:
            value = {"measured": measured[sha], "together": together[sha]}
            found[f"commits/{file_name(sha)}.js"] = f"kernelgate_commit({_json(short(sha))}, {_json(value)});\n"
    return found


def letter(number: int) -> str:
    """Names an environment in the chart: A to Z, then A2 and so on."""
    round_, place = divmod(number, 26)
    return chr(ord("A") + place) + (str(round_ + 1) if round_ else "")


def short(sha: str) -> str:
    return sha[:SHORT] if formatting.is_commit(sha) else visible(sha, 40)


def file_name(sha: str) -> str:
    """A record may call its commit anything: what is no id must not become a path."""
    return sha[:SHORT] if formatting.is_commit(sha) else hashlib.sha256(sha.encode()).hexdigest()


def _seconds(made: str) -> int | None:
    try:
        return int(datetime.fromisoformat(made).timestamp()) if made else None
    except ValueError:
        return None


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def newest_first(shown: Sequence[SiteSeries]) -> Iterator[str]:
    """Every commit once, by its latest measurement."""
    last: dict[str, tuple[str, int]] = {}
    for one in shown:
        for at, point in enumerate(one.points):
            last[point.commit] = max(last.get(point.commit, ("", 0)), (point.made, at))
    yield from sorted(last, key=lambda sha: last[sha], reverse=True)
