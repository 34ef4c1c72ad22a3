"""Measures the rules and writes docs/statistics.md's figures: `python -m benchmarks.verdict [--draws N]`, seeded.

The page has it with 100 draws, which take some minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click
import numpy as np

from benchmarks.tables import put
from benchmarks.verdict import document, records, spreads
from benchmarks.verdict.document import Rates
from benchmarks.verdict.records import POLICY, ROOT, SEED, SETS, SPOILERS, Generator, PairedTimes
from kernelgate.bench.system.progress import Advance, track
from kernelgate.ci.judge.case import Direction

Draw = Callable[[Generator], PairedTimes]


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
    """The rules on records drawn from recorded times."""
    detected: dict[tuple[str, float], Rates] = {}
    stored: dict[tuple[str, float], Rates] = {}
    hard: dict[tuple[str, float], Rates] = {}
    identical, *slower = records.effects()
    for name in SETS:
        for variant, effect in (identical, slower[2]):
            # Alarms on identical code are rare, so it takes more records to count them.
            draw = partial(records.paired_times, name=name, variant=variant)
            detected[name, effect] = _rates(draw, draws if effect else 5 * draws)
            advance(f"{name} +{effect:g}%")
        stored[name, 0.0] = _rates(partial(records.against_stored, name=name, variant=1), draws)
        advance(f"{name}, stored")
    for spoiler in SPOILERS:
        for effect in (0.0, 5.0):
            hard[spoiler, effect] = _rates(partial(_spoilt, spoiler=spoiler, effect=effect), draws)
            advance(f"{spoiler} +{effect:g}%")
    return document.of_rules(draws, detected, stored, hard)


def _by_spread(drawn: int, advance: Advance) -> str:
    """Records with known truth, because no trace has them."""
    scenes, found = spreads.scenes(), {}
    for name in spreads.SHOWN:
        found[name] = spreads.measured(scenes[name], drawn, POLICY, SEED)
        advance(name)
    return f"**Identical code, by the true spread between processes** ({drawn} records each):\n\n{spreads.table(found)}"


def _spoilt(rng: Generator, spoiler: str, effect: float) -> PairedTimes:
    clean = records.paired_times(rng, SETS[int(rng.integers(len(SETS)))], 1)
    return SPOILERS[spoiler](rng, records.slowed(clean, effect))


def _rates(draw: Draw, draws: int) -> Rates:
    """How often each rule says slower and faster."""
    rng = np.random.default_rng(SEED)
    said = [records.say(draw(rng)) for _ in range(draws)]

    def shares(direction: Direction) -> dict[str, float]:
        return {rule: sum(one[rule] is direction for one in said) / draws for rule in said[0]}

    return Rates(shares(Direction.SLOWER), shares(Direction.FASTER))


if __name__ == "__main__":
    main()
