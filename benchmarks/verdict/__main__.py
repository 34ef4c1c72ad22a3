"""Measures the rules and writes docs/statistics.md's figures: `python -m benchmarks.verdict [--draws N]`, seeded.

Takes about an hour on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import numpy as np

from benchmarks.tables import put
from benchmarks.verdict import noise, power, records, selective, spreads, two_modes
from benchmarks.verdict.document import Figures, Rates, plot, tables
from benchmarks.verdict.records import POLICY, PROCESSES, SETS, SPOILERS, Generator, PairedTimes, record, say
from benchmarks.verdict.spreads import Sureness
from kernelgate.bench.system.progress import Advance, track
from kernelgate.ci.judge.case import Direction
from kernelgate.ci.judge.verdict import undecided

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "statistics.md"
IMAGE = ROOT / "docs" / "images" / "power.svg"
SEED = 20260801

Draw = Callable[[Generator], PairedTimes]


@click.command()
@click.option("--draws", default=400, show_default=True, type=click.IntRange(10), help="Records drawn for each figure.")
def main(draws: int) -> None:
    """Run every rule on every scenario, and write tables and plot into docs/statistics.md."""
    effects = records.effects()
    steps = len(SETS) * (2 * len(effects) + 2) + 2 * len(SPOILERS) + len(selective.MIXES) * len(selective.WAYS)
    steps += len(spreads.scenes()) + len(power.SCENES) + 2
    with track("judging", steps) as advance:
        figures = _measured(draws, effects, advance)
    plot(figures.power, IMAGE)
    put(DOCUMENT, "verdict", tables(figures))
    click.echo(tables(figures))


def _measured(draws: int, effects: list[tuple[int, float]], advance: Advance) -> Figures:
    detected, stored, hard, processes = {}, {}, {}, {}
    for name in SETS:
        for variant, effect in effects:
            draw = partial(records.paired_times, name=name, variant=variant)
            # Alarms on identical code are rare, so it takes more records to count them.
            detected[name, effect] = _rates(draw, draws if effect else 5 * draws)
            advance(f"{name} +{effect:g}%")
            processes[name, effect] = _processes_needed(draw, max(10, draws // 4))
            advance(f"{name} +{effect:g}%, stopping")
        for variant, effect in ((0, 0.0), (4, effects[3][1])):
            stored[name, effect] = _rates(partial(records.against_stored, name=name, variant=variant), draws)
            advance(f"{name} +{effect:g}%, stored")
    for spoiler in SPOILERS:
        for effect in (0.0, 5.0):
            hard[spoiler, effect] = _rates(partial(_spoilt, spoiler=spoiler, effect=effect), draws)
            advance(f"{spoiler} +{effect:g}%")
    spent = {}
    for mix in selective.MIXES:
        for way in selective.WAYS:
            spent[mix, way] = selective.spent(mix, way, draws // 2, SEED)
            advance(f"{mix}, {way}")
    by_spread = _by_spread(5 * draws, advance)
    return Figures(draws, detected, stored, hard, processes, spent, by_spread, _simulated(draws, advance))


def _simulated(draws: int, advance: Advance) -> dict[str, str]:
    """Records that are made up, because no trace has them."""
    title = f"A power-capped GPU, made up ({draws} records each), whose clock wanders between 1.2 and 2.0 GHz:"
    capped = {title: power.table(draws, advance)}
    title = "Times in two modes, made up, by the distance of the modes: direction / equivalent / no verdict, percent."
    modes = {title: two_modes.table(max(10, draws // 4))}
    advance("two modes")
    found = noise.tables(max(10, draws // 4))
    advance("uneven and correlated noise, days")
    return {**capped, **modes, **found}


def _by_spread(draws: int, advance: Advance) -> dict[str, Sureness]:
    found = {}
    for name, scene in spreads.scenes().items():
        found[name] = spreads.measured(scene, draws, POLICY, SEED)
        advance(name)
    return found


def _spoilt(rng: Generator, spoiler: str, effect: float) -> PairedTimes:
    clean = records.paired_times(rng, SETS[int(rng.integers(len(SETS)))], 1)
    return SPOILERS[spoiler](rng, records.slowed(clean, effect))


def _rates(draw: Draw, draws: int) -> Rates:
    """How often each rule says slower and faster."""
    rng = np.random.default_rng(SEED)
    said = [say(draw(rng)) for _ in range(draws)]

    def shares(direction: Direction) -> dict[str, float]:
        return {rule: sum(one.directions[rule] is direction for one in said) / draws for rule in said[0].directions}

    equivalent = sum(one.equivalent for one in said) / draws
    return Rates(shares(Direction.SLOWER), shares(Direction.FASTER), equivalent)


def _processes_needed(draw: Draw, draws: int) -> float:
    """Mean number of processes after which `kernelgate bench` stops."""
    rng = np.random.default_rng(SEED)

    def needed(pair: PairedTimes) -> int:
        counts = range(1, PROCESSES + 1)
        return next(n for n in counts if not undecided(record(base=pair.base[:n], head=pair.head[:n]), POLICY))

    return float(np.mean([needed(draw(rng)) for _ in range(draws)]))


if __name__ == "__main__":
    main()
