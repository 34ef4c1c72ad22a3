"""Measures the rules and writes docs/statistics.md's figures: `python -m benchmarks.verdict [--draws N]`, seeded.

Takes about an hour on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import click
import numpy as np

from benchmarks.tables import put
from benchmarks.verdict import document, noise, power, records, spreads, two_modes
from benchmarks.verdict.document import Rates
from benchmarks.verdict.records import POLICY, PROCESSES, ROOT, SEED, SETS, SPOILERS, Generator, PairedTimes
from kernelgate.bench.system.progress import Advance, track
from kernelgate.ci.judge.case import Direction

Draw = Callable[[Generator], PairedTimes]


@click.command()
@click.option("--draws", default=400, show_default=True, type=click.IntRange(10), help="Records drawn for each figure.")
def main(draws: int) -> None:
    """Run every rule on every scenario, and write tables and plot into docs/statistics.md."""
    steps = len(SETS) * (2 * len(records.effects()) + 2) + 2 * len(SPOILERS)
    steps += len(spreads.scenes()) + len(power.SCENES) + 2
    with track("judging", steps) as advance:
        text = "\n\n".join([*_of_traces(draws, advance), *_made_up(draws, advance)])
    put(ROOT / "docs" / "statistics.md", "verdict", text)
    click.echo(text)


def _of_traces(draws: int, advance: Advance) -> Iterator[str]:
    """The rules on records drawn from recorded times."""
    detected: dict[tuple[str, float], Rates] = {}
    stored: dict[tuple[str, float], Rates] = {}
    hard: dict[tuple[str, float], Rates] = {}
    processes, effects = {}, records.effects()
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
    document.plot(detected, ROOT / "docs" / "images" / "power.svg")
    yield from document.of_rules(draws, detected, stored, hard)
    yield from document.own(detected, processes)


def _made_up(draws: int, advance: Advance) -> Iterator[str]:
    """Records with known truth, because no trace has them."""
    found = {}
    for name, scene in spreads.scenes().items():
        found[name] = spreads.measured(scene, 5 * draws, POLICY, SEED)
        advance(name)
    yield (
        "**By the true spread between processes**, identical code, stopping as `kernelgate bench` does, "
        f"with standard errors ({5 * draws} records each):"
    )
    yield spreads.table(found, PROCESSES)
    yield f"**A power-capped GPU, made up ({draws} records each), whose clock wanders between 1.2 and 2.0 GHz:**"
    yield power.table(draws, advance)
    yield "**Times in two modes, made up, by the distance of the modes: direction / equivalent / no verdict, percent.**"
    yield two_modes.table(max(10, draws // 4))
    advance("two modes")
    for title, table in noise.tables(max(10, draws // 4)).items():
        yield from (f"**{title}**", table)
    advance("uneven and correlated noise")


def _spoilt(rng: Generator, spoiler: str, effect: float) -> PairedTimes:
    clean = records.paired_times(rng, SETS[int(rng.integers(len(SETS)))], 1)
    return SPOILERS[spoiler](rng, records.slowed(clean, effect))


def _rates(draw: Draw, draws: int) -> Rates:
    """How often each rule says slower and faster."""
    rng = np.random.default_rng(SEED)
    said = [records.say(draw(rng)) for _ in range(draws)]

    def shares(direction: Direction) -> dict[str, float]:
        return {rule: sum(one.directions[rule] is direction for one in said) / draws for rule in said[0].directions}

    equivalent = sum(one.equivalent for one in said) / draws
    return Rates(shares(Direction.SLOWER), shares(Direction.FASTER), equivalent)


def _processes_needed(draw: Draw, draws: int) -> float:
    """Mean number of processes after which `kernelgate bench` stops."""
    rng = np.random.default_rng(SEED)
    drawn = (draw(rng) for _ in range(draws))
    return float(np.mean([len(records.stopped(records.record(one.sides)).processes) for one in drawn]))


if __name__ == "__main__":
    main()
