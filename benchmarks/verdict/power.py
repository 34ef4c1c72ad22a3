"""Records as a power-capped GPU gives them, made up with known truth.

An L4 draws its 72 W under any tensor load. A controller follows the power of whatever runs with a time constant of 20
to 200 ms, so that the clock wanders between 1.2 and 2.0 GHz for both sides alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.verdict import records
from benchmarks.verdict.records import CASE, POLICY, PROCESS, SEED, TIMING, Count, Generator, stopped
from kernelgate.bench.record import Process, RunRecord, Side, Telemetry, Timing

ROUNDS = 100
CALL_US, REPEATS, CLOCK_STEP_US = 100.0, 16, 1.0
NOISE, SPREAD = 0.003, 0.0003
"""Of one sample, and of the change, between processes."""
LOWEST_MHZ, HIGHEST_MHZ, STEP_MHZ = 1200.0, 2040.0, 15.0
WANDERS_TO_MHZ = 2000.0
REFERENCE_EVERY = 4


@dataclass(frozen=True)
class Gpu:
    """A GPU at its power limit, and what the two kernels do to it."""

    change: float = 0.0
    """Of the head's work."""
    wander: float = 0.1
    """Standard deviation of the clock's logarithm, in the long run."""
    head_bound: float = 1.0
    """How much of the head's time goes as the clock: 1 where arithmetic limits it, 0 where memory does."""
    droop: float = 0.0
    """How far the head's samples themselves are at a lower clock."""
    carry_over: float = 0.0
    """How much slower whatever runs is right after the head."""
    poisoned: tuple[int, ...] = ()
    """The processes in which it is; empty: all."""
    clocks: bool = True
    """Whether the record has the clock and the predecessor of each sample."""


def record(rng: Generator, gpu: Gpu, processes: int) -> RunRecord:
    """Not validated, because here speed matters."""
    made = tuple(_process(rng, gpu, number) for number in range(1, processes + 1))
    return RunRecord().model_copy(update={"cases": (CASE,), "processes": made})


def _process(rng: Generator, gpu: Gpu, number: int) -> Process:
    order = [side for place in range(ROUNDS) for side in _round(rng, place)]
    sides = np.array(order)
    before: list[Side | None] = [None, *order[:-1]]
    after_head = np.array([was == "head" for was in before])
    clock = _clock(rng, gpu, len(sides))
    own = np.where(sides == "head", clock * math.exp(-gpu.droop), clock)
    bound = np.where(sides == "head", gpu.head_bound, 1.0)
    work = CALL_US * np.where(sides == "head", (1 + gpu.change) * math.exp(rng.normal(0, SPREAD)), 1.0)
    work = np.where(sides == "reference", 1.3 * work, work)
    poisoned = gpu.carry_over if not gpu.poisoned or number in gpu.poisoned else 0.0
    time = work * (bound * HIGHEST_MHZ / own + 1 - bound) * (1 + poisoned * after_head)
    time *= np.exp(rng.normal(0, NOISE, len(sides)))
    seen = np.round(REPEATS * time / CLOCK_STEP_US) * CLOCK_STEP_US / REPEATS
    measured = own * np.exp(rng.normal(0, CLOCK_STEP_US / (REPEATS * time)))
    return _recorded(number, order, seen, measured, gpu.clocks)


def _round(rng: Generator, place: int) -> list[Side]:
    sides: list[Side] = ["base", "head", "reference"] if place % REFERENCE_EVERY == 0 else ["base", "head"]
    return [sides[at] for at in rng.permutation(len(sides))]


def _clock(rng: Generator, gpu: Gpu, samples: int) -> np.ndarray:
    """The clock of each sample: it wanders at the controller's pace."""
    pace_ms = 20 * 10 ** rng.uniform(0, 1)
    rate = min(1.0, REPEATS * CALL_US * 1.25e-3 / pace_ms)
    middle = math.log(rng.uniform(1.1 * LOWEST_MHZ, 0.9 * WANDERS_TO_MHZ))
    kicks = rng.normal(0, gpu.wander * math.sqrt(2 * rate), samples)
    found, wandered = [], rng.normal(0, gpu.wander)
    for kick in kicks:
        wandered += -rate * wandered + kick
        found.append(math.exp(middle + wandered))
    return np.clip(np.round(np.array(found) / STEP_MHZ) * STEP_MHZ, LOWEST_MHZ, WANDERS_TO_MHZ)


def _recorded(number: int, order: Sequence[Side], times: np.ndarray, clocks: np.ndarray, known: bool) -> Process:
    sides: tuple[Side, ...] = ("base", "head", "reference")
    at = {side: [place for place, one in enumerate(order) if one == side] for side in sides}
    read = Telemetry(
        sm_mhz=float(np.median(clocks)),
        max_sm_mhz=HIGHEST_MHZ,
        power_w=72.0,
        throttle_reasons=("sw_power_cap",),
        throttle_shares={"sw_power_cap": 1.0},
    )
    parts: dict[str, Any] = {"samples_us": {side: tuple(times[at[side]].tolist()) for side in sides}, "telemetry": read}
    if known:
        parts["previous"] = {side: tuple(order[place - 1] if place else None for place in at[side]) for side in sides}
        parts["sm_mhz"] = {side: tuple(clocks[at[side]].tolist()) for side in sides}
    timing = Timing.model_construct(**{**TIMING, **parts})
    return Process.model_construct(**{**PROCESS, "id": str(number), "timings": (timing,)})


def counted(gpu: Gpu, draws: int) -> Count:
    """Records drawn and judged, each stopped as `kernelgate bench` stops."""
    rng = np.random.default_rng(SEED)
    return records.counted(stopped(record(rng, gpu, POLICY.processes.limit)) for _ in range(draws))
