"""Measures the rules and writes docs/statistics.md's figures: `python -m benchmarks.verdict [--draws N]`, seeded.

The page has it with 100 draws, which take some minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean

import click
import numpy as np

from benchmarks.tables import markdown, put
from benchmarks.verdict import records, spreads
from benchmarks.verdict.records import ROOT, SEED, SETS, SPOILERS, Generator, PairedTimes
from kernelgate.bench.system.progress import Advance, track
from kernelgate.ci.judge.case import Direction

Said = list[dict[str, Direction]]
"""Of many records, what each rule says."""


@click.command()
@click.option("--draws", default=400, show_default=True, type=click.IntRange(10), help="Records drawn for each figure.")
def main(draws: int) -> None:
    """Run every rule on every scenario, and write tables into docs/statistics.md."""
    steps = 3 * len(SETS) + 2 * len(SPOILERS) + len(spreads.SHOWN)
    with track("judging", steps) as advance:
        text = "\n\n".join((_of_traces(draws, advance), _by_spread(5 * draws, advance)))
    put(ROOT / "docs" / "statistics.md", "verdict", text)
    click.echo(text)


def _of_traces(draws: int, advance: Advance) -> str:
    """One row a rule: the worst of the recorded sets, and the mean of what spoils a record."""

    def said(name: str, draw: Callable[[Generator], PairedTimes], count: int = draws) -> Said:
        rng = np.random.default_rng(SEED)
        found = [records.say(draw(rng)) for _ in range(count)]
        advance(name)
        return found

    (same, _), *_, (small, effect) = records.effects()[:4]
    alike, slower, stored, spoilt, spoilt_slower = [], [], [], [], []
    for name in SETS:
        # Alarms on identical code are rare, so it takes more records to count them.
        alike.append(said(f"{name} +0%", partial(records.paired_times, name=name, variant=same), 5 * draws))
        slower.append(said(f"{name} +{effect:g}%", partial(records.paired_times, name=name, variant=small)))
        stored.append(said(f"{name}, stored", partial(records.against_stored, name=name, variant=1)))
    for spoiler in SPOILERS:
        spoilt.append(said(f"{spoiler} +0%", partial(_spoilt, spoiler=spoiler, effect=0.0)))
        spoilt_slower.append(said(f"{spoiler} +5%", partial(_spoilt, spoiler=spoiler, effect=5.0)))

    def wrong(rule: str, summary: Callable[[list[float]], float], scenes: list[Said]) -> str:
        return f"{100 * summary([mean(one[rule] is not Direction.NONE for one in scene) for scene in scenes]):.1f}%"

    def seen(rule: str, summary: Callable[[list[float]], float], scenes: list[Said]) -> str:
        return f"{100 * summary([mean(one[rule] is Direction.SLOWER for one in scene) for scene in scenes]):.0f}%"

    body = []
    for rule in alike[0][0]:
        alarms = (wrong(rule, max, alike), wrong(rule, max, stored), wrong(rule, mean, spoilt))
        body.append([rule, *alarms, seen(rule, min, slower), seen(rule, mean, spoilt_slower)])
    alarms = ("same code: wrong", "stored baseline: wrong", "spoilt: wrong")
    columns = ("rule", *alarms, f"+{effect:g}%: seen", "spoilt, +5%: seen")
    return f"{markdown(columns, body)}\n\n{draws} records for each figure, {5 * draws} in its first column."


def _by_spread(drawn: int, advance: Advance) -> str:
    """Records with known truth, because no trace has them."""
    scenes, found = spreads.scenes(), {}
    for name in spreads.SHOWN:
        found[name] = spreads.measured(scenes[name], drawn, SEED)
        advance(name)
    return f"**Identical code, by the true spread between processes** ({drawn} records each):\n\n{spreads.table(found)}"


def _spoilt(rng: Generator, spoiler: str, effect: float) -> PairedTimes:
    clean = records.paired_times(rng, SETS[int(rng.integers(len(SETS)))], 1)
    return SPOILERS[spoiler](rng, records.slowed(clean, effect))


if __name__ == "__main__":
    main()
