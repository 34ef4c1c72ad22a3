"""A time budget in words: what moved, and how many points of the change that is."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.bench.explain import metrics
from kernelgate.ci.document import formatting
from kernelgate.ci.explain.budget import Budget, Contribution
from kernelgate.ci.explain.figures import pair

MOST = 3
"""Causes that are named."""
LARGE = 0.25
"""The share of the change from which on what was made up for, or stays unexplained, is said."""
MOSTLY = 0.5

_COUNTS = {
    "bank_conflicts": "shared-memory bank conflicts",
    "shared_wavefronts": "shared-memory wavefronts",
    "async_copies": "asynchronous copies to shared memory",
    "dram_bytes": "DRAM traffic",
    "load_requests": "loads of global memory",
    "l2_sectors": "L2 sectors",
    "launches": "kernel launches in a call",
    "grid": "blocks",
    "sectors_per_request": "sectors moved for each access of global memory",
}
_WAITS = {
    "stall_long_scoreboard": "for L1, L2 or DRAM (long scoreboard)",
    "stall_lg_throttle": "for the queue of global and local memory",
    "stall_short_scoreboard": "for shared memory or special functions (short scoreboard)",
    "stall_mio_throttle": "for the queue of shared memory and special functions",
    "stall_barrier": "at barriers",
    "stall_wait": "of fixed latency",
    "stall_math_pipe_throttle": "for a busy math pipe",
    "stall_not_selected": "for other warps' turns to issue",
    "stall_no_instruction": "for the next instruction (instruction cache)",
    "stall_gmma": "for warpgroup matrix operations",
    "stall_drain": "for stores on their way",
    "stall_dispatch_stall": "for the dispatcher",
    "stall_branch_resolving": "for branches",
    "stall_imc_miss": "for the constant cache",
}


def sentences(found: Budget) -> tuple[str, ...]:
    """The causes in one sentence, then what did not change; where the profiles do not show the change, that alone."""
    if not found.is_shown:
        return (_not_shown(found),)
    if not found.causes:
        return (f"the profile shows a change of {_profiled(found)}, but not what it comes of.",)
    unchanged = f"{_listed(found.unchanged)}: unchanged." if found.unchanged else ""
    return tuple(filter(None, (f"{'; '.join(_clauses(found))}.", unchanged[:1].upper() + unchanged[1:])))


def _clauses(found: Budget) -> Iterator[str]:
    change = abs(found.change_pct)
    first, *others = found.causes
    part = "in part " if sum(abs(one.share_pct) for one in found.causes) < MOSTLY * change else ""
    whole = f" of the {change:.1f}" if abs(first.share_pct) <= 1.05 * change else ""
    yield f"{part}{cause(first)}: {abs(first.share_pct):.1f}{whole} points"
    for one in others[: MOST - 1]:
        if abs(one.share_pct) >= LARGE * change:
            yield f"{cause(one)}: {abs(one.share_pct):.1f} points"
    sign = "−" if found.change_pct > 0 else "+"
    too_much = sum(abs(one.share_pct) for one in found.causes) > (1 + LARGE) * change
    if too_much and found.against and abs(found.against[-1].share_pct) >= LARGE * change:
        largest = found.against[-1]
        yield f"against that {cause(largest)}: {sign}{abs(largest.share_pct):.1f}"
    if found.unexplained_pct / found.change_pct >= LARGE:
        yield f"{abs(found.unexplained_pct):.1f} points stay unexplained"


def cause(one: Contribution) -> str:
    """What moved, from where to where, and what moved it: "3.8% more instructions executed, 24.9 → 25.9 M"."""
    because = f", {one.because}" if one.because else ""
    return f"{_moved(one)}{because}"


def _moved(one: Contribution) -> str:
    sides = pair(one.metric, one.before, one.after)
    more = one.after > one.before
    if one.metric == "instructions":
        return f"{_ratio(one)} instructions executed, {sides}"
    if one.metric == "local_instructions":
        return f"{'more' if more else 'fewer'} spills, {sides} instructions that load or store local memory"
    if one.metric == "occupancy_pct":
        return f"occupancy {sides}"
    if one.metric == "sm_mhz":
        return f"the SM clock {'rose' if more else 'fell'} while this was timed, {sides}"
    if one.metric == "active_pct":
        return f"multiprocessors have a block for {'more' if more else 'less'} of the time, {sides}"
    if one.metric == "call_us":
        return f"the call's other kernels take {'longer' if one.share_pct > 0 else 'less time'}; all of them, {sides}"
    if one.metric == "dram_bytes":
        return f"{'more' if more else 'less'} DRAM traffic, {sides}"
    if metrics.is_stall(one.metric):
        longer = "longer" if one.share_pct > 0 else "shorter"
        return f"{longer} waits {_WAITS.get(one.metric, f'({metrics.label(one.metric)})')}, {sides} an instruction"
    return f"{'more' if more else 'fewer'} {_COUNTS.get(one.metric, metrics.label(one.metric))}, {sides}"


def _ratio(one: Contribution) -> str:
    ratio = one.after / one.before if one.before else 0.0
    if ratio >= 2:
        return f"{ratio:.1f} times as many"
    return f"{100 * abs(ratio - 1):.1f}% {'more' if ratio > 1 else 'fewer'}"


def _not_shown(found: Budget) -> str:
    if found.profiled_pct is None:
        return "the profile does not say: it holds no duration of both sides."
    measured = formatting.percent(found.change_pct, 1, sign=True)
    return f"the profile does not show it: {_profiled(found)} there, at equal clocks, and {measured} as measured."


def _profiled(found: Budget) -> str:
    return formatting.percent(found.profiled_pct or 0.0, 1, sign=True)


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words)
