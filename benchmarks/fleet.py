"""How long pull requests wait for a GPU, and what they cost, by runners and shards: the table of docs/runner.md.

A simulation: pull requests come at random; their shards are taken in order of arrival by whichever runner is free. As
nothing overtakes, the times at which runners become free are all of its state, and no library is needed.
`python -m benchmarks.fleet` writes the table.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.tables import markdown, put
from kernelgate.bench import record
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.policy import policy

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "runner.md"
RECORDS = (*sorted((ROOT / "tests/data/pairs").glob("*.json")), ROOT / "tests/data/timing/pull_request_suite.json")
GPU = "NVIDIA L4"
DAY_S = 86_400.0
DAYS, SEED = 20, 1

REST_S = 19.5
"""Fuzzing, profiles and the rest, on the first shard: 49.3 s of `kernelgate pr` (docs/timing.md), without the 29.8 s in
which the processes of its record timed."""
FIXED = 21 / 79
"""The part of timing that shards do not divide: 79 s became 50 s with two (docs/runner.md)."""
SETUP_S = 60.0
"""Checkout and packages of a job. Assumed."""
COLD_S = 60.0
"""From the start of a stopped machine until it takes a job: the founding documents' "about 1 minute"."""
PATIENCE_S = 120.0
"""What a pull request may wait for a runner, of 95 in 100. Chosen."""


@dataclass(frozen=True)
class Demand:
    name: str
    pulls: int
    """A day."""
    hours: float
    """Of a day, in which they come."""
    runners: tuple[int, ...]


DEMANDS = (
    Demand("50 people", 100, 10.0, (1, 2)),
    Demand("3,000 a day", 3000, 24.0, (5, 6)),
)
SHARDS = (1, 2)
HEADER = ("demand", "runners", "shards", "p95 wait", "p95 answer", "used", "USD", "p95 wait, stopped", "USD, stopped")


@dataclass(frozen=True)
class Fleet:
    """What came of a demand, with so many runners and shards."""

    waits_s: Sequence[float]
    """Of each pull request, until its last shard was begun, …"""
    answers_s: Sequence[float]
    """… and until all had ended."""
    utilisation: float
    """The part of the runners' time in which they worked."""
    running_s: float
    """How long machines ran, for each pull request."""

    @property
    def p95_wait_s(self) -> float:
        return float(np.percentile(self.waits_s, 95))

    @property
    def keeps_up(self) -> bool:
        """Else the queue grows: the second half of the days waits longer."""
        half = len(self.waits_s) // 2
        return float(np.mean(self.waits_s[half:])) <= 2 * float(np.mean(self.waits_s[:half])) + SETUP_S


def bench_seconds() -> list[float]:
    """How long timing took in each kept record that has any, from the start of each process to its end."""
    spent = (sum(one.wall_seconds or 0.0 for one in record.read(path).processes) for path in RECORDS)
    return [seconds for seconds in spent if seconds]


def shard_seconds(bench_s: float, shards: int) -> list[float]:
    part = SETUP_S + bench_s * (FIXED + (1 - FIXED) / shards)
    return [part + REST_S, *[part] * (shards - 1)]


def arrivals(demand: Demand, rng: random.Random, days: int = DAYS) -> list[float]:
    return sorted(day * DAY_S + rng.uniform(0, demand.hours * 3600) for day in range(days) for _ in range(demand.pulls))


def simulate(
    coming: Sequence[float], services: Sequence[Sequence[float]], runners: int, stop_s: float | None, cold_s: float
) -> Fleet:
    """`services`: seconds of each pull request's shards. `stop_s`: idle seconds after which a machine is stopped."""
    free = [0.0] * runners
    waits, answers, busy, running = [], [], 0.0, 0.0
    for came, shards in zip(coming, services, strict=True):
        begun = ended = came
        for seconds in shards:
            idle = [at for at, since in enumerate(free) if since <= came]
            # The one that ended last, so that the others may be stopped; else whichever is free first.
            chosen = max(idle, key=free.__getitem__) if idle else min(range(runners), key=free.__getitem__)
            start, gap = max(came, free[chosen]), max(0.0, came - free[chosen])
            stopped = stop_s is not None and gap > stop_s
            start += cold_s if stopped else 0.0
            running += seconds + (stop_s + cold_s if stopped and stop_s is not None else gap)
            free[chosen] = start + seconds
            busy += seconds
            begun, ended = max(begun, start), max(ended, free[chosen])
        waits.append(begun - came)
        answers.append(ended - came)
    whole = runners * max(DAY_S, max(free))
    return Fleet(waits, answers, busy / whole, (running if stop_s is not None else whole) / len(coming))


def rows(stopping_s: float) -> Iterator[tuple[Demand, int, int, Fleet, Fleet]]:
    """Each with machines that are always on, and with those that are stopped when they idle for so long."""
    known = bench_seconds()
    for demand in DEMANDS:
        rng = random.Random(SEED)  # noqa: S311 (not for secrets)
        coming = arrivals(demand, rng)
        drawn = [rng.choice(known) for _ in coming]
        for runners in demand.runners:
            for shards in (one for one in SHARDS if one <= runners):
                services = [shard_seconds(bench_s, shards) for bench_s in drawn]
                on, off = (simulate(coming, services, runners, stop_s, COLD_S) for stop_s in (None, stopping_s))
                yield demand, runners, shards, on, off


def text() -> str:
    price = policy.load(ROOT / policy.POLICY_FILE).costs.gpu_hour[GPU]
    body, best = list[list[str]](), dict[str, tuple[float, int, int]]()
    for demand, runners, shards, on, off in rows(60 * (price.idle_minutes or 0.0)):
        if not on.keeps_up:
            continue
        money = [f"{one.running_s / 3600 * price.hour:.3f}" for one in (on, off)]
        answer = float(np.percentile(on.answers_s, 95))
        times = [f"{on.p95_wait_s:.0f} s", f"{answer:.0f} s", f"{100 * on.utilisation:.0f}%"]
        body.append([demand.name, f"{runners}", f"{shards}", *times, money[0], f"{off.p95_wait_s:.0f} s", money[1]])
        if off.p95_wait_s <= PATIENCE_S and (demand.name not in best or off.running_s < best[demand.name][0]):
            best[demand.name] = off.running_s, runners, shards
    why = f"the cheapest whose p95 of waiting is at most {PATIENCE_S:.0f} s"
    told = [
        f"- **{name}**: {counted(runners, 'runner')}, {counted(shards, 'shard')}, stopped when idle: {why}."
        for name, (_, runners, shards) in best.items()
    ]
    return "\n".join([*told, "", markdown(HEADER, body)])


if __name__ == "__main__":
    put(PAGE, "fleet", text())
