"""Things that are not differences between base and head: each is named, and the bad ones forbid a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelgate.bench.core import dtypes, hardware
from kernelgate.bench.record import Case, Device, TimedProcess
from kernelgate.ci.document import formatting
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.policy.policy import Policy, ValidityLimits


@dataclass(frozen=True)
class Finding:
    """Something that is not a difference between base and head: drift, throttling, a bimodal side, …"""

    code: str
    """A stable key, such as `throttled`."""
    message: str
    """One sentence for people, with the numbers that show it."""
    disqualifies: bool
    """True where no verdict may rest on the case; False for a warning."""


@dataclass(frozen=True)
class Moved:
    """What may have moved the estimate without being a difference: a bound in log time, and how it is said."""

    bias: float = 0.0
    findings: tuple[Finding, ...] = ()
    """The last one is about the bias, where there is one."""

    def against(self, change: float, policy: Policy) -> tuple[Finding, ...]:
        """The findings; the one about the bias forbids a verdict where it could be most of the change, and matters.

        Otherwise it widens the interval by what was measured of it, and the verdict follows from that.
        """
        margin = math.log1p(policy.gates.margin_pct / 100)
        if not self.findings or self.bias <= max(margin, abs(change) / 2):
            return self.findings
        return (*self.findings[:-1], replace(self.findings[-1], disqualifies=True))


LEFT_OUT, SHARED = ", which are left out", ", base and head alike"
LARGEST_LOG = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))


def throttled(process: TimedProcess, limits: ValidityLimits) -> tuple[str, ...]:
    """The reasons for which the device was slowed down for much of this process, by more than a clock's step."""
    if _at_full_clock(process, limits):
        return ()
    return tuple(reason for reason, share in _slowed(process, limits) if share >= limits.throttled_share)


def _at_full_clock(process: TimedProcess, limits: ValidityLimits) -> bool:
    """The clock is known to have stayed where it belongs, whatever the driver's reasons: a power limit takes a step."""
    seen = process.telemetry
    if seen is None or seen.sm_mhz is None or seen.max_sm_mhz is None:
        return False
    return seen.sm_mhz * (1 + limits.clock_change_pct / 100) >= seen.max_sm_mhz


def _slowed(process: TimedProcess, limits: ValidityLimits) -> Iterator[tuple[str, float]]:
    """Each reason that is no harmless one, and for which share of the process it held."""
    if process.telemetry:
        shares = process.telemetry.throttle_shares
        for reason in process.telemetry.throttle_reasons:
            if reason not in limits.harmless_throttle_reasons:
                yield reason, shares.get(reason, 1.0)


def of_telemetry(
    processes: Sequence[TimedProcess], limits: ValidityLimits, interleaved: bool, slowed_are: str = LEFT_OUT
) -> Iterator[Finding]:
    """What the device's own readings say: throttling, clocks, temperature.

    `slowed_are`: what is to be said of throttled processes. Where both sides share the clock, they are not left out.
    """
    slowed = [(process, reasons) for process in processes if (reasons := throttled(process, limits))]
    if slowed:
        why = f"{_named([reasons for _, reasons in slowed])}{_clocks([process for process, _ in slowed])}"
        where = f"in {len(slowed)} of {len(processes)} processes{slowed_are}"
        yield Finding("throttled", f"the GPU was throttled ({why}) {where}", disqualifies=False)
    briefly = [
        reasons
        for process in processes
        if not throttled(process, limits) and (reasons := tuple(reason for reason, _ in _slowed(process, limits)))
    ]
    if briefly:
        where = f"for a moment or by a step of the clock in {len(briefly)} of {len(processes)} processes"
        yield Finding("throttled_briefly", f"the GPU was throttled ({_named(briefly)}) {where}", disqualifies=False)
    readings = [process.telemetry for process in processes if process.telemetry]
    clocks = [reading.sm_mhz for reading in readings if reading.sm_mhz]
    if clocks and max(clocks) > min(clocks) * (1 + limits.clock_change_pct / 100):
        apart = "" if interleaved else ", and base and head were not timed in the same rounds"
        yield Finding(
            "clock_change",
            f"the SM clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz from process to process{apart}",
            disqualifies=not interleaved,
        )
    hottest = max(
        (reading.temperature_c for reading in readings if reading.temperature_c is not None), default=-math.inf
    )
    if hottest > limits.warn_temperature_c:
        yield Finding("hot", f"the GPU reached {hottest:.0f} °C (warned above {limits.warn_temperature_c:g} °C)", False)


def _clocks(processes: Sequence[TimedProcess]) -> str:
    """The clocks of these processes in words; empty where they are not known."""
    readings = [process.telemetry for process in processes if process.telemetry]
    clocks = sorted(reading.sm_mhz for reading in readings if reading.sm_mhz)
    most = max((reading.max_sm_mhz or 0 for reading in readings), default=0)
    if not clocks:
        return ""
    between = " to ".join(dict.fromkeys(f"{clock:.0f}" for clock in (clocks[0], clocks[-1])))
    return f", {between}{f' of {most:.0f}' if most else ''} MHz"


def _named(processes: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(sorted({reason for reasons in processes for reason in reasons}))


def clocks_apart(
    base: Sequence[TimedProcess], head: Sequence[TimedProcess], limits: ValidityLimits
) -> Iterator[Finding]:
    """The two sides of a comparison between processes ran at different clocks."""
    sides = [
        [process.telemetry.sm_mhz for process in side if process.telemetry and process.telemetry.sm_mhz]
        for side in (base, head)
    ]
    if not all(sides):
        return
    was, now = (float(np.median(side)) for side in sides)
    if max(was, now) > min(was, now) * (1 + limits.clock_change_pct / 100):
        yield Finding("clock_change", f"the SM clock was {was:.0f} MHz for the baseline and {now:.0f} MHz now", True)


Sides = Mapping[str, Sequence[Array]]
"""Times in microseconds by process, of each side by its name."""


def of_samples(sides: Sides, paired: bool, coarse: bool, limits: ValidityLimits) -> Iterator[Finding]:
    """What the times themselves show: too coarse a clock, drift, noise. modes.py has modes.

    Where rounds are `paired`, the sides are `base` and `head`, and what both do together is no more than said.
    `coarse`: the clock's steps alone could take a change across the margin.
    """
    yield from _few_values(sides, coarse, limits)
    yield from _drift(sides, paired, limits)
    yield from _noise(sides, limits)


def _few_values(sides: Sides, coarse: bool, limits: ValidityLimits) -> Iterator[Finding]:
    for side, processes in sides.items():
        times = np.sort(np.concatenate(processes))
        cut = len(times) // 20
        different = len(np.unique(times[cut : len(times) - cut]))
        if different < limits.distinct_values:
            values = "value" if different == 1 else "values"
            only = f"nine tenths of the {side}'s {len(times)} times take only {different} {values}"
            yield Finding("few_values", f"{only}: the clock is {'too ' if coarse else ''}coarse", coarse)


def _ratios(sides: Sides) -> list[Array]:
    return [head / base for base, head in zip(sides["base"], sides["head"], strict=True)]


def _drift(sides: Sides, paired: bool, limits: ValidityLimits) -> Iterator[Finding]:
    allowed = math.log1p(limits.drift_pct / 100)

    def first_drift(processes: Sequence[Array]) -> tuple[int, float] | None:
        for index, samples in enumerate(processes, 1):
            times = np.log(samples)
            change = stats.drift(times)
            if abs(change) > allowed and stats.drift_p(times) < limits.drift_p:
                return index, change
        return None

    if paired and (moved := first_drift(_ratios(sides))):
        process, change = moved
        yield Finding(
            "drift",
            f"head moved by {formatting.percent(percent(change), sign=True)} against base within process {process}",
            True,
        )
        return
    tail = ", base and head together" if paired else ""
    for side, processes in sides.items():
        if moved := first_drift(processes):
            process, change = moved
            drift = formatting.percent(percent(change), sign=True)
            yield Finding("drift", f"the {side} drifted by {drift} within process {process}{tail}", not paired)


def _noise(sides: Sides, limits: ValidityLimits) -> Iterator[Finding]:
    worst = max(100 * float(samples.std() / samples.mean()) for processes in sides.values() for samples in processes)
    if worst > limits.warn_cv_pct:
        yield Finding("noisy", f"single times vary by {worst:.0f}% (CV; warned above {limits.warn_cv_pct:g}%)", False)


def below_floor(times_us: dict[str, float], case: Case, device: Device, limits: ValidityLimits) -> Iterator[Finding]:
    """A median time that the device's arithmetic and bandwidth do not allow: the work was not done."""
    floors = floors_us(case, device)
    if not floors:
        return
    # The device may be the fastest of those that it can be, or one that the table does not have yet.
    limit, floor = min(floors, key=lambda item: item[1])
    if hardware.candidates(device.name, device.compute_capability) != (hardware.of_device(device.name),):
        floor /= limits.unknown_device
    for side, time in times_us.items():
        if time < floor * (1 - limits.floor_tolerance):
            message = f"the {side} takes {time:.4g} µs; the {limit} allows no less than {floor:.4g} µs"
            yield Finding("below_floor", message, True)


def floors_us(case: Case, device: Device) -> tuple[tuple[str, float], ...]:
    """What limits the case on each GPU that the device may be, and the time that it takes at least; none where either
    the GPU or the work is not known."""
    work = case.work
    if work is None or not (work.flops or work.bytes):
        return ()
    found = []
    for gpu in hardware.candidates(device.name, device.compute_capability):
        cached = (work.bytes or 0) < gpu.l2_bytes
        floors = {
            "arithmetic": 1e6 * (work.flops or 0) / _peak(gpu, case.axes.get("dtype")),
            # What fits in the L2 cache need not cross the memory bus.
            "memory bandwidth": 0.0 if cached else 1e6 * (work.bytes or 0) / gpu.bytes_per_s,
        }
        limit, floor = max(floors.items(), key=lambda item: item[1])
        found.append((f"{limit} of the {gpu.name}", floor))
    return tuple(found)


def beyond_reference(
    times_us: dict[str, float], reference_us: float | None, limits: ValidityLimits
) -> Iterator[Finding]:
    """A head so much faster than base and reference that it can hardly have done the same work.

    Faster than one of them says little: an oracle may be a loop, and a slow base may have been put right.
    """
    if reference_us is None or not {"base", "head"} <= times_us.keys():
        return
    head, usual = times_us["head"], min(times_us["base"], reference_us)
    if head * limits.beyond_reference < usual:
        times = f"{head:.4g} µs, base and reference at least {usual:.4g} µs"
        message = f"the head takes {times}: more than {limits.beyond_reference:g} times as fast is not plausible"
        yield Finding("beyond_reference", message, True)


def _peak(gpu: hardware.GpuModel, dtype: object) -> float:
    """FLOP/s that no kernel of this dtype passes. At least float16's: float32 may be computed in fewer bits."""
    family = (dtypes.canonical(str(dtype)) or "fp16").split("_")[0]
    return max(gpu.flops["fp16"], gpu.flops.get(family, 0.0))
