"""Things that are not differences between base and head: each is named, and the bad ones forbid a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from kernelgate.bench.core import dtypes, hardware
from kernelgate.bench.record import Case, Device, FaultKind, TimedCase, TimedProcess, rates
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import location, stats
from kernelgate.ci.judge.stats import Array, Pooled
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
probability below DRIFT_P (Mann-Whitney). A warning; where most processes drift the same way and base and head do not
drift together, the interval is wider by half of it, or there is no verdict if that is beyond the margin and half of the
change, or if base and head share no rounds."""
DRIFT_P: Final = 1e-6
FLOOR_TOLERANCE: Final = 0.05
"""Times that are lower, by more than this, than the device's arithmetic or memory bandwidth allow are rejected."""
UNKNOWN_DEVICE: Final = 2.0
"""A device that kernelgate does not know may be so many times as fast as the fastest known one of its compute
capability."""
BEYOND_REFERENCE: Final = 100.0
"""A head that is more than so many times as fast as base and reference is rejected: it can hardly have done their
work."""
BIMODAL = "bimodal"
DRIFT = "drift"
MODE_DISTANCE_PCT: Final = 3.0
"""Two modes are named if they are at least this far apart, each with at least MODE_SHARE of a side's samples, and
with at most MODE_OVERLAP in the middle half between them. They matter only if base and head are in the slow mode
unequally often (probability by chance below MODE_SHARE_P). Then the interval is wider by as much, or there is no
verdict if that is beyond the margin and half of the change."""
MODE_SHARE: Final = 0.15
MODE_OVERLAP: Final = 0.05
MODE_SHARE_P: Final = 1e-3
SCATTER_PRIOR: Final = 30
"""So many processes' worth of belief that shares scatter as their rounds say: most modes are drawn round by round."""
OUTLIER_REACH: Final = 5.0
"""Robust standard deviations beyond which a sample is no part of a mode."""
MODE_MIDDLE: Final = (0.25, 0.75)
"""Two modes are apart where hardly a sample lies in the middle half of the way between them."""
CHANCE: Final = 1e-12
"""Two processes hold the same stretch of times with no more than this probability, or nothing is said of it."""
SHORTEST: Final = 12
"""Fewer times in a row say nothing: a pasted process has many more."""
FEWEST: Final = 4
"""Of the witness's few batches, so many different times: two of their ratios alike to LOCKSTEP are no coincidence."""
ASKED: Final = 1000
LOCKSTEP: Final = 1e-5
"""Head and base that keep their ratio to such a share of it, round by round, were not both timed."""


@dataclass(frozen=True)
class Finding:
    """Something that is not a difference between base and head: drift, throttling, a bimodal side, …"""

    code: str
    message: str
    """One sentence for people, with the numbers that show it."""
    disqualifies: bool
    """True where no verdict may rest on the case; False for a warning."""
    side: str = ""
    kind: FaultKind | None = None
    """What a side does whose timed calls are wrong."""


@dataclass(frozen=True)
class Moved:
    """What may have moved the estimate without being a difference: a bound in log time, and how it is said."""

    bias: float = 0.0
    findings: tuple[Finding, ...] = ()
    """The last one is about the bias, where there is one."""

    def against(self, change: float, gates: Gates) -> tuple[Finding, ...]:
        """The findings; the one about the bias forbids a verdict where it could be most of the change, and matters."""
        if not self.findings or self.bias <= max(math.log1p(gates.margin_pct / 100), abs(change) / 2):
            return self.findings
        return (*self.findings[:-1], replace(self.findings[-1], disqualifies=True))


LEFT_OUT, SHARED = ", which are left out", ", base and head alike"


def throttled(process: TimedProcess) -> tuple[str, ...]:
    """The reasons for which the device was slowed down for much of this process, by more than a clock's step."""
    clock, full = (process.telemetry.sm_mhz, process.telemetry.max_sm_mhz) if process.telemetry else (None, None)
    # Whatever the driver's reasons, a clock may be known to have stayed where it belongs: a power limit takes a step.
    if clock is not None and full is not None and clock * (1 + CLOCK_CHANGE_PCT / 100) >= full:
        return ()
    return tuple(reason for reason, share in _slowed(process).items() if share >= THROTTLED_SHARE)


def _slowed(process: TimedProcess) -> dict[str, float]:
    """Each reason that is no harmless one, and for which share of the process it held."""
    if not (read := process.telemetry):
        return {}
    reasons = (one for one in read.throttle_reasons if one not in HARMLESS_THROTTLE_REASONS)
    return {reason: read.throttle_shares.get(reason, 1.0) for reason in reasons}


def of_telemetry(processes: Sequence[TimedProcess], interleaved: bool, slowed_are: str = LEFT_OUT) -> Iterator[Finding]:
    """What the device's own readings say. `slowed_are`: what is said of throttled processes."""
    slowed = [process for process in processes if throttled(process)]
    if slowed:
        why = f"{_named(map(throttled, slowed))}{_clocks(slowed)}"
        where = f"in {len(slowed)} of {len(processes)} processes{slowed_are}"
        yield Finding("throttled", f"the GPU was throttled ({why}) {where}", disqualifies=False)
    briefly = [reasons for process in processes if not throttled(process) and (reasons := _slowed(process))]
    if briefly:
        where = f"for a moment or by a step of the clock in {len(briefly)} of {len(processes)} processes"
        yield Finding("throttled_briefly", f"the GPU was throttled ({_named(briefly)}) {where}", disqualifies=False)
    clocks = _known_clocks(processes)
    if clocks and clocks[-1] > clocks[0] * (1 + CLOCK_CHANGE_PCT / 100):
        apart = "" if interleaved else ", and base and head were not timed in the same rounds"
        between = f"the SM clock was between {clocks[0]:.0f} and {clocks[-1]:.0f} MHz from process to process"
        yield Finding("clock_change", f"{between}{apart}", disqualifies=not interleaved)
    hottest = max((one.telemetry.temperature_c or 0.0 for one in processes if one.telemetry), default=0.0)
    if hottest > WARN_TEMPERATURE_C:
        yield Finding("hot", f"the GPU reached {hottest:.0f} °C (warned above {WARN_TEMPERATURE_C:g} °C)", False)


def _known_clocks(processes: Iterable[TimedProcess]) -> list[float]:
    return sorted(one.telemetry.sm_mhz for one in processes if one.telemetry and one.telemetry.sm_mhz)


def _clocks(processes: Sequence[TimedProcess]) -> str:
    if not (clocks := _known_clocks(processes)):
        return ""
    most = max(one.telemetry.max_sm_mhz or 0 for one in processes if one.telemetry)
    between = " to ".join(dict.fromkeys(f"{clock:.0f}" for clock in (clocks[0], clocks[-1])))
    return f", {between}{f' of {most:.0f}' if most else ''} MHz"


def _named(processes: Iterable[Iterable[str]]) -> str:
    return ", ".join(sorted({reason for reasons in processes for reason in reasons}))


def clocks_apart(base: Sequence[TimedProcess], head: Sequence[TimedProcess]) -> Iterator[Finding]:
    sides = [_known_clocks(side) for side in (base, head)]
    if all(sides):
        was, now = (float(np.median(side)) for side in sides)
        if max(was, now) > min(was, now) * (1 + CLOCK_CHANGE_PCT / 100):
            clocks = f"{was:.0f} MHz for the baseline and {now:.0f} MHz now"
            yield Finding("clock_change", f"the SM clock was {clocks}", True)


Sides = Mapping[str, Sequence[Array]]


def of_samples(sides: Sides, paired: bool, coarse: bool) -> Iterator[Finding]:
    """What the times themselves show. `coarse`: the clock's steps alone could take a change across the margin."""
    for side, processes in sides.items():
        times = np.sort(np.concatenate(processes))
        cut = len(times) // 20
        different = len(np.unique(times[cut : len(times) - cut]))
        if different < DISTINCT_VALUES:
            only = f"nine tenths of the {side}'s {len(times)} times take only {formatting.counted(different, 'value')}"
            yield Finding("few_values", f"{only}: the clock is {'too ' if coarse else ''}coarse", coarse)
    if not paired:
        for side, processes in sides.items():
            if drifts := _drifts(processes):
                yield Finding(DRIFT, f"the {side} drifted by {_first(drifts)}", _trend(drifts, processes) > 0, side)
    worst = max(100 * float(samples.std() / samples.mean()) for processes in sides.values() for samples in processes)
    if worst > WARN_CV_PCT:
        yield Finding("noisy", f"single times vary by {worst:.0f}% (CV; warned above {WARN_CV_PCT:g}%)", False)


def drift_of_sides(base: Sequence[Array], head: Sequence[Array]) -> Moved:
    """The drift of sides that share their rounds. Only a trend that most processes share leaves it open which change is
    meant: that at their beginning or at their end."""
    ratios = [now / was for was, now in zip(base, head, strict=True)]
    if drifts := _drifts(ratios):
        trend = _trend(drifts, ratios)
        most = f", as do most processes: up to {formatting.percent(as_percent(trend))} of change" if trend else ""
        return Moved(trend, (Finding(DRIFT, f"head moved by {_first(drifts, ' against base')}{most}", False),))
    together = (
        Finding(DRIFT, f"the {side} drifted by {_first(drifts)}, base and head together", False, side)
        for side, processes in (("base", base), ("head", head))
        if (drifts := _drifts(processes))
    )
    return Moved(0.0, tuple(together))


def clocks_of_waiting(processes: Sequence[TimedProcess]) -> Moved:
    """How far the change may be off where calls wait for the GPU: by as much as a clock lies."""
    known = [
        (one.timing.clocks_apart_us, min(float(np.median(one.samples_us[side])) for side in ("base", "head")))
        for one in processes
        if one.timing.clocks_apart_us
    ]
    if not known:
        return Moved()
    apart_us, call_us = max(known, key=lambda one: one[0] / one[1])
    bound = math.log1p(apart_us / call_us)
    sides = f"counts {apart_us:.3g} µs more of a call of one side than of the other"
    message = (
        f"calls wait for the GPU, and its own clock {sides}: up to {formatting.percent(as_percent(bound))} of change"
    )
    return Moved(bound, (Finding("clocks_apart", message, False),))


def _first(drifts: Mapping[int, float], against: str = "") -> str:
    process, change = next(iter(drifts.items()))
    return f"{formatting.percent(as_percent(change), sign=True)}{against} within process {process}"


def _trend(drifts: Mapping[int, float], processes: Sequence[Array]) -> float:
    """How far, in log time, most processes move to either side of their middle, all of them the same way; else 0."""
    shared = 2 * len(drifts) > len(processes) and len({change > 0 for change in drifts.values()}) == 1
    return abs(float(np.mean(list(drifts.values())))) / 2 if shared else 0.0


def _drifts(processes: Sequence[Array]) -> dict[int, float]:
    """How far the last third of a process lies off the first third by their medians, of each one that drifts."""
    found = {}
    for index, samples in enumerate(processes, 1):
        third = len(samples) // 3
        first, last = np.log(samples[:third]), np.log(samples[-third:])
        change = stats.middle(np.sort(last)) - stats.middle(np.sort(first))
        if abs(change) > math.log1p(DRIFT_PCT / 100) and stats.mann_whitney_p(first, last) < DRIFT_P:
            found[index] = change
    return found


# ---- times that no such device gives ---------------------------------------------------------------------------------


def implausible(sides: Sides, reference: Sequence[Array], case: Case, device: Device) -> Iterator[Finding]:
    """Typical times of which neither can have done the work."""
    typical = {side: us for side, processes in sides.items() if (us := rates.typical_us(processes)) is not None}
    if floors := floors_us(case, device):
        # The device may be the fastest of those that it can be, or one that the table does not have yet.
        limit, floor = min(floors, key=lambda item: item[1])
        if hardware.candidates(device.name, device.compute_capability) != (hardware.of_device(device.name),):
            floor /= UNKNOWN_DEVICE
        for side, time in typical.items():
            if time < floor * (1 - FLOOR_TOLERANCE):
                message = f"the {side} takes {time:.4g} µs; the {limit} allows no less than {floor:.4g} µs"
                yield Finding("below_floor", message, True, side)
    # Faster than one of them says little: an oracle may be a loop, and a slow base may have been put right.
    beside = rates.typical_us(reference)
    if beside is not None and {"base", "head"} <= typical.keys():
        head, usual = typical["head"], min(typical["base"], beside)
        if head * BEYOND_REFERENCE < usual:
            times = f"{head:.4g} µs, base and reference at least {usual:.4g} µs"
            message = f"the head takes {times}: more than {BEYOND_REFERENCE:g} times as fast is not plausible"
            yield Finding("beyond_reference", message, True)


def floors_us(case: Case, device: Device) -> tuple[tuple[str, float], ...]:
    """What limits the case on each GPU that the device may be, and its least time; none where one is unknown."""
    flops, size = (case.work.flops or 0, case.work.bytes or 0) if case.work else (0, 0)
    if not (flops or size):
        return ()
    family = (dtypes.canonical(str(case.axes.get("dtype"))) or "fp16").split("_")[0]
    found = []
    for gpu in hardware.candidates(device.name, device.compute_capability):
        # FLOP/s that no kernel of this dtype passes. At least float16's: float32 may be computed in fewer bits.
        arithmetic = 1e6 * flops / max(gpu.flops["fp16"], gpu.flops.get(family, 0.0))
        # What fits in the L2 cache need not cross the memory bus.
        memory = 0.0 if size < gpu.l2_bytes else 1e6 * size / gpu.bytes_per_s
        limit = "arithmetic" if arithmetic >= memory else "memory bandwidth"
        found.append((f"{limit} of the {gpu.name}", max(arithmetic, memory)))
    return tuple(found)


# ---- two modes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoModes:
    low: float
    high: float
    slow: tuple[Array, ...]
    """By process, of each sample whether it is in the slow mode: 0 or 1."""

    @classmethod
    def of(cls, low: float, high: float, processes: Sequence[Array]) -> TwoModes:
        middle = (low + high) / 2
        return cls(low, high, tuple((samples > middle).astype(float) for samples in processes))

    @property
    def shares(self) -> list[float]:
        return [float(samples.mean()) for samples in self.slow]

    def keeps(self) -> bool:
        """Whether each process keeps to one mode. Whether they agree on the change is asked elsewhere."""
        return all(min(share, 1 - share) < MODE_SHARE for share in self.shares)

    def finding(self, side: str, more: str = "", disqualifies: bool = False) -> Finding:
        low, high = f"{math.exp(self.low):.4g}", f"{math.exp(self.high):.4g}"
        if self.keeps():
            return Finding(BIMODAL, f"the {side} sits at {low} or {high} µs from process to process", False, side)
        return Finding(BIMODAL, f"the {side} jumps between {low} and {high} µs{more}", disqualifies, side)


def modes_of_side(side: str, processes: Sequence[Array]) -> list[Finding]:
    """They forbid a verdict: how often the other side was in which mode is unknown."""
    two = two_modes([np.log(samples) for samples in processes])
    return [two.finding(side, disqualifies=True)] if two else []


def modes_of_sides(base: Sequence[Array], head: Sequence[Array]) -> Moved:
    """Modes that both sides are in equally often cancel in the ratio."""
    logs = {side: [np.log(samples) for samples in processes] for side, processes in (("base", base), ("head", head))}
    modes = {side: two for side, processes in logs.items() if (two := two_modes(processes))}
    jumping = {side: two for side, two in modes.items() if not two.keeps()}
    kept = tuple(two.finding(side) for side, two in modes.items() if side not in jumping)
    if not jumping:
        return Moved(0.0, kept)
    more = _more_often_slow(logs, jumping)
    if more.p() >= MODE_SHARE_P:
        alike = (two.finding(side, ", as often as the other side") for side, two in jumping.items())
        return Moved(0.0, (*kept, *alike))
    distance = max(two.high - two.low for two in jumping.values())
    bound = distance * min(1.0, abs(more.change) + more.half_width(0.05))
    side, two = next(iter(jumping.items()))
    word = "more" if more.change > 0 else "less"
    often = f", and the head is {100 * abs(more.change):.0f}% of the rounds {word} in the slow mode"
    found = two.finding(side, f"{often}: up to {formatting.percent(as_percent(bound))} of change")
    return Moved(bound, (*kept, replace(found, side=side if len(jumping) == 1 else "")))


def two_modes(processes: Sequence[Array]) -> TwoModes | None:
    """The best split in two of a side's log times (least squares within the modes, Fisher 1958), without far outliers;
    None where they are one mode, or too close."""
    ordered = np.sort(np.concatenate(processes))
    low, centre, high = (stats.quantile(ordered, share) for share in (0.1587, 0.5, 0.8413))
    ordered = ordered[np.abs(ordered - centre) <= OUTLIER_REACH * (high - low) / 2]
    n = len(ordered)
    if n < 2:
        return None
    sums = np.cumsum(ordered)
    left = np.arange(1, n)
    cut = int(np.argmax((sums[-1] * left / n - sums[:-1]) ** 2 / (left * (n - left)))) + 1
    low, high = stats.middle(ordered[:cut]), stats.middle(ordered[cut:])
    if high - low <= math.log1p(MODE_DISTANCE_PCT / 100) or min(cut, n - cut) / n < MODE_SHARE:
        return None
    near, far = (low + part * (high - low) for part in MODE_MIDDLE)
    if float(np.mean((ordered > near) & (ordered < far))) > MODE_OVERLAP:
        return None
    return TwoModes.of(low, high, processes)


def speeds_us(processes: Sequence[Array]) -> tuple[float, ...]:
    """A side's typical times in microseconds: of both modes, the faster first, or of all where they are one."""
    logs = [np.log(samples) for samples in processes]
    two = two_modes(logs)
    return (math.exp(two.low), math.exp(two.high)) if two else (math.exp(float(np.median(np.concatenate(logs)))),)


def _like(other: TwoModes, processes: Sequence[Array]) -> TwoModes:
    """This side's samples by modes as far apart as the other side's. Its bulk is the fast mode or the slow one,
    whichever leaves more samples in the second."""
    together, distance = np.concatenate(processes), other.high - other.low
    bulk = float(np.median(together))
    above, below = (float(np.mean(sign * (together - bulk) > distance / 2)) for sign in (1, -1))
    low = bulk if above >= below else bulk - distance
    return TwoModes.of(low, low + distance, processes)


def _more_often_slow(logs: Mapping[str, Sequence[Array]], jumping: Mapping[str, TwoModes]) -> Pooled:
    """By which share of the rounds the head is more often in its slow mode than the base: McNemar's (1947) comparison
    of paired shares, whose scatter between processes is moderated as for the change itself."""
    first = next(iter(jumping.values()))
    base, head = (jumping.get(side) or _like(first, logs[side]) for side in ("base", "head"))
    rounds = [now - was for was, now in zip(base.slow, head.slow, strict=True)]
    means = np.array([float(each.mean()) for each in rounds])
    centred = [each - mean for each, mean in zip(rounds, means, strict=True)]
    total, processes = sum(map(len, rounds)), len(rounds)
    # A round more on either side: where hardly any round differs, it may be by chance.
    squares = sum(float(each @ each) for each in centred) + 2
    variance = max(location.inflations(centred)[0]) * squares / total**2
    scatter = float(means.var(ddof=1)) / processes / variance if processes > 1 else 1.0
    df = SCATTER_PRIOR + processes - 1
    ratio = max(1.0, (SCATTER_PRIOR + (processes - 1) * scatter) / df)
    return Pooled(float(np.concatenate(rounds).mean()), math.sqrt(ratio * variance), df)


# ---- times that stand twice, or follow from others: pasted or computed, not measured ---------------------------------


def duplicated(cases: Iterable[TimedCase]) -> str | None:
    """The first times of a case that stand in two processes, or that are the base's times a factor, as a sentence."""
    return next((found for case in cases for found in (*_pasted(case), *_in_lockstep(case))), None)


def _in_lockstep(case: TimedCase) -> Iterator[str]:
    for process in case.processes:
        base, head = (np.array(process.samples_us.get(side, ())) for side in ("base", "head"))
        # Of few different times, a coarse clock gives the same ratio again and again.
        if len(base) != len(head) or len(np.unique(base)) < (FEWEST if process.role == "witness" else SHORTEST):
            continue
        ratio = head / base
        usual = float(np.median(ratio))
        if float(np.quantile(np.abs(ratio / usual - 1), 0.9)) < LOCKSTEP:
            name = process.process.id
            yield f"in process {name}, the head's times of {case.id} are {usual:.4g} times the base's: not measured"


@dataclass(frozen=True)
class _Timed:
    id: str
    times: Array

    @cached_property
    def short_stretches(self) -> frozenset[bytes]:
        return frozenset(_stretches(self.times, SHORTEST))

    @cached_property
    def alike(self) -> float:
        """The chance that two of these times are equal, or that what follows two equal ones is."""
        times = self.times[:ASKED]
        equal = times[:, None] == times[None, :]
        np.fill_diagonal(equal, False)
        followed = equal[:-1, :-1]
        both = int((followed & equal[1:, 1:]).sum())
        pairs = len(times) * (len(times) - 1)
        # One coincidence more than was seen: none in a hundred times does not mean that there are none.
        return max((int(equal.sum()) + 2) / (pairs + 2), (both + 2) / (int(followed.sum()) + 2) if both else 0.0)


def _pasted(case: TimedCase) -> Iterator[str]:
    for side in ("base", "head"):
        known = [_Timed(process.process.id, np.array(process.samples_us.get(side, ()))) for process in case.processes]
        for first, second in combinations(known, 2):
            # How readily times repeat is asked within each process, where nothing was pasted. A coarse clock takes a
            # longer stretch, and so do times that stay on a tick for long.
            if first.short_stretches.isdisjoint(second.short_stretches):
                continue
            alike = max(first.alike, second.alike)
            if alike >= 1:
                continue
            # So many equal times in a row are no coincidence, wherever they stand.
            length = math.ceil(math.log(CHANCE / (len(first.times) * len(second.times))) / math.log(alike))
            # How many times of the first process stand in stretches that the second holds as well.
            known_stretches = frozenset(_stretches(second.times, length))
            inside = np.zeros(len(first.times), dtype=bool)
            for start, stretch in enumerate(_stretches(first.times, length)):
                inside[start : start + length] |= stretch in known_stretches
            if same := int(inside.sum()):
                times = f"the same {same} times" if same < len(first.times) else f"the same times, all {same},"
                both = f"processes {first.id} and {second.id}"
                yield f"{both} hold {times} of the {side} of {case.id}: copied, not measured"


def _stretches(times: Array, length: int) -> list[bytes]:
    """So many times in a row, from each that has so many after it."""
    data, size = times.tobytes(), times.itemsize
    return [data[size * start : size * (start + length)] for start in range(len(times) - length + 1)]
