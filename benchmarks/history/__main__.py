"""How well changes over time and their commits are found: `python -m benchmarks.history`, seeded, hours on two cores.

Writes the tables into docs/history.md and docs/bisect.md.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from benchmarks.history import bisecting, detection, searching
from benchmarks.history.detection import everywhere, found, share
from benchmarks.history.series import SeriesLabel, labelled, nights
from benchmarks.tables import markdown, put
from kernelgate.ci.history import changes
from kernelgate.ci.history.facts import Change

RUNS = 6
"""Of 17 searches at once, of each kind."""
ROOT = Path(__file__).parents[2]
HISTORY, BISECT = ROOT / "docs" / "history.md", ROOT / "docs" / "bisect.md"
STEPS = (("sd of a night at most 0.15%", (0.05, 0.1, 0.15), 2), ("sd of a night 0.3%", (0.3,), 4))
"""Of planted steps: the nights' standard deviations, and within how many nights they are to be suspected."""


@click.command()
@click.option("--years", default=8, show_default=True, help="Years without a change, of each kind.")
@click.option("--searches", default=400, show_default=True, type=click.IntRange(10), help="Bisections of each kind.")
@click.option("--only", type=click.Choice(["detection", "searches", "bisect"]), help="Measure one of them.")
def main(years: int, searches: int, only: str | None) -> None:
    """Measure, and put the tables into the documentation."""
    if only in (None, "detection"):
        put(HISTORY, "history", markdown(["what", "of how many (95%)"], detected(years).items()))
    if only in (None, "searches"):
        put(HISTORY, "searches", searching.table(RUNS))
    if only in (None, "bisect"):
        put(BISECT, "bisect", bisecting.table(searches))


def detected(years: int) -> dict[str, str]:
    """What is made of the labelled series, and of years without a change."""
    every = labelled()
    made: dict[str, str] = {}
    for name, sds, within in STEPS:
        some = [one for one in every if len(one.steps) == 1 and one.sd_pct in sds]
        outcomes = list(everywhere(partial(found, within=within), some, name))
        made[f"1% step, {name}: suspected within {within} nights"] = share(flagged for flagged, _ in outcomes)
        made[f"1% step, {name}: confirmed two nights later"] = share(told for _, told in outcomes)

    drifts = everywhere(_whole, [one for one in every if one.drift], "drifts")
    made["drift of 1 to 2%: found as a drift"] = share(any(one.kind == "drift" for one in some) for some in drifts)
    moved = everywhere(_whole, [one for one in every if one.environments and not one.steps], "new environments")
    made["new environment: no suspicion"] = share(not some for some in moved)
    alike = everywhere(_whole, [one for one in every if one.memory], "nights like the one before")
    made["nights correlated by 0.6: no suspicion"] = share(not some for some in alike)
    made["loss since the best: within its 95% interval"] = share(everywhere(detection.best, every, "best"))
    return made | detection.unchanged(years)


def _whole(label: SeriesLabel) -> tuple[Change, ...]:
    return changes.of_series(nights(label))


if __name__ == "__main__":
    main()
