"""How well changes over time and their commits are found: `python -m benchmarks.history`, seeded, hours on two cores.

Writes the tables into docs/history-detection.md and docs/bisect.md. With Apache Otava's analysis beside the
project's packages (`pip install --no-deps apache-otava==0.8.0`), its detector is measured, too.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import numpy as np

from benchmarks.history import bisecting, detection
from benchmarks.history.detection import Detector, everywhere, found, share
from benchmarks.history.series import SeriesLabel, labelled, nights
from benchmarks.tables import markdown, put
from kernelgate.ci.history import changes
from kernelgate.ci.history.facts import Change

ROOT = Path(__file__).parents[2]
DETECTION, BISECT = ROOT / "docs" / "history-detection.md", ROOT / "docs" / "bisect.md"
STEPS = (("night's sd at most 0.15%", (0.05, 0.1, 0.15), 2), ("night's sd 0.3%", (0.3,), 4))
"""Of planted steps: the nights' standard deviations, and within how many nights they are to be suspected."""


@click.command()
@click.option("--years", default=8, show_default=True, help="Years without a change, of each kind.")
@click.option("--searches", default=400, show_default=True, type=click.IntRange(10), help="Bisections of each kind.")
@click.option("--only", type=click.Choice(["detection", "bisect"]), help="Measure one of the two.")
def main(years: int, searches: int, only: str | None) -> None:
    """Measure, and put the tables into the documentation."""
    if only != "bisect":
        detectors: dict[str, Detector] = {"kernelgate": changes.of_series}
        if importlib.util.find_spec("otava"):
            detectors["Otava 0.8.0"] = detection.otava
        columns = [column(detector) for detector in detectors.values()]
        rows = [[kind, what, *(one[kind, what] for one in columns)] for kind, what in columns[0]]
        table = markdown(["", "what", *detectors], rows)
        put(DETECTION, "history", f"\n{table}\n\n{detection.unchanged_table(years)}\n")
    if only != "detection":
        put(BISECT, "bisect", f"\n{bisecting.table(searches)}\n")


def column(detector: Detector) -> dict[tuple[str, str], str]:
    """What one detector makes of the labelled series; the comparisons that follow are the same."""
    every = labelled()
    made: dict[tuple[str, str], str] = {}
    for name, sds, within in STEPS:
        some = [one for one in every if len(one.steps) == 1 and one.sd_pct in sds]
        outcomes = list(everywhere(partial(found, within=within, detector=detector), some, name))
        made[f"1% step, {name}", f"suspected within {within} nights"] = share(flagged for flagged, _ in outcomes)
        made[f"1% step, {name}", "confirmed at most two nights later"] = share(told for _, told in outcomes)

    def seen(labels: list[SeriesLabel], name: str) -> list[tuple[Change, ...]]:
        return list(everywhere(partial(_whole, detector=detector), labels, name))

    drifts = seen([one for one in every if one.drift], "drifts")
    made["drift of 1 to 2%", "found as drift"] = share(any(one.kind == "drift" for one in some) for some in drifts)
    five = seen([one for one in every if len(one.steps) == 5], "five steps")
    made["five steps of 0.5 to 5%", "none of them called drift"] = share(
        all(one.kind == "step" for one in some) for some in five
    )
    moved = seen([one for one in every if one.environments and not one.steps], "new environments")
    made["new environment", "no suspicion"] = share(not some for some in moved)
    alike = seen([one for one in every if one.memory], "nights like the one before")
    made["nights like the one before (correlation 0.6)", "no suspicion"] = share(not some for some in alike)
    made["300 series of 1,000 nights", "seconds on one core"] = f"{300 * seconds(detector):.0f}"
    return made


def _whole(label: SeriesLabel, detector: Detector) -> tuple[Change, ...]:
    return detector(nights(label))


def seconds(detector: Detector) -> float:
    """Of one series of 1,000 nights with a change in the middle."""
    some = nights(labelled()[60])[:340]
    long = [one for turn in range(3) for one in some]
    shifted = [replace(one, place=at, commit=f"{at:07x}") for at, one in enumerate(long)]
    times = []
    for _ in range(3):
        begun = time.process_time()
        detector(shifted)
        times.append(time.process_time() - begun)
    return float(np.median(times))


if __name__ == "__main__":
    main()
