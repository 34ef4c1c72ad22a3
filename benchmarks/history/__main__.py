"""How well changes over time and their commits are found: `python -m benchmarks.history`, seeded, an hour on one core.

Writes the tables into docs/history-detection.md and docs/bisect.md. With Apache Otava's analysis beside the
project's packages (`pip install --no-deps apache-otava==0.8.0`), its detector is measured, too.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.history import bisecting, otava
from benchmarks.history.detection import (
    POLICY,
    Detector,
    Lived,
    compared,
    detect,
    false,
    found,
    known_spread,
    share,
    year,
)
from benchmarks.history.series import CODE_A_NIGHT, SeriesLabel, labelled, nights, recorded_spreads
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import confirm
from kernelgate.ci.history.changes import Change

ROOT = Path(__file__).parent.parent.parent
DETECTION, BISECT = ROOT / "docs" / "history-detection.md", ROOT / "docs" / "bisect.md"
COMPARISONS = 20_000
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


@click.command()
@click.option("--years", default=200, show_default=True, help="Series without a change that are lived night by night.")
@click.option("--only", type=click.Choice(["detection", "bisect"]), help="Measure one of the two.")
@click.option("--searches", default=400, show_default=True, type=click.IntRange(10), help="Bisections of each kind.")
def main(years: int, only: str | None, searches: int) -> None:
    """Measure, print the tables, and put them into the documentation."""
    if only != "bisect":
        put(DETECTION, detection_table(years))
    if only != "detection":
        put(BISECT, bisecting.table(searches))


def put(page: Path, lines: Sequence[str]) -> None:
    """In place of what stands between the marks."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    text = "\n".join(lines) + "\n"
    page.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1], encoding="utf-8")
    click.echo(text)


def detection_table(years: int) -> list[str]:
    say(f"recorded spreads between processes, percent: {recorded_spreads()}")
    detectors: dict[str, Detector] = {"kernelgate": detect}
    if importlib.util.find_spec("otava"):
        detectors["Otava 0.8.0"] = otava.detect
    chance = comparisons(COMPARISONS)
    lines = ["| | what | " + " | ".join(detectors) + " |", "| --- | --- |" + " ---: |" * len(detectors)]
    columns = [column(detector, years) for detector in detectors.values()]
    lines += [f"| {kind} | {what} | {' | '.join(one[kind, what] for one in columns)} |" for kind, what in columns[0]]
    return [*lines, "", f"A comparison of the same code confirms a change: {chance}."]


def column(detector: Detector, years: int) -> dict[tuple[str, str], str]:
    """What one detector makes of the labelled series; the comparisons that follow are the same."""
    every = labelled()
    plain = [one for one in every if len(one.steps) == 1 and one.machines == 1]
    made: dict[tuple[str, str], str] = {}
    for name, sd, within in (("night's sd at most 0.15%", 0.2, 2), ("night's sd 0.3%", 0.4, 4)):
        some = [one for one in plain if sd / 2 <= one.sd_pct < sd or (sd == 0.2 and one.sd_pct < sd)]
        outcomes = [found(one, one.steps[0][0], within, detector) for one in some]
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
    unchanged = [one for one in every if not one.steps and not one.drift]
    made |= lived(detector, unchanged[:: max(1, len(unchanged) // years)][:years] if years else [])
    made["300 series of 1,000 nights", "seconds on one core"] = f"{300 * seconds(detector):.0f}"
    return made


def lived(detector: Detector, unchanged: Sequence[SeriesLabel]) -> dict[tuple[str, str], str]:
    if not unchanged:
        return {}
    years: list[tuple[SeriesLabel, Lived]] = [(one, year(one, detector)) for one in unchanged]
    compared = sum(len(one.measured) for _, one in years) / len(years)
    gpu = sum(one.seconds for _, one in years) / len(years)
    kind = "a year without a change"
    return {
        (kind, "comparisons"): f"{compared:.2f}",
        (kind, "GPU-seconds"): f"{gpu:.0f}",
        (kind, "told all the same"): share(bool(false(label, one)) for label, one in years),
    }


def comparisons(count: int) -> str:
    """How often a comparison of the same code confirms what was suspected."""
    rng = np.random.default_rng(5)
    suspected = Change("step", "0000000", 0, "0000001", CODE_A_NIGHT, "", 0.5, (0.3, 0.7))
    spreads, outcomes = list(recorded_spreads().values()), []
    for _ in range(count):
        label = SeriesLabel(seed=0, sd_pct=0.3, spread_pct=float(rng.choice(spreads)))
        measured = [compared(label, suspected, int(rng.integers(4, 8)), rng)]
        outcomes.append(confirm.settled(suspected, measured, POLICY, known_spread(label)).state == "confirmed")
    return share(outcomes)


def seconds(detector: Detector) -> float:
    """Of one series of 1,000 nights with a change in the middle."""
    some = nights(labelled()[60])[:340]
    long = [one for turn in range(3) for one in some]
    shifted = [type(one)(**{**vars(one), "place": at, "commit": f"{at:07x}"}) for at, one in enumerate(long)]
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        detector(shifted)
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


if __name__ == "__main__":
    main()
