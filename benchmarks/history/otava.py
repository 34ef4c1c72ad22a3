"""Apache Otava's detector on the same series: its windowed t-test, with what it is told by default."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.facts import Change

WINDOW, P = 50, 0.001


def detect(seen: Sequence[Night]) -> tuple[Change, ...]:
    """It knows neither environments nor the nights' own errors: each environment is given to it as a series."""
    from otava.analysis import compute_change_points

    found: list[Change] = []
    for key in dict.fromkeys(one.environment for one in seen):
        part = [one for one in seen if one.environment == key]
        if len(part) < 4:
            continue
        # Ratios, not logarithms: it divides by the mean.
        points, _ = compute_change_points([math.exp(one.log_ratio) for one in part], window_len=WINDOW, max_pvalue=P)
        for point in points:
            before, after = part[point.index - 1], part[point.index]
            size = point.stats.forward_change_percent()
            found.append(
                Change("step", before.commit, before.place, after.commit, after.place, key, size, (size, size))
            )
    return tuple(sorted(found, key=lambda one: one.place))
