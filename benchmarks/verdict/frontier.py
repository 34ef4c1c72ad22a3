"""From how many processes on a change of a size is certain, and how often identical code is called different:
`python -m benchmarks.verdict.frontier`, seeded. Keeps what it measured in benchmarks/results/frontier.json and writes
docs/statistics.md's table of it, in half an hour or so on one core.

Each case is looked at after every process from the first that may show anything, whatever was seen before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import TypeAlias

import click
import numpy as np
from scipy import signal

from benchmarks.tables import markdown, put
from benchmarks.verdict import records, spreads
from benchmarks.verdict.records import POLICY, ROOT, SEED, Generator
from benchmarks.verdict.spreads import Draw, lottery, scattered
from kernelgate.ci.judge import estimate
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import claims
from kernelgate.ci.judge.stats import Array

KEPT = ROOT / "benchmarks" / "results" / "frontier.json"
LOOKS = range(POLICY.processes.minimum, POLICY.processes.limit + 1)
EFFECTS_PCT, SPREADS_PCT = (0.5, 3.0, 10.0), (0.02, 0.05, 0.1)
"""Of changes, and of processes."""
IDENTICAL: Mapping[str, Draw] = {
    **{f"spread {pct:g}%": scattered(pct) for pct in (0.05, 0.3, 1.0, 2.0, 5.0, 7.0, 10.0)},
    "20% of processes 2% slower, head": lottery(0.2, 2.0, both=False),
    "50% of processes 0.5% slower, each side": lottery(0.5, 0.5, both=True),
    "20% of processes 10% slower, head": lottery(0.2, 10.0, both=False),
}
WANDER, CORRELATION, ROUNDS = 0.009, 0.9, 100
"""Standard deviation of the head's log times that have a memory, and what neighbouring rounds share."""
Processes: TypeAlias = Callable[[int], list[Evidence]]
"""The cases of one record, as its first processes show them."""
Shares: TypeAlias = dict[str, list[float]]
"""By scene: the share of cases that had a direction after so many processes, or before."""


def estimates(rng: Generator, draw: Draw, change_pct: float, cases: int) -> Processes:
    drawn = [[spreads.located(rng, draw, change_pct) for _ in range(LOOKS[-1])] for _ in range(cases)]
    return lambda count: [spreads.evidence(str(at), one[:count], None) for at, one in enumerate(drawn)]


def wandering(rng: Generator, change_pct: float) -> Processes:
    """Samples, since what wanders is found in them."""
    sides: dict[str, list[Array]] = {"base": [], "head": []}
    for _ in range(LOOKS[-1]):
        steps = rng.normal(0, WANDER * np.sqrt(1 - CORRELATION**2), 2 * ROUNDS)
        moved = np.log1p(change_pct / 100) + signal.lfilter([1], [1, -CORRELATION], steps)[ROUNDS:]
        for side, level in (("base", rng.normal(0, 0.0003)), ("head", moved)):
            sides[side].append(100 * np.exp(level + rng.normal(0, 0.003, ROUNDS)))

    def first(count: int) -> list[Evidence]:
        return estimate.of_record(records.record({side: times[:count] for side, times in sides.items()}), POLICY)

    return first


def directions(draw: Callable[[Generator], Processes], drawn: int) -> list[float]:
    rng, seen, cases = np.random.default_rng(SEED), np.zeros(len(LOOKS)), 0
    for _ in range(drawn):
        processes, certain = draw(rng), np.zeros(0, dtype=bool)
        for at, count in enumerate(LOOKS):
            if not certain.size or not certain.all():
                now = np.array([claim is not None and claim.certain for claim in claims(processes(count), POLICY)])
                certain = now | certain if certain.size else now
            seen[at] += certain.sum()
        cases += certain.size
    return [round(float(share), 5) for share in seen / cases]


def measured(drawn: int) -> dict[str, Shares]:
    """Of changes, and of identical code, which takes more records, since it seldom gets a direction."""
    changed = {}
    for spread, effect in product(SPREADS_PCT, EFFECTS_PCT):
        for size in (effect, 100 / (1 + effect / 100) - 100):
            draw = partial(estimates, draw=scattered(spread), change_pct=size, cases=1)
            changed[f"{size:+.1f}%, spread {spread:g}%"] = directions(draw, drawn)
    for effect in (3.0, 10.0):
        draw = partial(estimates, draw=scattered(0.05), change_pct=effect, cases=9)
        changed[f"{effect:+.1f}% in nine cases, spread 0.05%"] = directions(draw, drawn // 9)
    changed["+3.0%, times that wander"] = directions(partial(wandering, change_pct=3.0), drawn // 3)
    identical = {}
    for name, processes in IDENTICAL.items():
        identical[name] = directions(partial(estimates, draw=processes, change_pct=0.0, cases=1), 5 * drawn)
    identical["times that wander"] = directions(partial(wandering, change_pct=0.0), drawn // 3)
    return {"changed": changed, "identical": identical}


SHOWN = {
    "changed": ["+0.5%, spread 0.05%", "+3.0%, spread 0.05%", "+10.0%, spread 0.05%"],
    "identical": ["spread 10%", "50% of processes 0.5% slower, each side", "20% of processes 10% slower, head"],
}
"""The scenes of the page."""


def table(kept: Mapping[str, Shares]) -> str:
    def rows(kind: str, said: str, digits: int) -> list[list[str]]:
        return [
            [f"{said}{name}", *(f"{100 * share:.{digits}f}%" for share in kept[kind][name])] for name in SHOWN[kind]
        ]

    body = [*rows("changed", "", 1), *rows("identical", "same code, ", 2)]
    return markdown(["direction certain after … processes", *map(str, LOOKS)], body)


@click.command()
@click.option("--draws", default=2000, show_default=True, type=click.IntRange(10), help="Records of each change.")
def main(draws: int) -> None:
    """Measure how soon changes are certain, keep it, and write the table into docs/statistics.md."""
    kept = measured(draws)
    KEPT.write_text(json.dumps({"draws": draws, **kept}, indent=1) + "\n", encoding="utf-8")
    put(ROOT / "docs" / "statistics.md", "frontier", table(kept))


if __name__ == "__main__":
    main()
