"""How the cycles of two profiles differ: a part for each thing that moved, in logarithms of time, which add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kernelgate.bench.explain.metrics import STALL_PREFIX
from kernelgate.ci.explain.diagnosis import TENSOR_UNUSED_PCT
from kernelgate.ci.explain.figures import pair

Figures = Mapping[str, float]

EVENTS = {
    "memory": ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar"),
    "shared": ("short_scoreboard", "mio_throttle"),
    "barrier": ("barrier",),
    "gmma": ("gmma",),
    "sleeping": ("sleeping",),
}
"""Waits for something that happens as often as the program asks for it, however many other instructions there are."""
STEEPEST = 5.0
"""A wait grows at most so many times as fast as what is asked for, in logarithms: queues grow near saturation."""
NOISE = 0.005
"""Counts and rates of the same code differ by less, as a logarithm."""
TRAFFIC_NOISE = 0.03
"""What the same code moves through L2 and DRAM differs by less: other blocks run side by side."""
SATURATED_PCT = 80.0
"""Of DRAM's peak, NVIDIA's own rules call it saturated."""
WORK = ("instructions", "local_instructions")
LEAST, MOST = 1e-9, 1e18
"""Figures outside are no measurement."""


@dataclass(frozen=True)
class LogPart:
    """What one figure's change does to the time."""

    metric: str
    """Empty: cycles that the profile puts under no name."""
    before: float
    after: float
    log: float
    """ln of the factor by which it makes the call slower."""
    because: str = ""


def usable(figures: Figures) -> dict[str, float]:
    """Without what cannot have been measured: negative, not a number, beyond all bounds."""
    return {key: value for key, value in figures.items() if value == 0 or LEAST <= value <= MOST}


def parts(before: Figures, after: Figures) -> list[LogPart]:
    """Their logarithms sum up to that of the profiled call's time at equal clocks; nothing where the profiles have no
    duration or clock. The figures must be `usable`."""
    cycles = _cycles(before, after)
    if not all(cycles):
        return []
    calls = _call_cycles(before, after, cycles)
    found = _kernel(before, after, _log(*cycles))
    # The kernel is a part of the call, whose other launches have their own.
    weight = _log_mean(*cycles) / _log_mean(*calls)
    found = [replace(part, log=part.log * weight) for part in found]
    others = _log(*calls) - sum(part.log for part in found)
    return [*found, _launches(before, after, others)]


def _launches(before: Figures, after: Figures, log: float) -> LogPart:
    """What the call's other kernels do to it."""
    if abs(log) <= NOISE or not (before.get("launches") and after.get("launches")):
        return LogPart("", 0, 0, log)
    if before["launches"] != after["launches"]:
        return LogPart("launches", before["launches"], after["launches"], log)
    return LogPart("call_us", before["call_us"], after["call_us"], log)


def _cycles(before: Figures, after: Figures) -> tuple[float, float]:
    """Of the kernel on each side; its times where a profile has neither clocks nor cycles."""
    for clock in ("sm_mhz", ""):
        found = [side.get("duration_us", 0.0) * (side.get(clock, 0.0) if clock else 1.0) for side in (before, after)]
        if all(found):
            return found[0], found[1]
    return before.get("elapsed_cycles", 0.0), after.get("elapsed_cycles", 0.0)


def _call_cycles(before: Figures, after: Figures, cycles: tuple[float, float]) -> tuple[float, float]:
    """Of all kernels of a call, where both profiles saw them all."""
    if not all(side.get(key) for side in (before, after) for key in ("call_us", "duration_us")):
        return cycles
    old, new = (side["call_us"] / side["duration_us"] for side in (before, after))
    return cycles[0] * old, cycles[1] * new


# ----------------------------------------------------------------------------------------------------------------------
# One kernel
# ----------------------------------------------------------------------------------------------------------------------


def _kernel(before: Figures, after: Figures, whole: float) -> list[LogPart]:
    """Instructions, waits, warps and idle multiprocessors; what is left is a part without a name."""
    needed = ("instructions", "latency_cycles", "occupancy_pct")
    if not all(side.get(key) for side in (before, after) for key in needed):
        return [LogPart("", 0, 0, whole)]
    found = [*_instructions(before, after), *_events(before, after)]
    count = [part for part in found if part.metric in WORK]
    # Fewer warps also wait less for each other: what waits moved the other way belongs to them.
    waits = [*(part for part in found if part.metric not in WORK), _unread(before, after)]
    warps, waits = _net(_warps(before, after), waits)
    found = [*count, *waits, warps, *_idle(before, after)]
    rest = LogPart("", 0, 0, whole - sum(part.log for part in found))
    return _merged(_at_the_roof(before, after, whole, [*found, rest]))


def _at_the_roof(before: Figures, after: Figures, whole: float, found: list[LogPart]) -> list[LogPart]:
    """Where DRAM is saturated, time goes with the bytes, whatever warps wait for meanwhile."""
    traffic = _log_of(before, after, "dram_bytes")
    busy = min(side.get("dram_pct", 0.0) for side in (before, after))
    if busy < SATURATED_PCT or abs(traffic) < TRAFFIC_NOISE or traffic * whole <= 0:
        return found
    taken = math.copysign(min(abs(traffic), abs(whole)), whole)
    others = [replace(part, log=part.log * (1 - taken / whole)) for part in found]
    return [_part("dram_bytes", before, after, taken), *others]


def _instructions(before: Figures, after: Figures) -> list[LogPart]:
    """Instructions that issue or wait for one another: how many they are, and how long each waits."""
    total = _log_mean(_warp_cycles(before), _warp_cycles(after))
    more = _log(before["instructions"], after["instructions"])
    waits, share = [], 0.0
    for key, (old, new) in _own(before, after).items():
        cycles = old * before["instructions"], new * after["instructions"]
        weight = _log_mean(*cycles) / total
        share += weight
        waits.append(LogPart(key, old, new, (cycles[1] - cycles[0]) / total - weight * more))
    count = LogPart("instructions", before["instructions"], after["instructions"], share * more)
    # More instructions that wait less bring the mean wait of all down: that is no gain of its own.
    count, waits = _net(count, waits)
    return [*_of_spills(before, after, replace(count, because=_why_more(before, after, more))), *waits]


def _own(before: Figures, after: Figures) -> dict[str, tuple[float, float]]:
    """Cycles of an instruction for each reason that is no event's. What was not read stays without a name."""
    events = {STALL_PREFIX + reason for reasons in EVENTS.values() for reason in reasons}
    return {
        key: (before[key], after[key])
        for key in before
        if key.startswith(STALL_PREFIX) and key in after and key not in events
    }


def _unread(before: Figures, after: Figures) -> LogPart:
    """What warps waited for reasons that were not read."""
    read = [key for key in before if key.startswith(STALL_PREFIX) and key in after]
    rest = [max(0.0, side["latency_cycles"] - sum(side[key] for key in read)) for side in (before, after)]
    cycles = [one * side["instructions"] for one, side in zip(rest, (before, after), strict=True)]
    return LogPart("", rest[0], rest[1], (cycles[1] - cycles[0]) / _log_mean(_warp_cycles(before), _warp_cycles(after)))


def _of_spills(before: Figures, after: Figures, count: LogPart) -> Iterator[LogPart]:
    """Of the instructions that came or went, those that load or store local memory, and the rest."""
    changed = after["instructions"] - before["instructions"]
    local = (after.get("local_instructions", 0.0) - before.get("local_instructions", 0.0)) / (changed or 1.0)
    share = min(1.0, max(0.0, local))
    if share * abs(count.log) > NOISE:
        yield _part("local_instructions", before, after, share * count.log)
    yield replace(count, log=(1 - share) * count.log)


def _why_more(before: Figures, after: Figures, more: float) -> str:
    """What the instructions are, where another count shows it."""
    if abs(more) < NOISE:
        return ""
    sign = math.copysign(1, more)
    if all(side.get("tensor_pct") is not None for side in (before, after)):
        busy = before["tensor_pct"], after["tensor_pct"]
        tensor = [pct * cycles for pct, cycles in zip(busy, _cycles(before, after), strict=True)]
        work = -sign * _log(max(tensor[0], tensor[1] / 1e3), max(tensor[1], tensor[0] / 1e3)) if any(tensor) else 0.0
        if max(busy) >= TENSOR_UNUSED_PCT and work > max(0.05, 0.25 * abs(more)):
            verb = "less" if sign > 0 else "more"
            return f"as the tensor cores do {verb} of the work: busy {busy[0]:.0f} → {busy[1]:.0f}%"
    key = "threads_per_instruction"
    if before.get(key) and after.get(key) and -sign * _log(before[key], after[key]) > abs(more) / 4:
        verb = "diverge" if sign > 0 else "diverge less"
        return f"as warps {verb}: {before[key]:.1f} → {after[key]:.1f} threads active in each"
    return ""


# ----------------------------------------------------------------------------------------------------------------------
# Waits for events
# ----------------------------------------------------------------------------------------------------------------------


def _events(before: Figures, after: Figures) -> Iterator[LogPart]:
    """Waits for memory, shared memory and barriers, each in the place of what made it longer."""
    total = _log_mean(_warp_cycles(before), _warp_cycles(after))
    more = after["instructions"] / before["instructions"]
    for group, reasons in EVENTS.items():
        keys = [STALL_PREFIX + reason for reason in reasons]
        # For each of the base's instructions: an event's wait does not get shorter by other instructions.
        waits = {key: (before[key], after[key] * more) for key in keys if key in before and key in after}
        old, new = (sum(wait[at] for wait in waits.values()) for at in (0, 1))
        steps = abs(_log(max(old, new / 1e3), max(new, old / 1e3))) if old or new else 0.0
        if not steps:
            continue
        log = (new - old) * before["instructions"] / total
        left = 1.0
        for key, size in _asked(group, before, after, math.copysign(1, log)):
            taken = min(left, STEEPEST * size / steps)
            left -= taken
            yield _part(key, before, after, taken * log)
        yield _wait(waits, before, after, left * log)


def _wait(waits: Mapping[str, tuple[float, float]], before: Figures, after: Figures, log: float) -> LogPart:
    """The reason of the group that moved most, as the profiles have it where that says the same."""
    widest = max(waits, key=lambda key: abs(waits[key][1] - waits[key][0]))
    if log * (after[widest] - before[widest]) > 0:
        return LogPart(widest, before[widest], after[widest], log)
    return LogPart(widest, *waits[widest], log, "counted for each of base's instructions")


def _asked(group: str, before: Figures, after: Figures, sign: float) -> Iterator[tuple[str, float]]:
    """What a wait may come of, causes before their effects: each with how far it moved in that direction."""
    if group == "shared":
        conflicts = [side.get("bank_conflicts", 0.0) for side in (before, after)]
        rest = [
            side.get("shared_wavefronts", 0.0) - count for side, count in zip((before, after), conflicts, strict=True)
        ]
        if min(rest) > 0:
            yield from _positive("bank_conflicts", sign * _log(1 + conflicts[0] / rest[0], 1 + conflicts[1] / rest[1]))
        yield from _positive("shared_wavefronts", sign * _log_of(before, after, "shared_wavefronts"))
    if group == "memory":
        requests = [side.get("load_requests", 0.0) + side.get("store_requests", 0.0) for side in (before, after)]
        local = [side.get("local_instructions", 0.0) for side in (before, after)]
        if all(requests):
            spilled = sign * _log(1 + local[0] / requests[0], 1 + local[1] / requests[1])
            yield from _positive("local_instructions", spilled)
            sectors = [_sectors(side) for side in (before, after)]
            if all(sectors):
                yield from _positive("sectors_per_request", sign * _log(*sectors))
            if all("async_copies" in side for side in (before, after)):
                yield from _positive(
                    "async_copies", -sign * (after["async_copies"] - before["async_copies"]) / max(requests)
                )
        yield from _positive("dram_bytes", sign * _log_of(before, after, "dram_bytes"), TRAFFIC_NOISE)
        yield from _positive("load_requests", sign * _log_of(before, after, "load_requests"))
        yield from _positive("l2_sectors", sign * _log_of(before, after, "l2_sectors"), TRAFFIC_NOISE)


def _positive(key: str, size: float, noise: float = NOISE) -> Iterator[tuple[str, float]]:
    if size > noise:
        yield key, size


def _sectors(side: Figures) -> float:
    """Moved for a request of global memory."""
    requests = side.get("load_requests", 0.0) + side.get("store_requests", 0.0)
    return (side.get("load_sectors", 0.0) + side.get("store_sectors", 0.0)) / requests


def _part(key: str, before: Figures, after: Figures, log: float) -> LogPart:
    if key == "sectors_per_request":
        return LogPart(key, _sectors(before), _sectors(after), log)
    because = ""
    if key == "dram_bytes":
        because = _because(before, after, "l2_hit_pct", -1, log)
    if key == "local_instructions":
        because = _because(before, after, "registers", -1, log)
    return LogPart(key, before.get(key, 0.0), after.get(key, 0.0), log, because)


def _because(before: Figures, after: Figures, key: str, sign: int, log: float) -> str:
    """That a figure moved, where it did in the direction that costs (`sign`: more or less of it) or saves this time."""
    words = {"l2_hit_pct": "the L2 hit rate", "registers": "registers a thread"}[key]
    if (
        key not in before
        or key not in after
        or abs(after[key] - before[key]) < 1
        or (after[key] - before[key]) * sign * log <= 0
    ):
        return ""
    return f"as {words} {_verb(before[key], after[key])} {pair(key, before[key], after[key])}"


def _verb(before: float, after: float) -> str:
    return "rose" if after > before else "fell"


# ----------------------------------------------------------------------------------------------------------------------
# Warps and multiprocessors
# ----------------------------------------------------------------------------------------------------------------------

LIMITS = {
    "blocks_by_registers": ("registers", "registers a thread"),
    "blocks_by_shared": ("shared_bytes", "shared memory a block"),
    "blocks_by_warps": ("block_threads", "threads a block"),
}
"""What keeps blocks off a multiprocessor: the limit, the figure that sets it, its name."""


def _warps(before: Figures, after: Figures) -> LogPart:
    """Fewer warps share the waiting: fewer fit on a multiprocessor, or the grid has fewer."""
    key, fits = "occupancy_pct", "theoretical_occupancy_pct"
    log = -_log(before[key], after[key])
    because = ""
    if before.get(fits) and after.get(fits):
        fitting = -_log(before[fits], after[fits])
        if abs(fitting) < NOISE and before.get("grid") != after.get("grid") and abs(log) > 4 * NOISE:
            return LogPart("grid", before.get("grid", 0.0), after.get("grid", 0.0), log)
        because = _why_fewer(before, after) if log * fitting > 0 else ""
    return LogPart(key, before[key], after[key], log, because)


def _why_fewer(before: Figures, after: Figures) -> str:
    """Which resource decides how many warps fit on the side that has fewer, where it is another on the other side."""
    tighter = min((before, after), key=lambda side: side["theoretical_occupancy_pct"])
    known = {limit: tighter[limit] for limit in (*LIMITS, "blocks_by_limit") if tighter.get(limit)}
    for limit, (key, words) in LIMITS.items():
        if limit in known and known[limit] == min(known.values()) and before.get(key) != after.get(key):
            old, new = before.get(key, 0.0), after.get(key, 0.0)
            return f"as {words} {_verb(old, new)} {pair(key, old, new)}"
    return ""


def _idle(before: Figures, after: Figures) -> Iterator[LogPart]:
    """Multiprocessors without a block: too few blocks, or a last wave that is not full."""
    shares = [
        side["sm_active_cycles"] / side["elapsed_cycles"]
        for side in (before, after)
        if side.get("sm_active_cycles") and side.get("elapsed_cycles")
    ]
    if len(shares) < 2:
        return
    log = -_log(shares[0], shares[1])
    if before.get("grid") != after.get("grid") and before.get("grid") and after.get("grid"):
        yield LogPart("grid", before["grid"], after["grid"], log)
    else:
        yield LogPart("active_pct", 100 * shares[0], 100 * shares[1], log)


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


def _merged(found: Iterable[LogPart]) -> list[LogPart]:
    """One part for each figure."""
    merged: dict[str, LogPart] = {}
    for part in found:
        if part.metric in merged:
            first = merged[part.metric]
            part = replace(first, log=part.log + first.log, because=first.because or part.because)
        merged[part.metric] = part
    return list(merged.values())


def _warp_cycles(side: Figures) -> float:
    return side["latency_cycles"] * side["instructions"]


def _log_of(before: Figures, after: Figures, key: str) -> float:
    return _log(before[key], after[key]) if before.get(key) and after.get(key) else 0.0


def _log(old: float, new: float) -> float:
    return math.log(new / old)


def _log_mean(old: float, new: float) -> float:
    """Between the two: (new - old) / ln(new / old)."""
    if old <= 0 or new <= 0:
        return 0.0
    return old if math.isclose(old, new) else (new - old) / math.log(new / old)
