"""Things that are not differences between base and head: each is named, and the bad ones forbid a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgate.bench.record import Case, Device, Launch, Work
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.policy import ValidityLimits
from kernelgate.ci.judge.stats import Array


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
    # A word of the device's name: float16 FLOP/s of dense matrix products, memory bytes/s, bytes of L2 cache; of the
    # largest variant in NVIDIA's data sheets.
    "H200": (989e12, 4.8e12, 63e6),
    "H100": (989e12, 3.35e12, 53e6),
    "A100": (312e12, 2.04e12, 42e6),
    "L40S": (362e12, 0.864e12, 101e6),
    "L4": (121e12, 0.3e12, 51e6),
}

LARGEST_LOG = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))


def throttled(launch: Launch, limits: ValidityLimits) -> tuple[str, ...]:
    """The reasons for which the device was slowed down through much of this launch, and by more than a clock's step."""
    if _at_full_clock(launch, limits):
        return ()
    return tuple(reason for reason, share in _slowed(launch, limits) if share >= limits.throttled_share)


def _at_full_clock(launch: Launch, limits: ValidityLimits) -> bool:
    """The clock is known to have stayed where it belongs, whatever the driver's reasons: a power limit takes a step."""
    seen = launch.telemetry
    if seen is None or seen.sm_mhz is None or seen.max_sm_mhz is None:
        return False
    return seen.sm_mhz * (1 + limits.clock_change_pct / 100) >= seen.max_sm_mhz


def _slowed(launch: Launch, limits: ValidityLimits) -> Iterator[tuple[str, float]]:
    """Each reason that is no harmless one, and for which share of the launch it held."""
    if launch.telemetry:
        shares = launch.telemetry.throttle_shares
        for reason in launch.telemetry.throttle_reasons:
            if reason not in limits.harmless_throttle_reasons:
                yield reason, shares.get(reason, 1.0)


def of_telemetry(launches: Sequence[Launch], limits: ValidityLimits, interleaved: bool) -> Iterator[Finding]:
    """What the device's own readings say: throttling, clocks, temperature."""
    left_out = [reasons for launch in launches if (reasons := throttled(launch, limits))]
    if left_out:
        where = f"in {len(left_out)} of {len(launches)} launches, which are left out"
        yield Finding("throttled", f"the GPU was throttled ({_named(left_out)}) {where}", disqualifies=False)
    briefly = [
        reasons
        for launch in launches
        if not throttled(launch, limits) and (reasons := tuple(reason for reason, _ in _slowed(launch, limits)))
    ]
    if briefly:
        where = f"for a moment or by a step of the clock in {len(briefly)} of {len(launches)} launches"
        yield Finding("throttled_briefly", f"the GPU was throttled ({_named(briefly)}) {where}", disqualifies=False)
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


def _named(launches: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(sorted({reason for reasons in launches for reason in reasons}))


def clocks_apart(base: Sequence[Launch], head: Sequence[Launch], limits: ValidityLimits) -> Iterator[Finding]:
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


Sides = Mapping[str, Sequence[Array]]
"""Times in microseconds by launch, of each side by its name."""


def of_samples(sides: Sides, paired: bool, coarse: bool, limits: ValidityLimits) -> Iterator[Finding]:
    """What the times themselves show: too coarse a clock, modes, drift, noise.

    Where rounds are `paired`, the sides are `base` and `head`, and what both do together is no more than said.
    `coarse`: the clock's steps alone could take a change across the margin.
    """
    yield from _few_values(sides, coarse, limits)
    yield from _bimodal(sides, paired, limits)
    yield from _drift(sides, paired, limits)
    yield from _noise(sides, limits)


def _few_values(sides: Sides, coarse: bool, limits: ValidityLimits) -> Iterator[Finding]:
    for side, launches in sides.items():
        times = np.sort(np.concatenate(launches))
        cut = len(times) // 20
        different = len(np.unique(times[cut : len(times) - cut]))
        if different < limits.distinct_values:
            values = "value" if different == 1 else "values"
            only = f"nine tenths of the {side}'s {len(times)} times take only {different} {values}"
            yield Finding("few_values", f"{only}: the clock is {'too ' if coarse else ''}coarse", coarse)


def _bimodal(sides: Sides, paired: bool, limits: ValidityLimits) -> Iterator[Finding]:
    apart = math.log1p(limits.mode_distance_pct / 100)
    for side, launches in sides.items():
        found = stats.modes(np.log(np.concatenate(launches)))
        distance = found.high - found.low
        split = found.smaller_share >= limits.mode_share and found.middle_share <= limits.mode_overlap
        if distance <= apart or not split:
            continue
        low, high = math.exp(found.low), math.exp(found.high)
        shares = [float(np.mean(np.log(samples) > (found.low + found.high) / 2)) for samples in launches]
        if all(min(share, 1 - share) < limits.mode_share for share in shares):
            # Each launch keeps to one mode: whether the launches agree on the change is asked elsewhere.
            yield Finding("bimodal", f"the {side} sits at {low:.4g} or {high:.4g} µs from launch to launch", False)
            continue
        # Where both sides change mode in the same rounds, the rounds' ratios do not show it.
        together = paired and _reach(_ratios(sides), limits.mode_share) < limits.mode_together * distance
        tail = ", base and head together" if together else ""
        yield Finding("bimodal", f"the {side} jumps between {low:.4g} and {high:.4g} µs{tail}", not together)


def _ratios(sides: Sides) -> list[Array]:
    return [head / base for base, head in zip(sides["base"], sides["head"], strict=True)]


def _reach(ratios: Sequence[Array], tail: float) -> float:
    """From the lower to the upper `tail` of the rounds' log ratios."""
    low, high = np.quantile(np.log(np.concatenate(ratios)), (tail, 1 - tail))
    return float(high - low)


def _drift(sides: Sides, paired: bool, limits: ValidityLimits) -> Iterator[Finding]:
    allowed = math.log1p(limits.drift_pct / 100)

    def first_drift(launches: Sequence[Array]) -> tuple[int, float] | None:
        moves = ((index, *stats.drift(np.log(samples))) for index, samples in enumerate(launches, 1))
        return next(
            ((index, change) for index, change, p in moves if abs(change) > allowed and p < limits.drift_p), None
        )

    if paired and (moved := first_drift(_ratios(sides))):
        launch, change = moved
        yield Finding("drift", f"head moved by {percent(change):+.1f}% against base within launch {launch}", True)
        return
    for side, launches in sides.items():
        if moved := first_drift(launches):
            launch, change = moved
            tail = ", base and head together" if paired else ""
            yield Finding(
                "drift", f"the {side} drifted by {percent(change):+.1f}% within launch {launch}{tail}", not paired
            )


def _noise(sides: Sides, limits: ValidityLimits) -> Iterator[Finding]:
    worst = max(100 * float(samples.std() / samples.mean()) for launches in sides.values() for samples in launches)
    if worst > limits.warn_cv_pct:
        yield Finding("noisy", f"single times vary by {worst:.0f}% (CV; warned above {limits.warn_cv_pct:g}%)", False)


def below_floor(
    times_us: dict[str, float], work: Work | None, device: Device, limits: ValidityLimits
) -> Iterator[Finding]:
    """A median time that the device's arithmetic and bandwidth do not allow: the work was not done."""
    name = next((known for known in PEAKS if known in (device.name or "").replace("-", " ").split()), None)
    if work is None or name is None:
        return
    flops_per_s, bytes_per_s, l2_bytes = PEAKS[name]
    cached = (work.bytes or 0) < l2_bytes
    floors = {
        "arithmetic": 1e6 * (work.flops or 0) / flops_per_s,
        # What fits in the L2 cache need not cross the memory bus.
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
