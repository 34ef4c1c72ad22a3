"""How sure the judge is where processes scatter more than it expects: by the true spread, with and without a history.

Draws each process's estimate, not its rounds, so that thousands of records take minutes; the judge does the rest, and
stops as `kernelgate bench` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.tables import markdown
from benchmarks.verdict.records import POLICY, Generator, Share
from kernelgate.bench.record import CaseKey
from kernelgate.ci.judge import estimate, prior
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.location import Location
from kernelgate.ci.judge.prior import CHANGE_PCT, HISTORY_DF, KnownSpread
from kernelgate.ci.judge.stopping import settled

Draw = Callable[[Generator], float]
"""The change that one process of identical code shows, in percent."""

SPREADS_PCT = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
NOISE_PCT = 0.01
"""Of a process's estimate, from its rounds."""
ROUNDS = 200
MARGIN_CHANGE_PCT = 1.0
PAST = 5
"""Earlier comparisons, of two processes each."""
WANDER = math.log(1.65)
"""How far a spread moves from day to day, as a standard deviation of its logarithm …"""
WILD_DAYS, WILD_FACTOR = 0.05, 10.0
"""… and in which share of days it is how many times as large."""


@dataclass(frozen=True)
class Sureness:
    """Of many records, each stopped as `kernelgate bench` stops."""

    direction: Share
    """Identical code got a direction in any case."""
    covered: Share
    """The 95% interval of two processes held the truth."""
    equivalent: Share
    """Two processes called a change of the margin's size equivalent."""
    processes: float
    """Mean, by case."""


def scattered(spread_pct: float) -> Draw:
    return lambda rng: float(rng.normal(0, spread_pct))


def lottery(share: float, slower_pct: float, both: bool) -> Draw:
    """Each process draws whether a side's placement is slow: the head's alone, or either side's."""

    def draw(rng: Generator) -> float:
        slow = rng.random(2) < share
        return float(rng.normal(0, 0.03) + slower_pct * (float(slow[0]) - (float(slow[1]) if both else 0.0)))

    return draw


def past(rng: Generator, days: Iterable[Draw]) -> KnownSpread | None:
    """What comparisons of two processes on these days leave in the history."""
    known: KnownSpread | None = None
    for draw in days:
        values = np.array([located(rng, draw).value for _ in range(2)])
        new = prior.seen(values, np.full(2, (NOISE_PCT / 100) ** 2), None)
        known = prior.joined(known, new) if known else new
    return known if known and known.df >= HISTORY_DF else None


def located(rng: Generator, draw: Draw, change_pct: float = 0.0) -> Location:
    value = math.log1p((draw(rng) + float(rng.normal(0, NOISE_PCT))) / 100) + math.log1p(change_pct / 100)
    return Location(value, (NOISE_PCT / 100) ** 2, ROUNDS)


def evidence(name: str, changes: Sequence[Location], known: KnownSpread | None) -> Evidence:
    group, findings = estimate.of_changes(changes, CHANGE_PCT, known, POLICY)
    return Evidence(CaseKey("", name), (), (), (), True, (group,), 0.0, tuple(findings), known=known)


def claimed(cases: Sequence[Evidence]) -> list[Inference]:
    return [claim for claim in claims(cases, POLICY) if claim is not None]


def stopped(
    rng: Generator, draws: Sequence[Draw], known: Sequence[KnownSpread | None]
) -> tuple[list[Evidence], list[Inference]]:
    """A record whose undecided cases are timed again, one process after the other, up to the limit."""
    timed = [[located(rng, draw) for _ in range(POLICY.processes.minimum)] for draw in draws]
    while True:
        cases = [evidence(f"{n}", one, known[n]) for n, one in enumerate(timed)]
        found = claimed(cases)
        open_ = [n for n, both in enumerate(zip(cases, found, strict=True)) if not settled(*both, POLICY)]
        again = [n for n in open_ if len(timed[n]) < POLICY.processes.limit]
        if not again:
            return cases, found
        for n in again:
            timed[n].append(located(rng, draws[n]))


Scene = Callable[[Generator], tuple[Sequence[Draw], Sequence[KnownSpread | None]]]
"""The processes of each case of a record, and what is known of each; the last case is the one that is asked about."""


def measured(scene: Scene, records: int, seed: int) -> Sureness:
    rng = np.random.default_rng(seed)
    wrong = covered = equivalent = processes = cases = 0
    margin = math.log1p(POLICY.gates.margin_pct / 100)
    for _ in range(records):
        draws, known = scene(rng)
        timed, found = stopped(rng, draws, known)
        wrong += any(claim.certain for claim in found)
        processes += sum(case.groups[0].values.size for case in timed)
        cases += len(timed)
        two, as_far = (
            claimed([evidence("", [located(rng, draws[-1], change_pct) for _ in range(2)], known[-1])])[0]
            for change_pct in (0.0, MARGIN_CHANGE_PCT)
        )
        low, high = two.interval()
        covered += low <= 0 <= high
        equivalent += as_far.within(margin)
    direction, held, same = (Share(hits, records) for hits in (wrong, covered, equivalent))
    return Sureness(direction, held, same, processes / cases)


def unknown(draw: Draw) -> Scene:
    return lambda _: ([draw], [None])


def remembered(draw: Draw) -> Scene:
    """After five comparisons with processes like today's."""
    return lambda rng: ([draw], [past(rng, [draw] * PAST)])


def wandered(spread_pct: float, days: int) -> Scene:
    """After so many days, each with a spread of its own, as today has."""

    def day(rng: Generator) -> Draw:
        wild = WILD_FACTOR if rng.random() < WILD_DAYS else 1.0
        return scattered(spread_pct * math.exp(rng.normal(0, WANDER)) * wild)

    def scene(rng: Generator) -> tuple[Sequence[Draw], Sequence[KnownSpread | None]]:
        *before, today = (day(rng) for _ in range(days + 1))
        return [today], [past(rng, before)]

    return scene


def beside(odd_pct: float, others: int, others_pct: float) -> Scene:
    """One case of another spread than the other cases of its record."""
    return lambda _: ([scattered(others_pct)] * others + [scattered(odd_pct)], [None] * (others + 1))


def scenes() -> dict[str, Scene]:
    draws = {f"spread {pct:g}%": scattered(pct) for pct in SPREADS_PCT}
    draws["20% of processes 2% slower, head"] = lottery(0.2, 2.0, both=False)
    draws["50% of processes 0.5% slower, each side"] = lottery(0.5, 0.5, both=True)
    found = {name: unknown(draw) for name, draw in draws.items()}
    found |= {f"{name}, five earlier comparisons": remembered(draw) for name, draw in draws.items()}
    for pct, days in product((0.05, 0.2), (5, 20)):
        found[f"spread around {pct:g}%, another each day, {days} days"] = wandered(pct, days)
    found["eleven cases, one 0.5%, ten 0.03%"] = beside(0.5, 10, 0.03)
    found["nine cases of 0.03%"] = beside(0.03, 8, 0.03)
    found["nine cases of 0.3%"] = beside(0.3, 8, 0.3)
    return found


SHOWN = (
    *(f"spread {pct:g}%" for pct in (0.05, 0.3, 1.0)),
    *(f"spread {pct:g}%, five earlier comparisons" for pct in (0.05, 0.3)),
    "50% of processes 0.5% slower, each side",
)
"""The scenes of the page."""


def table(found: Mapping[str, Sureness]) -> str:
    """A Markdown table, one row a scene."""
    columns = ("", "gets a direction", "95% interval of two processes holds", "mean processes")
    rows = [[name, str(one.direction), str(one.covered), f"{one.processes:.1f}"] for name, one in found.items()]
    return markdown(columns, rows)
