"""How the cycles of two profiles differ: a part for each thing that moved, in logarithms of time, which add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kernelgate.bench.explain.metrics import STALL_PREFIX

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


@dataclass(frozen=True)
class Part:
    """What one figure's change does to the time."""

    metric: str
    """Empty: cycles that the profile puts under no name."""
    before: float
    after: float
    log: float
    """ln of the factor by which it makes the call slower."""
    because: str = ""


def parts(before: Figures, after: Figures) -> list[Part]:
    """Their logarithms sum up to that of the profiled call's time at equal clocks; nothing where the profiles have no
    duration or clock."""
    cycles = [_cycles(side) for side in (before, after)]
    calls = [_call_cycles(side) for side in (before, after)]
    if not all(cycles) or not all(calls):
        return []
    whole = _log(calls[0], calls[1])
    found = _kernel(before, after, _log(*cycles))
    # The kernel is a part of the call, whose other launches have their own.
    mean = _log_mean(calls[0], calls[1])
    weight = _log_mean(cycles[0], cycles[1]) / mean
    found = [replace(part, log=part.log * weight) for part in found]
    others = whole - sum(part.log for part in found)
    if abs(others) > NOISE and before.get("launches") and after.get("launches"):
        found.append(_launches(before, after, others))
    else:
        found.append(Part("", 0, 0, others))
    return found


def _launches(before: Figures, after: Figures, log: float) -> Part:
    if before["launches"] != after["launches"]:
        return Part("launches", before["launches"], after["launches"], log)
    return Part("call_us", before["call_us"], after["call_us"], log, "other kernels of the call")


def _cycles(side: Figures) -> float:
    return side.get("duration_us", 0.0) * side.get("sm_mhz", 0.0) or side.get("elapsed_cycles", 0.0)


def _call_cycles(side: Figures) -> float:
    if side.get("call_us") and side.get("duration_us"):
        return _cycles(side) * side["call_us"] / side["duration_us"]
    return _cycles(side)


# ----------------------------------------------------------------------------------------------------------------------
# One kernel
# ----------------------------------------------------------------------------------------------------------------------


def _kernel(before: Figures, after: Figures, whole: float) -> list[Part]:
    """Instructions, waits, warps and idle multiprocessors; what is left is a part without a name."""
    needed = ("instructions", "latency_cycles", "occupancy_pct")
    if not all(side.get(key) for side in (before, after) for key in needed):
        return [Part("", 0, 0, whole)]
    found = [*_instructions(before, after), *_events(before, after)]
    warps, found = _net(_warps(before, after), found)
    found = [*found, *warps, *_idle(before, after)]
    return [*_follow(found), Part("", 0, 0, whole - sum(part.log for part in found))]


def _instructions(before: Figures, after: Figures) -> Iterator[Part]:
    """Instructions that issue or wait for one another: how many they are, and how long each waits."""
    total = _log_mean(_warp_cycles(before), _warp_cycles(after))
    events = {STALL_PREFIX + reason for reasons in EVENTS.values() for reason in reasons}
    own = [key for key in before if key.startswith(STALL_PREFIX) and key in after and key not in events]
    more = _log(before["instructions"], after["instructions"])
    share = 0.0
    for key in own:
        old, new = (side[key] * side["instructions"] for side in (before, after))
        weight = _log_mean(old, new) / total
        share += weight
        yield Part(key, before[key], after[key], (new - old) / total - weight * more)
    yield Part(
        "instructions", before["instructions"], after["instructions"], share * more, _why_more(before, after, more)
    )


def _why_more(before: Figures, after: Figures, more: float) -> str:
    """What the instructions are, where another count shows it."""
    if more == 0:
        return ""
    sign = math.copysign(1, more)
    local = sign * _moved(before, after, "local_instructions")
    if local > sign * (after["instructions"] - before["instructions"]) / 3:
        return f"spills: {_counts(before, after, 'local_instructions')} load or store local memory"
    tensor = [side.get("tensor_pct", 0.0) * _cycles(side) for side in (before, after)]
    if all(side.get("tensor_pct") is not None for side in (before, after)) and max(tensor) > 0:
        work = -sign * _log(max(tensor[0], tensor[1] / 1e3), max(tensor[1], tensor[0] / 1e3))
        if work > max(4 * NOISE, 0.1 * abs(more)):
            verb = "do less of the work" if sign > 0 else "do more of the work"
            return f"the tensor cores {verb}: busy {before['tensor_pct']:.0f}% → {after['tensor_pct']:.0f}%"
    key = "threads_per_instruction"
    if before.get(key) and after.get(key) and -sign * _log(before[key], after[key]) > abs(more) / 4:
        verb = "diverge" if sign > 0 else "diverge less"
        return f"warps {verb}: {before[key]:.1f} → {after[key]:.1f} threads active in an instruction"
    return ""


def _events(before: Figures, after: Figures) -> Iterator[Part]:
    """Waits for memory, shared memory and barriers, each in the place of what made it longer."""
    total = _log_mean(_warp_cycles(before), _warp_cycles(after))
    for group, reasons in EVENTS.items():
        keys = [STALL_PREFIX + reason for reason in reasons]
        keys = [key for key in keys if key in before and key in after]
        old, new = (sum(side[key] for key in keys) * side["instructions"] for side in (before, after))
        if not keys or old == new:
            continue
        log = (new - old) / total
        steps = abs(_log(max(old, new / 1e3), max(new, old / 1e3)))
        left = 1.0
        for key, size in _asked(group, before, after, math.copysign(1, log)):
            taken = min(left, STEEPEST * size / steps)
            left -= taken
            yield _part(key, before, after, taken * log)
        widest = max(
            keys, key=lambda key: abs(after[key] * after["instructions"] - before[key] * before["instructions"])
        )
        yield Part(widest, before[widest], after[widest] * after["instructions"] / before["instructions"], left * log)


def _asked(group: str, before: Figures, after: Figures, sign: float) -> Iterator[tuple[str, float]]:
    """What a wait may come of, causes before their effects: each with how far it moved in that direction."""
    if group == "shared":
        conflicts = [side.get("bank_conflicts", 0.0) for side in (before, after)]
        rest = [side.get("shared_wavefronts", 0.0) - side.get("bank_conflicts", 0.0) for side in (before, after)]
        if all(rest):
            yield from _positive("bank_conflicts", sign * _log(1 + conflicts[0] / rest[0], 1 + conflicts[1] / rest[1]))
        yield from _positive("shared_wavefronts", sign * _log_of(before, after, "shared_wavefronts"))
    if group == "memory":
        requests = [side.get("load_requests", 0.0) + side.get("store_requests", 0.0) for side in (before, after)]
        local = [side.get("local_instructions", 0.0) for side in (before, after)]
        if all(requests):
            yield from _positive(
                "local_instructions", sign * _log(1 + local[0] / requests[0], 1 + local[1] / requests[1])
            )
            sectors = [side.get("load_sectors", 0.0) + side.get("store_sectors", 0.0) for side in (before, after)]
            if all(sectors):
                ratio = [a / b for a, b in zip(sectors, requests, strict=True)]
                yield from _positive("sectors_per_request", sign * _log(*ratio))
            copies = [side.get("async_copies", 0.0) for side in (before, after)]
            yield from _positive("async_copies", -sign * (copies[1] - copies[0]) / max(requests))
        yield from _positive("dram_bytes", sign * _log_of(before, after, "dram_bytes"))
        yield from _positive("load_requests", sign * _log_of(before, after, "load_requests"))
        yield from _positive("l2_sectors", sign * _log_of(before, after, "l2_sectors"))


def _positive(key: str, size: float) -> Iterator[tuple[str, float]]:
    if size > NOISE:
        yield key, size


def _part(key: str, before: Figures, after: Figures, log: float) -> Part:
    if key == "sectors_per_request":
        old, new = (
            (side["load_sectors"] + side["store_sectors"]) / (side["load_requests"] + side["store_requests"])
            for side in (before, after)
        )
        return Part(key, old, new, log)
    because = ""
    if key == "dram_bytes" and "l2_hit_pct" in before and "l2_hit_pct" in after:
        old, new = before["l2_hit_pct"], after["l2_hit_pct"]
        if log * (old - new) > 0 and abs(old - new) > 1:
            because = f"L2 hit rate {'fell' if new < old else 'rose'} {old:.1f} → {new:.1f}%"
    return Part(key, before.get(key, 0.0), after.get(key, 0.0), log, because)


def _warps(before: Figures, after: Figures) -> list[Part]:
    """Fewer warps share the waiting: fewer fit on a multiprocessor, or the grid has fewer."""
    key, fits = "occupancy_pct", "theoretical_occupancy_pct"
    log = -_log(before[key], after[key])
    if not (before.get(fits) and after.get(fits)):
        return [Part(key, before[key], after[key], log)]
    fitting = -_log(before[fits], after[fits])
    if abs(fitting) < NOISE and before.get("grid") != after.get("grid") and abs(log) > 4 * NOISE:
        return [Part("grid", before["grid"], after["grid"], log)]
    return [Part(key, before[key], after[key], log)]


def _idle(before: Figures, after: Figures) -> Iterator[Part]:
    """Multiprocessors without a block: too few blocks, or a last wave that is not full."""
    shares = [
        side["sm_active_cycles"] / side["elapsed_cycles"]
        for side in (before, after)
        if side.get("sm_active_cycles") and side.get("elapsed_cycles")
    ]
    if len(shares) < 2:
        return
    log = -_log(shares[0], shares[1])
    if before.get("grid") != after.get("grid") and "grid" in before and "grid" in after:
        yield Part("grid", before["grid"], after["grid"], log)
    else:
        yield Part("active_pct", 100 * shares[0], 100 * shares[1], log)


def _net(warps: Iterable[Part], found: list[Part]) -> tuple[list[Part], list[Part]]:
    """Warps that are fewer also wait less for each other: what waits moved the other way belongs to them."""
    (one,) = warps
    against = [part for part in found if part.log * one.log < 0 and part.metric != "instructions"]
    size = sum(abs(part.log) for part in against)
    taken = min(size, abs(one.log))
    if not taken:
        return [one], found
    keep = 1 - taken / size
    rest = [replace(part, log=part.log * keep) if part in against else part for part in found]
    return [replace(one, log=one.log - math.copysign(taken, one.log))], rest


def _follow(found: list[Part]) -> list[Part]:
    """One part for each figure."""
    merged: dict[str, Part] = {}
    for part in found:
        if part.metric in merged:
            part = replace(part, log=part.log + merged[part.metric].log)
        merged[part.metric] = part
    return list(merged.values())


def _warp_cycles(side: Figures) -> float:
    return side["latency_cycles"] * side["instructions"]


def _moved(before: Figures, after: Figures, key: str) -> float:
    return after.get(key, 0.0) - before.get(key, 0.0)


def _counts(before: Figures, after: Figures, key: str) -> str:
    return f"{before.get(key, 0.0):,.0f} → {after.get(key, 0.0):,.0f}"


def _log_of(before: Figures, after: Figures, key: str) -> float:
    return _log(before[key], after[key]) if before.get(key) and after.get(key) else 0.0


def _log(old: float, new: float) -> float:
    return math.log(new / old)


def _log_mean(old: float, new: float) -> float:
    """Between the two: (new - old) / ln(new / old)."""
    if old <= 0 or new <= 0:
        return 0.0
    return old if math.isclose(old, new) else (new - old) / math.log(new / old)
