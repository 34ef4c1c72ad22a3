"""Things that are not differences between base and head: each is named, and the bad ones forbid a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.record import Case, Device, Launch, Work
from ci import stats
from ci.policy import Limits
from ci.stats import Array


@dataclass(frozen=True)
class Finding:
    """Something that is not a difference between base and head: drift, throttling, a bimodal side, …"""

    code: str
    """A stable key, such as `throttled`."""
    message: str
    """One sentence for people, with the numbers that show it."""
    disqualifies: bool
    """True where no verdict may rest on the case; False for a warning."""


PEAKS = {
    # A word of the device's name: (dense float16 tensor FLOP/s, memory bytes/s), the largest variant's data sheet.
    "H200": (989e12, 4.8e12),
    "H100": (989e12, 3.35e12),
    "A100": (312e12, 2.04e12),
    "L40S": (362e12, 0.864e12),
    "L4": (121e12, 0.3e12),
}
LAST_LEVEL_CACHES = {"H200": 60e6, "H100": 50e6, "A100": 40e6, "L40S": 96e6, "L4": 48e6}


LARGEST_LOG = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))


def throttled(launch: Launch, limits: Limits) -> tuple[str, ...]:
    """The reasons for which the device was slowed down in this launch."""
    reasons = launch.telemetry.throttle_reasons if launch.telemetry else ()
    return tuple(reason for reason in reasons if reason not in limits.harmless_throttle_reasons)


def of_telemetry(launches: Sequence[Launch], limits: Limits, interleaved: bool) -> Iterator[Finding]:
    """What the device's own readings say: throttling, clocks, temperature."""
    slowed = {index: reasons for index, launch in enumerate(launches, 1) if (reasons := throttled(launch, limits))}
    if slowed:
        named = ", ".join(sorted({reason for found in slowed.values() for reason in found}))
        yield Finding(
            "throttled",
            f"the GPU was throttled ({named}) in {len(slowed)} of {len(launches)} launches, which are left out",
            disqualifies=False,
        )
    readings = [launch.telemetry for launch in launches if launch.telemetry]
    clocks = [reading.sm_mhz for reading in readings if reading.sm_mhz]
    if clocks and max(clocks) > min(clocks) * (1 + limits.clock_change_pct / 100):
        apart = "" if interleaved else ", and base and head were not timed in the same rounds"
        yield Finding(
            "clock_change",
            f"the SM clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz from launch to launch{apart}",
            disqualifies=not interleaved,
        )
    hottest = max(
        (reading.temperature_c for reading in readings if reading.temperature_c is not None), default=-math.inf
    )
    if hottest > limits.warn_temperature_c:
        yield Finding("hot", f"the GPU reached {hottest:.0f} °C (warned above {limits.warn_temperature_c:g} °C)", False)


def clocks_apart(base: Sequence[Launch], head: Sequence[Launch], limits: Limits) -> Iterator[Finding]:
    """The two sides of a comparison between processes ran at different clocks."""
    sides = [
        [launch.telemetry.sm_mhz for launch in side if launch.telemetry and launch.telemetry.sm_mhz]
        for side in (base, head)
    ]
    if not all(sides):
        return
    was, now = (float(np.median(side)) for side in sides)
    if max(was, now) > min(was, now) * (1 + limits.clock_change_pct / 100):
        yield Finding("clock_change", f"the SM clock was {was:.0f} MHz for the baseline and {now:.0f} MHz now", True)


def of_samples(base: Sequence[Array], head: Sequence[Array], paired: bool, limits: Limits) -> Iterator[Finding]:
    """What the times themselves show: too coarse a clock, modes, drift, noise. Times in microseconds, by launch."""
    yield from _few_values(base, head, limits)
    yield from _bimodal(base, head, paired, limits)
    yield from _drift(base, head, paired, limits)
    yield from _noise(base, head, limits)


def _few_values(base: Sequence[Array], head: Sequence[Array], limits: Limits) -> Iterator[Finding]:
    for side, launches in (("base", base), ("head", head)):
        times = np.sort(np.concatenate(launches))
        cut = len(times) // 20
        different = len(np.unique(times[cut : len(times) - cut]))
        if different < limits.distinct_values:
            values = "value" if different == 1 else "values"
            only = f"nine tenths of the {side}'s {len(times)} times take only {different} {values}"
            yield Finding("few_values", f"{only}: the clock is too coarse", True)


def _bimodal(base: Sequence[Array], head: Sequence[Array], paired: bool, limits: Limits) -> Iterator[Finding]:
    apart = math.log1p(limits.mode_distance_pct / 100)
    for side, launches in (("base", base), ("head", head)):
        found = stats.modes(np.log(np.concatenate(launches)))
        distance = found.high - found.low
        two = (
            distance > apart and found.smaller_share >= limits.mode_share and found.middle_share <= limits.mode_overlap
        )
        if not two:
            continue
        # Where both sides change mode in the same rounds, the rounds' ratios do not show it.
        together = paired and _reach(base, head, limits.mode_share) < 0.75 * distance
        low, high = math.exp(found.low), math.exp(found.high)
        tail = ", base and head together" if together else ""
        yield Finding("bimodal", f"the {side} jumps between {low:.4g} and {high:.4g} µs{tail}", not together)


def _reach(base: Sequence[Array], head: Sequence[Array], tail: float) -> float:
    """From the lower to the upper `tail` of the rounds' log ratios."""
    low, high = np.quantile(np.log(np.concatenate(head) / np.concatenate(base)), (tail, 1 - tail))
    return float(high - low)


def _drift(base: Sequence[Array], head: Sequence[Array], paired: bool, limits: Limits) -> Iterator[Finding]:
    allowed = math.log1p(limits.drift_pct / 100)

    def first_drift(launches: Sequence[Array]) -> tuple[int, float] | None:
        moves = ((index, *stats.drift(np.log(samples))) for index, samples in enumerate(launches, 1))
        return next(
            ((index, change) for index, change, p in moves if abs(change) > allowed and p < limits.drift_p), None
        )

    ratios = [h / b for b, h in zip(base, head, strict=True)] if paired else []
    if moved := first_drift(ratios):
        launch, change = moved
        yield Finding("drift", f"head moved by {percent(change):+.1f}% against base within launch {launch}", True)
        return
    for side, launches in (("base", base), ("head", head)):
        if moved := first_drift(launches):
            launch, change = moved
            tail = ", base and head together" if paired else ""
            yield Finding(
                "drift", f"the {side} drifted by {percent(change):+.1f}% within launch {launch}{tail}", not paired
            )


def _noise(base: Sequence[Array], head: Sequence[Array], limits: Limits) -> Iterator[Finding]:
    worst = max(100 * float(samples.std() / samples.mean()) for samples in (*base, *head))
    if worst > limits.warn_cv_pct:
        yield Finding("noisy", f"single times vary by {worst:.0f}% (CV; warned above {limits.warn_cv_pct:g}%)", False)


def below_floor(times_us: dict[str, float], work: Work | None, device: Device, limits: Limits) -> Iterator[Finding]:
    """A median time that the device's arithmetic and bandwidth do not allow: the work was not done."""
    name = next((known for known in PEAKS if known in (device.name or "").replace("-", " ").split()), None)
    if work is None or name is None:
        return
    flops_per_s, bytes_per_s = PEAKS[name]
    cached = (work.bytes or 0) < LAST_LEVEL_CACHES[name]
    floors = {
        "arithmetic": 1e6 * (work.flops or 0) / flops_per_s,
        # What fits in the last-level cache need not cross the memory bus.
        "memory bandwidth": 0.0 if cached else 1e6 * (work.bytes or 0) / bytes_per_s,
    }
    limit, floor = max(floors.items(), key=lambda item: item[1])
    for side, time in times_us.items():
        if time < floor * (1 - limits.floor_tolerance):
            message = f"the {side} takes {time:.4g} µs; the {limit} of the {name} allows no less than {floor:.4g} µs"
            yield Finding("below_floor", message, True)


def wrong_output(case: Case) -> Iterator[Finding]:
    """The head's timed output failed its comparison with the oracle."""
    for index, launch in enumerate(case.launches, 1):
        check = launch.outputs.get("head")
        if check and not check.passed:
            error = "" if check.max_abs_error is None else f" (largest error {check.max_abs_error:.3g})"
            yield Finding("wrong_output", f"the head's timed output is wrong in launch {index}{error}", True)
            return
