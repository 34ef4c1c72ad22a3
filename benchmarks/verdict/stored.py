"""What a comparison with a stored baseline shows and how often it errs: `python -m benchmarks.verdict.stored`, seeded.

Writes docs/statistics.md's table of it, in some minutes on one core. Made up: nobody kept repeated days of a machine.
"""

from __future__ import annotations

import math

import click
import numpy as np

from benchmarks.tables import markdown, put
from benchmarks.verdict.records import CASE, POLICY, ROOT, SEED, Generator, Share, record
from kernelgate.bench.record import BaselineDay, BaselineSummary, Environment, RunRecord, Summary
from kernelgate.ci.judge.case import Direction
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.verdict import judge

DRIFTS_PCT = (0.15, 0.5, 1.0, 1.41)
BASELINES = {"baseline of 1 day": 1, "of 5 days": 5}
EFFECTS_PCT = (3.0, 5.0, 8.0, 10.0)
SPEEDS = math.log(343.04 / 318.464)
"""How far the two speeds of the L4's baseline lie apart (.ci/baseline_s512.json), in log time."""


def said(drift_pct: float, days: int, effect_pct: float, draws: int, processes: int = 5, speeds: bool = False) -> Share:
    """How often a head with this effect gets a direction against a baseline of another day, which holds so many days.

    `drift_pct`: standard deviation of the difference of two days, of which each day has its part. `speeds`: the
    baseline has two. Unchanged code then has either of them today; a change is one of the baseline's median.
    """
    rng, hits = np.random.default_rng(SEED), 0
    for _ in range(draws):
        levels = rng.normal(0, drift_pct / 100 / math.sqrt(2), days + 1)
        stored, today = (_two_speeds if speeds else _baseline)(rng, levels[1:])
        if speeds and effect_pct:
            times = stored.processes[0].timings[0].samples_us["head"]
            today = math.log(float(np.median(times)) / 100) - levels[-1]
        change = levels[0] + today + math.log1p(effect_pct / 100)
        (case,) = judge(record({"head": _heads(rng, change, processes)}), POLICY, stored).cases
        hits += case.direction is not Direction.NONE
    return Share(hits, draws)


def _heads(rng: Generator, level: float, processes: int) -> list[Array]:
    """Processes that scatter as an H200's do (LEVEL_PCT), of 60 rounds."""
    return [100 * np.exp(level + rng.normal(0, 0.0015) + rng.normal(0, 0.003, 60)) for _ in range(processes)]


def _two_speeds(rng: Generator, levels: Array) -> tuple[RunRecord, float]:
    """Of one process, and which of its speeds unchanged code has today."""
    rounds, at = np.arange(100), int(rng.integers(20, 81))
    speeds = np.where(rounds < at, 0, SPEEDS)[:: 1 if rng.random() < 0.5 else -1]
    noise = rng.normal(0, 0.0015) + rng.normal(0, 0.005, len(rounds))
    return record({"head": [100 * np.exp(levels[-1] + speeds + noise)]}), float(rng.choice([0, SPEEDS]))


def _baseline(rng: Generator, levels: Array) -> tuple[RunRecord, float]:
    """Of the last day, with the medians of all."""
    each = [_heads(rng, float(level), 3) for level in levels]
    medians = [float(np.median(np.concatenate(times))) for times in each]
    numbered = enumerate(medians, 1)
    days = tuple(BaselineDay(measured=f"2026-11-{at:02}", code="one", median_us=median) for at, median in numbered)
    middle = medians[-1]
    case = BaselineSummary(median_us=middle, interval_us=(middle, middle), samples=180, processes=3, days=days)
    summary = Summary(source="simulated", cases={CASE.id: case})
    return record({"head": each[-1]}).model_copy(update={"summary": summary}), 0.0


def certain_from(torch: str, days: int) -> float:
    """Percent: the smallest change that is certain in seven processes, where neither day nor process is off."""
    low, high = 0.0, 50.0
    stored, _ = _baseline(np.random.default_rng(SEED), np.zeros(days))
    stored = stored.model_copy(update={"environments": (Environment(torch="2.12.0"),)})
    while high - low > 0.05:
        middle = (low + high) / 2
        rng = np.random.default_rng(SEED)
        times = [100 * (1 + middle / 100) * np.exp(rng.normal(0, 0.003, 60)) for _ in range(7)]
        run = record({"head": times}).model_copy(update={"environments": (Environment(torch=torch),)})
        (case,) = judge(run, POLICY, stored).cases
        low, high = (low, middle) if case.direction is Direction.SLOWER else (middle, high)
    return high


@click.command()
@click.option("--draws", default=1000, show_default=True, type=click.IntRange(10), help="Records for each false alarm.")
def main(draws: int) -> None:
    """Write the table on stored baselines into docs/statistics.md."""
    alarms = [said(drift, days, 0.0, draws, 7) for drift in DRIFTS_PCT for days in BASELINES.values()]
    few = max(10, draws // 5)
    seen = []
    for effect in EFFECTS_PCT:
        shares = [said(1.0, days, effect, few, 7).value for days in BASELINES.values()]
        seen.append([f"+{effect:g}%", *(f"{100 * share:.0f}%" for share in shares)])
    text = (
        f"{markdown(['certain after 7 processes', *BASELINES], seen)}\n\n"
        f"With drifts of {DRIFTS_PCT[0]:g} to {DRIFTS_PCT[-1]:g}%, at most "
        f"{100 * max(one.value for one in alarms):.1f}% of {draws} comparisons of unchanged code got a direction. "
        f"Where days do not drift, a change is certain from {certain_from('2.12.0', 1):.1f}% on against a baseline of "
        f"one day, from {certain_from('2.12.0', 5):.1f}% on against one of five days, and from "
        f"{certain_from('2.13.0', 1):.0f}% on against one of another environment."
    )
    put(ROOT / "docs" / "statistics.md", "stored", text)
    click.echo(text)


if __name__ == "__main__":
    main()
