"""Things that are not differences between base and head: each is named, and the bad ones forbid a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kernelgate.bench.core import dtypes, hardware
from kernelgate.bench.record import Case, Device, TimedProcess
from kernelgate.ci.document import formatting
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.policy.policy import Gates

WARN_CV_PCT: Final = 12.0
"""A warning only: medians remain valid even if single samples are 100 times too long."""
WARN_TEMPERATURE_C: Final = 80.0
HARMLESS_THROTTLE_REASONS: Final = ("gpu_idle", "applications_clocks_setting", "display_clock_setting")
"""NVML's reasons for a clock that is as configured."""
THROTTLED_SHARE: Final = 0.5
"""A process was throttled if another reason was active for this share of it and lowered the clock by more than
CLOCK_CHANGE_PCT, or by an unknown amount. Where both sides share the clock round by round, that is a warning; where
they do not, the process is excluded."""
CLOCK_CHANGE_PCT: Final = 2.0
"""SM clocks further apart than this are different clocks: a warning, or no verdict if the two sides may have had
different ones."""
DISTINCT_VALUES: Final = 3
"""A side with fewer different times shows the clock's step rather than the kernel's time: a warning, or no verdict if
half a step on either side is more than the margin."""
DRIFT_PCT: Final = 1.0
"""Drift: the last third of a process differs by this much from its first third, and chance explains that with a
probability below DRIFT_P (Mann-Whitney). A warning, or no verdict if base and head do not drift together."""
DRIFT_P: Final = 1e-6
FLOOR_TOLERANCE: Final = 0.05
"""Times that are lower, by more than this, than the device's arithmetic or memory bandwidth allow are rejected."""
UNKNOWN_DEVICE: Final = 2.0
"""A device that kernelgate does not know may be so many times as fast as the fastest known one of its compute
capability."""
BEYOND_REFERENCE: Final = 100.0
"""A head that is more than so many times as fast as base and reference is rejected: it can hardly have done their
work."""


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

    def against(self, change: float, gates: Gates) -> tuple[Finding, ...]:
        """The findings; the one about the bias forbids a verdict where it could be most of the change, and matters.

        Otherwise it widens the interval by what was measured of it, and the verdict follows from that.
        """
        margin = math.log1p(gates.margin_pct / 100)
        if not self.findings or self.bias <= max(margin, abs(change) / 2):
            return self.findings
        return (*self.findings[:-1], replace(self.findings[-1], disqualifies=True))


LEFT_OUT, SHARED = ", which are left out", ", base and head alike"
LARGEST_LOG: Final = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))


def throttled(process: TimedProcess) -> tuple[str, ...]:
    """The reasons for which the device was slowed down for much of this process, by more than a clock's step."""
    if _at_full_clock(process):
        return ()
    return tuple(reason for reason, share in _slowed(process) if share >= THROTTLED_SHARE)


def _at_full_clock(process: TimedProcess) -> bool:
    """The clock is known to have stayed where it belongs, whatever the driver's reasons: a power limit takes a step."""
    seen = process.telemetry
    if seen is None or seen.sm_mhz is None or seen.max_sm_mhz is None:
        return False
    return seen.sm_mhz * (1 + CLOCK_CHANGE_PCT / 100) >= seen.max_sm_mhz


def _slowed(process: TimedProcess) -> Iterator[tuple[str, float]]:
    """Each reason that is no harmless one, and for which share of the process it held."""
    if process.telemetry:
        shares = process.telemetry.throttle_shares
        for reason in process.telemetry.throttle_reasons:
            if reason not in HARMLESS_THROTTLE_REASONS:
                yield reason, shares.get(reason, 1.0)


def of_telemetry(processes: Sequence[TimedProcess], interleaved: bool, slowed_are: str = LEFT_OUT) -> Iterator[Finding]:
    """What the device's own readings say: throttling, clocks, temperature.

    `slowed_are`: what is to be said of throttled processes. Where both sides share the clock, they are not left out.
    """
    slowed = [(process, reasons) for process in processes if (reasons := throttled(process))]
    if slowed:
        why = f"{_named([reasons for _, reasons in slowed])}{_clocks([process for process, _ in slowed])}"
        where = f"in {len(slowed)} of {len(processes)} processes{slowed_are}"
        yield Finding("throttled", f"the GPU was throttled ({why}) {where}", disqualifies=False)
    briefly = [
        reasons
        for process in processes
        if not throttled(process) and (reasons := tuple(reason for reason, _ in _slowed(process)))
    ]
    if briefly:
        where = f"for a moment or by a step of the clock in {len(briefly)} of {len(processes)} processes"
        yield Finding("throttled_briefly", f"the GPU was throttled ({_named(briefly)}) {where}", disqualifies=False)
    readings = [process.telemetry for process in processes if process.telemetry]
    clocks = [reading.sm_mhz for reading in readings if reading.sm_mhz]
    if clocks and max(clocks) > min(clocks) * (1 + CLOCK_CHANGE_PCT / 100):
        apart = "" if interleaved else ", and base and head were not timed in the same rounds"
        yield Finding(
            "clock_change",
            f"the SM clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz from process to process{apart}",
            disqualifies=not interleaved,
        )
    hottest = max(
        (reading.temperature_c for reading in readings if reading.temperature_c is not None), default=-math.inf
    )
    if hottest > WARN_TEMPERATURE_C:
        yield Finding("hot", f"the GPU reached {hottest:.0f} °C (warned above {WARN_TEMPERATURE_C:g} °C)", False)


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


def clocks_apart(base: Sequence[TimedProcess], head: Sequence[TimedProcess]) -> Iterator[Finding]:
    """The two sides of a comparison between processes ran at different clocks."""
    sides = [
        [process.telemetry.sm_mhz for process in side if process.telemetry and process.telemetry.sm_mhz]
        for side in (base, head)
    ]
    if not all(sides):
        return
    was, now = (float(np.median(side)) for side in sides)
    if max(was, now) > min(was, now) * (1 + CLOCK_CHANGE_PCT / 100):
        yield Finding("clock_change", f"the SM clock was {was:.0f} MHz for the baseline and {now:.0f} MHz now", True)


Sides = Mapping[str, Sequence[Array]]
"""Times in microseconds by process, of each side by its name."""


def of_samples(sides: Sides, paired: bool, coarse: bool) -> Iterator[Finding]:
    """What the times themselves show: too coarse a clock, drift, noise. modes.py has modes.

    Where rounds are `paired`, the sides are `base` and `head`, and what both do together is no more than said.
    `coarse`: the clock's steps alone could take a change across the margin.
    """
    yield from _few_values(sides, coarse)
    yield from _drift(sides, paired)
    yield from _noise(sides)


def _few_values(sides: Sides, coarse: bool) -> Iterator[Finding]:
    for side, processes in sides.items():
        times = np.sort(np.concatenate(processes))
        cut = len(times) // 20
        different = len(np.unique(times[cut : len(times) - cut]))
        if different < DISTINCT_VALUES:
            values = "value" if different == 1 else "values"
            only = f"nine tenths of the {side}'s {len(times)} times take only {different} {values}"
            yield Finding("few_values", f"{only}: the clock is {'too ' if coarse else ''}coarse", coarse)


def _ratios(sides: Sides) -> list[Array]:
    return [head / base for base, head in zip(sides["base"], sides["head"], strict=True)]


def _drift(sides: Sides, paired: bool) -> Iterator[Finding]:
    allowed = math.log1p(DRIFT_PCT / 100)

    def first_drift(processes: Sequence[Array]) -> tuple[int, float] | None:
        for index, samples in enumerate(processes, 1):
            times = np.log(samples)
            change = stats.drift(times)
            if abs(change) > allowed and stats.drift_p(times) < DRIFT_P:
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


def _noise(sides: Sides) -> Iterator[Finding]:
    worst = max(100 * float(samples.std() / samples.mean()) for processes in sides.values() for samples in processes)
    if worst > WARN_CV_PCT:
        yield Finding("noisy", f"single times vary by {worst:.0f}% (CV; warned above {WARN_CV_PCT:g}%)", False)


def below_floor(times_us: dict[str, float], case: Case, device: Device) -> Iterator[Finding]:
    """A median time that the device's arithmetic and bandwidth do not allow: the work was not done."""
    floors = floors_us(case, device)
    if not floors:
        return
    # The device may be the fastest of those that it can be, or one that the table does not have yet.
    limit, floor = min(floors, key=lambda item: item[1])
    if hardware.candidates(device.name, device.compute_capability) != (hardware.of_device(device.name),):
        floor /= UNKNOWN_DEVICE
    for side, time in times_us.items():
        if time < floor * (1 - FLOOR_TOLERANCE):
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


def beyond_reference(times_us: dict[str, float], reference_us: float | None) -> Iterator[Finding]:
    """A head so much faster than base and reference that it can hardly have done the same work.

    Faster than one of them says little: an oracle may be a loop, and a slow base may have been put right.
    """
    if reference_us is None or not {"base", "head"} <= times_us.keys():
        return
    head, usual = times_us["head"], min(times_us["base"], reference_us)
    if head * BEYOND_REFERENCE < usual:
        times = f"{head:.4g} µs, base and reference at least {usual:.4g} µs"
        message = f"the head takes {times}: more than {BEYOND_REFERENCE:g} times as fast is not plausible"
        yield Finding("beyond_reference", message, True)


def _peak(gpu: hardware.GpuModel, dtype: object) -> float:
    """FLOP/s that no kernel of this dtype passes. At least float16's: float32 may be computed in fewer bits."""
    family = (dtypes.canonical(str(dtype)) or "fp16").split("_")[0]
    return max(gpu.flops["fp16"], gpu.flops.get(family, 0.0))
