"""How well changes over time and their commits are found: `python -m benchmarks.history`, seeded, hours on two cores.

Writes the tables into docs/history-detection.md and docs/bisect.md. With Apache Otava's analysis beside the
project's packages (`pip install --no-deps apache-otava==0.8.0`), its detector is measured, too.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from benchmarks.history import bisecting, detection
from benchmarks.history.detection import Detector, found, share
from benchmarks.history.series import labelled, nights, recorded_spreads
from benchmarks.tables import markdown, put
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import changes

ROOT = Path(__file__).parents[2]
DETECTION, BISECT = ROOT / "docs" / "history-detection.md", ROOT / "docs" / "bisect.md"
COMPARISONS = 1_000_000
STEPS = (("night's sd at most 0.15%", (0.05, 0.1, 0.15), 2), ("night's sd 0.3%", (0.3,), 4))
"""Of planted steps: the nights' standard deviations, and within how many nights they are to be suspected."""


@click.command()
@click.option("--years", "count", default=150, show_default=True, help="Years without a change, of each kind.")
@click.option("--planted", default=600, show_default=True, help="Series with a step, beside the labelled ones.")
@click.option("--only", type=click.Choice(["detection", "bisect"]), help="Measure one of the two.")
@click.option("--searches", default=400, show_default=True, type=click.IntRange(10), help="Bisections of each kind.")
def main(count: int, planted: int, only: str | None, searches: int) -> None:
    """Measure, print the tables, and put them into the documentation."""
    if only != "bisect":
        put(DETECTION, "history", f"\n{detection_table(planted)}\n\n{detection.unchanged_table(count, COMPARISONS)}\n")
    if only != "detection":
        put(BISECT, "bisect", f"\n{bisecting.table(searches)}\n")


def detection_table(planted: int) -> str:
    say(f"recorded spreads between processes, percent: {recorded_spreads()}")
    detectors: dict[str, Detector] = {"kernelgate": changes.of_series}
    if importlib.util.find_spec("otava"):
        detectors["Otava 0.8.0"] = detection.otava
    columns = [column(detector) for detector in detectors.values()]
    rows = [[kind, what, *(one[kind, what] for one in columns)] for kind, what in columns[0]]
    for name, sds, within in STEPS:
        outcomes = detection.planted(planted, sds, within)
        kind, others = f"1% step, {name}, {planted:,} more series", [""] * (len(detectors) - 1)
        rows.append([kind, f"suspected within {within} nights", share(one for one, _ in outcomes), *others])
        rows.append([kind, "confirmed at most two nights later", share(told for _, told in outcomes), *others])
    return markdown(["", "what", *detectors], rows)


def column(detector: Detector) -> dict[tuple[str, str], str]:
    """What one detector makes of the labelled series; the comparisons that follow are the same."""
    every = labelled()
    plain = [one for one in every if len(one.steps) == 1 and one.machines == 1]
    made: dict[tuple[str, str], str] = {}
    for name, sds, within in STEPS:
        some = [one for one in plain if one.sd_pct in sds]
        outcomes = [found(one, within, detector) for one in some]
        made[f"1% step, {name}", f"suspected within {within} nights"] = share(flagged for flagged, _ in outcomes)
        made[f"1% step, {name}", "confirmed at most two nights later"] = share(told for _, told in outcomes)
    drifts = [one for one in every if one.drift]
    made["drift of 1 to 2%", "found as drift"] = share(
        any(change.kind == "drift" for change in detector(nights(one))) for one in drifts
    )
    moved = [one for one in every if one.environments and not one.steps]
    made["new environment", "no suspicion"] = share(not detector(nights(one)) for one in moved)
    two = [one for one in every if one.machines > 1]
    made["two machines in turn, 1% step", "suspected"] = share(bool(detector(nights(one))) for one in two)
    made["300 series of 1,000 nights", "seconds on one core"] = f"{300 * seconds(detector):.0f}"
    return made


def seconds(detector: Detector) -> float:
    """Of one series of 1,000 nights with a change in the middle."""
    some = nights(labelled()[60])[:340]
    long = [one for turn in range(3) for one in some]
    shifted = [replace(one, place=at, commit=f"{at:07x}") for at, one in enumerate(long)]
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        detector(shifted)
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


if __name__ == "__main__":
    main()
