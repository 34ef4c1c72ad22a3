"""How many nights many searches take at once, as the runs of confirm.yml plan them from the index."""

from __future__ import annotations

import hashlib
import math
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.history.detection import POLICY, WANDER, everywhere, share
from benchmarks.history.series import PROCESSES, SPREADS, Generator
from benchmarks.tables import markdown
from kernelgate.bench.record import Cost, Device, Environment, Run
from kernelgate.ci.history import culprits, database, index, nights
from kernelgate.ci.history.culprits import PAIRS, PROCESS_SECONDS
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry
from kernelgate.ci.history.facts import PlannedPair
from kernelgate.ci.history.series import Wanted

SEARCHES = 17
COMMITS = 16
"""From one night to the next."""
BEFORE, AFTER = 20, 3
"""Nights before the first change, and after the last one."""
NIGHT_MINUTES, EVERY = 300, 10
"""How long runs begin, and how far apart the schedule has them."""
RUN_MINUTES, PAIR_MINUTES = 10, 2
"""What a run takes, and each of its pairs besides: one after the other on one GPU. Assumed."""
EFFECT_PCT = 1.0
NIGHT_PCT = 0.1
BEGIN = datetime(2026, 8, 1, 4, tzinfo=UTC)
PINNED = "f" * 40


@dataclass
class Searches:
    """Cases that became slower, each by a commit of its own."""

    index: Database
    rng: Generator
    made: list[int]
    """By case: the place of its commit."""
    spent: list[float] = field(default_factory=list)
    """GPU-seconds of each night."""

    @property
    def line(self) -> list[str]:
        return [f"{place:040x}" for place in range((max(self.made) // COMMITS + AFTER) * COMMITS + 1)]

    def measure_nights(self) -> None:
        spread = SPREADS[-1] / 100
        error = spread / math.sqrt(PROCESSES)
        for place in range(0, len(self.line), COMMITS):
            effects = self.rng.normal(0, NIGHT_PCT / 100, SEARCHES) + self.effects(-1, place)
            told = {"base": PINNED, "error": error, "spread_pct": 100 * spread, "processes": PROCESSES}
            self.add(self.line[place], BEGIN - timedelta(days=1), [{**told, "effect": effect} for effect in effects])

    def effects(self, base: int, head: int) -> np.ndarray:
        return np.array([math.log1p(EFFECT_PCT / 100) * (base < made <= head) for made in self.made])

    def compare(self, pair: PlannedPair, now: datetime) -> None:
        effects = self.effects(*(self.line.index(sha) for sha in (pair.previous, pair.commit)))
        told: list[dict[str, object] | None] = [None] * SEARCHES
        for case in (int(name.rpartition("/")[2]) for name in pair.cases):
            spread = SPREADS[-1] / 100 * math.exp(self.rng.normal(0, WANDER))
            values = self.rng.normal(effects[case], spread, pair.processes)
            shown = float(np.std(values, ddof=1))
            told[case] = {
                "base": pair.previous,
                "effect": float(values.mean()),
                "error": shown / math.sqrt(pair.processes),
                "spread_pct": 100 * shown,
                "processes": pair.processes,
                "status": "unchanged",
            }
        cost = PROCESS_SECONDS * pair.processes * len(pair.cases)
        self.add(pair.commit, now, told, base=pair.previous, cost=cost)
        self.spent[-1] += cost

    def add(
        self, head: str, now: datetime, told: list[dict[str, object] | None], base: str | None = None, cost: float = 0.0
    ) -> None:
        cases = [
            CaseEntry(card="card", case=str(at), comparisons=(ComparisonEntry.model_validate({**one, "head": head}),))
            for at, one in enumerate(told)
            if one
        ]
        run = Run(base_sha=base, head_sha=head, created_at=now.isoformat(), event="schedule")
        costs = (Cost(phase="calls", gpu_seconds=cost),) if cost else ()
        environment = Environment(device=Device(name="GPU"))
        name = hashlib.sha256(f"{now} {base} {head}".encode()).hexdigest()
        made = Entry(name=name, run=run, environment=environment, cases=tuple(cases), costs=costs)
        with database.writing(self.index) as connection:
            index.add(connection, made)
            index.place(connection, self.line)

    def live(self, most: int) -> int:
        """The night after which the issue of each is known; more than `most` where it takes longer."""
        for night in range(most):
            self.spent.append(0.0)
            minutes = 0
            while minutes < NIGHT_MINUTES:
                now = BEGIN + timedelta(days=night, minutes=minutes)
                with database.reading(self.index) as connection:
                    found = nights.of_index(connection, Wanted())
                    pairs = culprits.plan(connection, found, POLICY, self.line, now).pairs[:PAIRS]
                for pair in pairs:
                    self.compare(pair, now)
                if not pairs:
                    break
                minutes += EVERY * math.ceil((RUN_MINUTES + PAIR_MINUTES * len(pairs)) / EVERY)
            if self.told() == {str(at): self.line[made] for at, made in enumerate(self.made)}:
                return night + 1
        return most + 1

    def told(self) -> dict[str, str]:
        """By case: the commit whose issue names it."""
        with database.reading(self.index) as connection:
            found = culprits.of_index(connection, nights.of_index(connection, Wanted()))
        return {case.case: one.commit for one in found.culprits for case in one.cases if one.commits == 1}


def searched(apart: bool, seed: int, most: int = 9) -> tuple[int, list[float]]:
    """Nights until the last issue, and the GPU-seconds of each. `apart`: each commit in another night's range."""
    rng = np.random.default_rng(seed)
    made = [(BEFORE + at * apart) * COMMITS + int(rng.integers(1, COMMITS + 1)) for at in range(SEARCHES)]
    with tempfile.TemporaryDirectory() as folder, database.opened(Path(folder) / "index.sqlite") as opened:
        searches = Searches(opened, rng, made)
        searches.measure_nights()
        return searches.live(most), searches.spent


def table(runs: int) -> str:
    rows = []
    for name, apart in (("each in another night's commits", True), ("all in one night's commits", False)):
        made = list(everywhere(partial(searched, apart), range(runs), name))
        most, seconds = max(night for night, _ in made), float(np.mean([sum(spent) for _, spent in made]))
        rows.append([name, share(night <= 2 for night, _ in made), str(most), f"{seconds:.0f}"])
    return markdown([f"{SEARCHES} searches", "within 2 nights (95%)", "most nights", "GPU-seconds"], rows)
