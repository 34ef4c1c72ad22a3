"""The time budget: a measured change of time, split into the causes that the two profiles show, and in words. A
kernel's cycles are those that its warps spend, over the warps that share them: of instructions that issue or wait for
one another, and of waits for memory, shared memory and barriers (Nsight Compute's warp states, per issued instruction).
Logarithms of ratios add up: the logarithmic mean Divisia index of Ang, Energy Policy 32 (2004)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgate.bench.explain import metrics
from kernelgate.bench.explain.metrics import STALL_PREFIX, pair
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.explain.bottleneck import SATURATED_PCT, TENSOR_UNUSED_PCT

WORTH_A_WORD = 0.08
"""The share of the change from which on a contribution is named: with ten of less, most would still be named."""
LEAST_EXPLAINED = 0.25
"""Causes of less than this share of the change are not what it comes of."""
MOSTLY = 0.5
"""Causes of less than this share are a part of it, on which no advice rests."""
SUSPECTED = {"registers": ("registers", 0), "occupancy_pct": ("occupancy", 0.02), "local_instructions": ("spills", 0)}
"""What people suspect first, and the share by which it varies from run to run: counts do not."""
NOISE_POINTS = 1.5
"""Waits are times: two profiles of the same code differ by up to 1.5% of its time, and counts do not."""
SHOWN = (0.5, 3.0)
"""The profile shows a change if its own is this many times the measured one: caches are cold in a profile."""
SYMPTOMS = 2
"""A wait that costs so many times what a count costs, or less, may come of it: the count is named first."""


@dataclass(frozen=True)
class Contribution:
    metric: str
    """The figure that moved, by its key in explain/metrics.py; `stall_…` for a wait."""
    before: float
    after: float
    share_pct: float
    """Percent of the base's time, positive where it costs time: shares and `unexplained_pct` sum to `change_pct`."""
    because: str = ""
    """What moved this figure, where the profiles show it: "as shared memory a block rose 48 → 144 KiB"."""

    @property
    def is_wait(self) -> bool:
        return metrics.is_stall(self.metric) or self.metric in ("call_us", "active_pct")


@dataclass(frozen=True)
class Budget:
    change_pct: float
    """The measured change of time, head against base; positive is slower."""
    contributions: tuple[Contribution, ...]
    """Those worth a word: the largest first, but causes before the waits that follow them; those against it last."""
    unexplained_pct: float
    profiled_pct: float | None
    """The change of the profile's own duration at equal clocks; None where a side does not hold it."""
    unchanged: tuple[str, ...] = ()
    """What people would suspect and what did not change, in words: "registers", "occupancy", "spills"."""

    @property
    def is_shown(self) -> bool:
        """Whether the profiles are of what was measured: the same direction, and about the same size."""
        if self.profiled_pct is None or not self.change_pct:
            return False
        clocks = sum(one.share_pct for one in self.contributions if one.metric == "sm_mhz")
        least, most = SHOWN
        return least <= (self.profiled_pct + clocks) / self.change_pct <= most

    @property
    def causes(self) -> tuple[Contribution, ...]:
        """Those in the change's direction; none where the profiles show another change, or hardly what it is of."""
        found = tuple(one for one in self.contributions if one.share_pct * self.change_pct > 0)
        enough = sum(abs(one.share_pct) for one in found) >= LEAST_EXPLAINED * abs(self.change_pct)
        return found if self.is_shown and enough else ()

    @property
    def is_mostly_explained(self) -> bool:
        """Whether the causes are more than a part of it, so that advice may rest on them."""
        return sum(abs(one.share_pct) for one in self.causes) >= MOSTLY * abs(self.change_pct)


def budget(
    before: Mapping[str, float],
    after: Mapping[str, float],
    change_pct: float,
    clocks: tuple[float, float] | None = None,
) -> Budget:
    """Splits the measured change by the figures of both profiles. `clocks`: of the SMs while base and head were timed,
    in MHz; the profile says nothing of them."""
    sides = Profiles(_usable(before), _usable(after))
    parts = log_parts(sides)
    total = sum(part.log for part in parts)
    profiled = as_percent(total) if parts else None
    if parts and clocks is not None and all(LEAST_FIGURE <= clock <= LARGEST_FIGURE for clock in clocks):
        # What a slower clock costs, as far as the profile, which is taken at equal clocks, leaves something to explain:
        # a kernel that waits for DRAM takes no longer.
        log, left = math.log(clocks[0] / clocks[1]), math.log1p(max(change_pct, -99.9) / 100) - total
        cost = math.copysign(min(abs(log), abs(left)), log) if log * left > 0 else 0.0
        parts.append(LogPart("sm_mhz", *clocks, cost))
        total = sum(part.log for part in parts)
    shown = as_percent(total)
    # Points of percent for a logarithm: the parts sum up to what the profiles show, or to what was measured of it.
    points = shown / total if total else 100.0
    if abs(shown) > abs(change_pct):
        points *= abs(change_pct / shown)
    found = (Contribution(one.metric, one.before, one.after, points * one.log, one.because) for one in parts)
    least = WORTH_A_WORD * abs(change_pct)
    large = (one for one in found if abs(one.share_pct) >= max(least, NOISE_POINTS if one.is_wait else 0.0) > 0)
    named = [one for one in large if one.metric]
    named.sort(key=lambda one: -math.copysign(one.share_pct, one.share_pct * change_pct))
    left_pct = change_pct - sum(one.share_pct for one in named)
    # The first one is the cause of the others, where one of them is that and costs enough.
    near = [one for one in named if one.share_pct / named[0].share_pct >= 1 / SYMPTOMS]
    first = sorted(near, key=lambda one: one.is_wait)[:1]
    causes_first = (*first, *(one for one in named if one not in first))
    unchanged = (
        words
        for key, (words, noise) in SUSPECTED.items()
        if sides.both(key) and abs(sides.after[key] - sides.before[key]) <= noise * sides.before[key]
    )
    return Budget(change_pct, causes_first, left_pct, profiled, tuple(unchanged))


# ---- In words --------------------------------------------------------------------------------------------------------

MOST = 3
LARGE = 0.25
"""The share of the change from which on what was made up for, or stays unexplained, is said."""
SMALL = 0.05
"""The share of the change from which on points that are too many would be noticed."""

_MOVED = {
    "instructions": "{ratio} instructions executed, {sides}",
    "local_instructions": "{more} spills, {sides} instructions that load or store local memory",
    "occupancy_pct": "occupancy {sides}",
    "sm_mhz": "the SM clock {rose} while this was timed, {sides}",
    "active_pct": "multiprocessors have a block for {more_of} of the time, {sides}",
    "call_us": "the call's other kernels take {longer}; all of them, {sides}",
    "dram_bytes": "{more_of} DRAM traffic, {sides}",
    "async_copies": "{more} asynchronous copies to shared memory, {sides}",
    "load_requests": "{more} loads of global memory, {sides}",
    "sectors_per_request": "{more} sectors moved for each access of global memory, {sides}",
}
"""Of other figures, how many there are, or how long warps wait."""


def sentences(found: Budget) -> tuple[str, ...]:
    """The causes in one sentence, then what did not change; where the profiles do not show the change, that alone."""
    if found.profiled_pct is None:
        return ("the profile does not say: it holds no duration of both sides.",)
    profiled, measured = map(formatting.moved, (found.profiled_pct, found.change_pct))
    unchanged = ", ".join(found.unchanged)
    if found.causes:
        rest = (f"{unchanged[0].upper()}{unchanged[1:]}: unchanged.",) if unchanged else ()
        return (f"{'; '.join(_clauses(found))}.", *rest)
    why = f", at equal clocks and with cold caches, but {measured} as measured"
    why = ", and no figure of it says why" if found.is_shown else why
    left = f" Ruled out, since unchanged: {unchanged}." if unchanged else ""
    return (f"not known: {profiled} under the profiler{why}.{left}",)


def _clauses(found: Budget) -> Iterator[str]:
    change, explained = abs(found.change_pct), sum(abs(one.share_pct) for one in found.causes)
    first, *others = found.causes
    # What makes up for some of it, the largest last.
    against = [one for one in found.contributions if one.share_pct * found.change_pct < 0]
    part = "" if found.is_mostly_explained else "in part "
    # Together with what works against it, a cause may be more than the change; alone it is at most all of it.
    alone = not against or abs(against[-1].share_pct) < LARGE * change
    share = round(abs(first.share_pct), 1)
    points = f"all {change:.1f}" if alone and share >= round(change, 1) else f"{share:.1f} of the {change:.1f}"
    yield f"{part}{cause(first)}: {points} points"
    over = abs(first.share_pct) - change
    for one in others[: MOST - 1]:
        if abs(one.share_pct) >= LARGE * change:
            yield f"{cause(one)}: {abs(one.share_pct):.1f} points"
            over += abs(one.share_pct)
    left = change * found.unexplained_pct / found.change_pct - sum(abs(one.share_pct) for one in against)
    sign = "−" if found.change_pct > 0 else "+"
    for largest in against[-1:]:
        if explained > (1 + LARGE) * change and abs(largest.share_pct) >= LARGE * change:
            yield f"against that {cause(largest)}: {sign}{abs(largest.share_pct):.1f}"
            left += abs(largest.share_pct)
            over -= abs(largest.share_pct)
    if over >= SMALL * change:
        yield f"against that smaller effects: {sign}{over:.1f}"
    if left >= LARGE * change:  # of what was said, so that the points of a sentence add up
        yield f"{left:.1f} points stay unexplained"


def cause(one: Contribution) -> str:
    """What moved, from where to where, and what moved it: "3.8% more instructions executed, 24.9 → 25.9 M"."""
    key, more, costs = one.metric, one.after > one.before, one.share_pct > 0
    ratio = one.after / one.before if one.before else 0.0
    words = f"{{more}} {metrics.label(key)}, {{sides}}"
    if metrics.is_stall(key):
        known = metrics.METRICS.get(key)
        waits = known.waits if known and known.waits else f"({metrics.label(key)})"
        words = f"{'longer' if costs else 'shorter'} waits {waits}, {{sides}} an instruction"
    percent = f"{100 * abs(ratio - 1):.1f}% {'more' if ratio > 1 else 'fewer'}"
    said = _MOVED.get(key, words).format(
        sides=metrics.pair(key, one.before, one.after),
        ratio=f"{ratio:.1f} times as many" if ratio >= 2 else percent,
        more="more" if more else "fewer",
        more_of="more" if more else "less",
        rose="rose" if more else "fell",
        longer="longer" if costs else "less time",
    )
    return f"{said}, {one.because}" if one.because else said


# ---- How the cycles of two profiles differ: a part for each thing that moved, in logarithms of time, which add up ----

EVENTS = {
    "memory": ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar"),
    "shared": ("short_scoreboard", "mio_throttle"),
    "barrier": ("barrier",),
    "gmma": ("gmma",),
}
"""Waits for something that happens as often as the program asks for it, however many other instructions there are."""
STEEPEST = 5.0
"""A wait grows at most so many times as fast as what is asked for, in logarithms: queues grow near saturation."""
NOISE = 0.005
"""Counts and rates of the same code differ by less, as a logarithm."""
TRAFFIC_NOISE = 0.03
"""What the same code moves through L2 and DRAM differs by less: other blocks run side by side."""
WORK = ("instructions", "local_instructions")
LEAST_FIGURE, LARGEST_FIGURE = 1e-9, 1e18
"""Figures outside are no measurement."""


@dataclass(frozen=True)
class LogPart:
    metric: str
    """Empty: cycles that the profile puts under no name."""
    before: float
    after: float
    log: float
    """ln of the factor by which it makes the call slower."""
    because: str = ""


def _usable(side: Mapping[str, float]) -> dict[str, float]:
    return {key: one for key, one in side.items() if one == 0 or LEAST_FIGURE <= one <= LARGEST_FIGURE}


@dataclass(frozen=True)
class Profiles:
    before: Mapping[str, float]
    after: Mapping[str, float]

    def of(self, *keys: str) -> tuple[float, float]:
        """Both sides' sums of these figures, of which one that is missing is 0."""
        before, after = (sum(side.get(key, 0.0) for key in keys) for side in (self.before, self.after))
        return before, after

    def both(self, key: str) -> bool:
        return key in self.before and key in self.after

    def log(self, key: str) -> float:
        """ln of how many times as large the figure became; 0 where a side has none."""
        return _log(self.of(key)) if all(self.of(key)) else 0.0

    def part(self, key: str, log: float, because: str = "") -> LogPart:
        return LogPart(key, *self.of(key), log, because)

    @property
    def cycles(self) -> tuple[float, float]:
        """Of the kernel; its times where a profile has no clocks."""
        durations, clocks = self.of("duration_us"), self.of("sm_mhz")
        return _times(durations, clocks) if all(clocks) else durations

    @property
    def warp_cycles(self) -> tuple[float, float]:
        return _times(self.of("latency_cycles"), self.of("instructions"))


def _times(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] * other[0], one[1] * other[1]


def log_parts(sides: Profiles) -> list[LogPart]:
    """They sum up to the logarithm of the profiled call's time at equal clocks; none without durations or clocks."""
    cycles, calls = sides.cycles, sides.of("call_us")
    if not all(cycles):
        return []
    durations = sides.of("duration_us")
    if all((*calls, *durations)):  # both profiles saw all kernels of a call
        calls = cycles[0] * calls[0] / durations[0], cycles[1] * calls[1] / durations[1]
    else:
        calls = cycles
    # The kernel is a part of the call, whose other launches have their own.
    weight = _log_mean(cycles) / _log_mean(calls)
    found = [replace(part, log=part.log * weight) for part in _kernel(sides, _log(cycles))]
    others = _log(calls) - sum(part.log for part in found)
    launches = sides.of("launches")
    if abs(others) <= NOISE or not all(launches):
        return [*found, LogPart("", 0, 0, others)]
    return [*found, sides.part("launches" if launches[0] != launches[1] else "call_us", others)]


# ---- One kernel ------------------------------------------------------------------------------------------------------


def _kernel(sides: Profiles, whole: float) -> list[LogPart]:
    """Instructions, waits, warps and idle multiprocessors; what is left is a part without a name."""
    if not all(all(sides.of(key)) for key in ("instructions", "latency_cycles", "occupancy_pct")):
        return [LogPart("", 0, 0, whole)]
    found = [*_instructions(sides), *_events(sides)]
    # Fewer warps also wait less for each other: what waits moved the other way belongs to them.
    waits = [*(part for part in found if part.metric not in WORK), _unread(sides)]
    warps, waits = _net(_warps(sides), waits)
    found = [*(part for part in found if part.metric in WORK), *waits, warps, *_idle(sides)]
    rest = LogPart("", 0, 0, whole - sum(part.log for part in found))
    merged: dict[str, LogPart] = {}
    for part in _at_the_roof(sides, whole, [*found, rest]):
        first = merged.get(part.metric, replace(part, log=0.0))
        merged[part.metric] = replace(part, log=part.log + first.log, because=first.because or part.because)
    return list(merged.values())


def _at_the_roof(sides: Profiles, whole: float, found: Sequence[LogPart]) -> Sequence[LogPart]:
    """Where DRAM is saturated, time goes with the bytes, whatever warps wait for meanwhile."""
    traffic, busy = sides.log("dram_bytes"), min(sides.of("dram_pct"))
    if busy < SATURATED_PCT or abs(traffic) < TRAFFIC_NOISE or traffic * whole <= 0:
        return found
    taken = math.copysign(min(abs(traffic), abs(whole)), whole)
    return [_part("dram_bytes", sides, taken), *(replace(one, log=one.log * (1 - taken / whole)) for one in found)]


def _instructions(sides: Profiles) -> Iterator[LogPart]:
    """Instructions that issue or wait for one another: how many they are, and how long each waits."""
    total, count = _log_mean(sides.warp_cycles), sides.of("instructions")
    more = _log(count)
    waits, share = [], 0.0
    events = {STALL_PREFIX + reason for reasons in EVENTS.values() for reason in reasons}
    # What was not read stays without a name.
    for key in sides.before:
        if key.startswith(STALL_PREFIX) and key in sides.after and key not in events:
            cycles = _times(sides.of(key), count)
            weight = _log_mean(cycles) / total
            share += weight
            waits.append(sides.part(key, (cycles[1] - cycles[0]) / total - weight * more))
    # More instructions that wait less bring the mean wait of all down: that is no gain of its own.
    counted, waits = _net(sides.part("instructions", share * more, _why_more(sides, more)), waits)
    # Of the instructions that came or went, those that load or store local memory, and the rest.
    local = sides.of("local_instructions")
    spilled = min(1.0, max(0.0, (local[1] - local[0]) / ((count[1] - count[0]) or 1.0)))
    if spilled * abs(counted.log) > NOISE:
        yield _part("local_instructions", sides, spilled * counted.log)
    yield replace(counted, log=(1 - spilled) * counted.log)
    yield from waits


def _unread(sides: Profiles) -> LogPart:
    read = [key for key in sides.before if key.startswith(STALL_PREFIX) and key in sides.after]
    known, latency = sides.of(*read), sides.of("latency_cycles")
    rest = max(0.0, latency[0] - known[0]), max(0.0, latency[1] - known[1])
    cycles = _times(rest, sides.of("instructions"))
    return LogPart("", *rest, (cycles[1] - cycles[0]) / _log_mean(sides.warp_cycles))


def _why_more(sides: Profiles, more: float) -> str:
    if abs(more) < NOISE:
        return ""
    sign = math.copysign(1, more)
    busy, threads = sides.of("tensor_pct"), sides.of("threads_per_instruction")
    work = -sign * _bounded_log(_times(busy, sides.cycles))
    if sides.both("tensor_pct") and max(busy) >= TENSOR_UNUSED_PCT and work > max(0.05, 0.25 * abs(more)):
        share = "less" if sign > 0 else "more"
        return f"as the tensor cores do {share} of the work: busy {busy[0]:.0f} → {busy[1]:.0f}%"
    if -sign * sides.log("threads_per_instruction") > abs(more) / 4:
        verb = "diverge" if sign > 0 else "diverge less"
        return f"as warps {verb}: {threads[0]:.1f} → {threads[1]:.1f} threads active in each"
    return ""


# ---- Waits for events ------------------------------------------------------------------------------------------------


def _events(sides: Profiles) -> Iterator[LogPart]:
    """Waits for memory, shared memory and barriers, each in the place of what made it longer."""
    total, count = _log_mean(sides.warp_cycles), sides.of("instructions")
    more = count[1] / count[0]
    for group, reasons in EVENTS.items():
        keys = [key for reason in reasons if sides.both(key := STALL_PREFIX + reason)]
        # For each of the base's instructions: an event's wait does not get shorter by other instructions.
        waits = {key: _times(sides.of(key), (1.0, more)) for key in keys}
        old, new = (sum(wait[at] for wait in waits.values()) for at in (0, 1))
        steps = abs(_bounded_log((old, new))) if old or new else 0.0
        if not steps:
            continue
        log = (new - old) * count[0] / total
        left = 1.0
        for key, size, noise in _asked(group, sides):
            if (moved := size if log > 0 else -size) > noise:
                taken = min(left, STEEPEST * moved / steps)
                left -= taken
                yield _part(key, sides, taken * log)
        # The reason of the group that moved most, as the profiles have it where that says the same.
        widest = max(waits, key=lambda key: abs(waits[key][1] - waits[key][0]))
        same = left * log * (sides.after[widest] - sides.before[widest]) > 0
        counted = LogPart(widest, *waits[widest], left * log, "counted for each of base's instructions")
        yield sides.part(widest, left * log) if same else counted


def _asked(group: str, sides: Profiles) -> Iterator[tuple[str, float, float]]:
    """What a wait may come of, causes before their effects: each with how far it moved, and what is noise."""
    if group == "shared":
        conflicts, wavefronts = sides.of("bank_conflicts"), sides.of("shared_wavefronts")
        rest = wavefronts[0] - conflicts[0], wavefronts[1] - conflicts[1]
        if min(rest) > 0:
            yield "bank_conflicts", _log((1 + conflicts[0] / rest[0], 1 + conflicts[1] / rest[1])), NOISE
    if group == "memory":
        requests, local = sides.of("load_requests", "store_requests"), sides.of("local_instructions")
        if all(requests):
            yield "local_instructions", _log((1 + local[0] / requests[0], 1 + local[1] / requests[1])), NOISE
            if all(sectors := _sectors(sides)):
                yield "sectors_per_request", _log(sectors), NOISE
            if sides.both("async_copies"):
                copies = sides.of("async_copies")
                yield "async_copies", -(copies[1] - copies[0]) / max(requests), NOISE
        yield "dram_bytes", sides.log("dram_bytes"), TRAFFIC_NOISE
        yield "load_requests", sides.log("load_requests"), NOISE


def _sectors(sides: Profiles) -> tuple[float, float]:
    """Moved for a request of global memory."""
    sectors, requests = sides.of("load_sectors", "store_sectors"), sides.of("load_requests", "store_requests")
    return sectors[0] / requests[0], sectors[1] / requests[1]


def _part(key: str, sides: Profiles, log: float) -> LogPart:
    if key == "sectors_per_request":
        return LogPart(key, *_sectors(sides), log)
    causes = {"dram_bytes": ("l2_hit_pct", "the L2 hit rate"), "local_instructions": REGISTERS}
    if key in causes and sides.both(causes[key][0]):
        # That less of it was there, where that costs this time; or more, where that saves it.
        old, new = sides.of(causes[key][0])
        if abs(new - old) >= 1 and (new - old) * log < 0:
            return sides.part(key, log, _as_moved(sides, *causes[key]))
    return sides.part(key, log)


def _as_moved(sides: Profiles, key: str, words: str) -> str:
    old, new = sides.of(key)
    return f"as {words} {'rose' if new > old else 'fell'} {pair(key, old, new)}"


# ---- Warps and multiprocessors ---------------------------------------------------------------------------------------

REGISTERS = "registers", "registers a thread"
LIMITS = {
    "blocks_by_registers": REGISTERS,
    "blocks_by_shared": ("shared_bytes", "shared memory a block"),
    "blocks_by_warps": ("block_threads", "threads a block"),
}
"""What keeps blocks off a multiprocessor: the limit, the figure that sets it, its name."""


def _warps(sides: Profiles) -> LogPart:
    """Fewer warps share the waiting: fewer fit on a multiprocessor, or the grid has fewer."""
    log, fits = -sides.log("occupancy_pct"), sides.of("theoretical_occupancy_pct")
    fitting, grids = (-_log(fits) if all(fits) else None), sides.of("grid")
    if fitting is not None and abs(fitting) < NOISE and grids[0] != grids[1] and abs(log) > 4 * NOISE:
        return sides.part("grid", log)
    return sides.part("occupancy_pct", log, _why_fewer(sides) if fitting and log * fitting > 0 else "")


def _why_fewer(sides: Profiles) -> str:
    """Which resource decides how many warps fit on the side that has fewer, where it is another on the other side."""
    tighter = min((sides.before, sides.after), key=lambda side: side["theoretical_occupancy_pct"])
    known = {limit: tighter[limit] for limit in (*LIMITS, "blocks_by_limit") if tighter.get(limit)}
    for limit, (key, words) in LIMITS.items():
        old, new = sides.of(key)
        if limit in known and known[limit] == min(known.values()) and old != new:
            return _as_moved(sides, key, words)
    return ""


def _idle(sides: Profiles) -> Iterator[LogPart]:
    """Multiprocessors without a block: too few blocks, or a last wave that is not full."""
    active, elapsed, grids = sides.of("sm_active_cycles"), sides.of("elapsed_cycles"), sides.of("grid")
    if all((*active, *elapsed)):
        shares = active[0] / elapsed[0], active[1] / elapsed[1]
        if all(grids) and grids[0] != grids[1]:
            yield sides.part("grid", -_log(shares))
        else:
            yield LogPart("active_pct", 100 * shares[0], 100 * shares[1], -_log(shares))


def _net(one: LogPart, others: Iterable[LogPart]) -> tuple[LogPart, list[LogPart]]:
    """What others moved against `one` is taken from both, as far as it goes: they are two sides of one thing."""
    others = list(others)
    size = sum(abs(part.log) for part in others if part.log * one.log < 0)
    taken = min(size, abs(one.log))
    if not taken:
        return one, others
    keep = 1 - taken / size
    rest = [replace(part, log=part.log * keep) if part.log * one.log < 0 else part for part in others]
    return replace(one, log=one.log - math.copysign(taken, one.log)), rest


def _log(values: tuple[float, float]) -> float:
    return math.log(values[1] / values[0])


def _bounded_log(values: tuple[float, float]) -> float:
    """Of what may be 0 on one side: at most ln 1000; 0 where it is on both."""
    old, new = values
    return _log((max(old, new / 1e3), max(new, old / 1e3))) if old or new else 0.0


def _log_mean(values: tuple[float, float]) -> float:
    """Between the two: (new - old) / ln(new / old)."""
    old, new = values
    if old <= 0 or new <= 0:
        return 0.0
    return old if math.isclose(old, new) else (new - old) / math.log(new / old)
