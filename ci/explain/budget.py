"""The time budget: a measured change of time, split into the causes that the two profiles show, and in words.

A kernel's cycles are the cycles that its warps spend, over the warps that share them: those of instructions that issue
or wait for one another, and those of waits for memory, shared memory and barriers (Nsight Compute's warp states, per
issued instruction). Logarithms of ratios add up, so each factor has its part: the logarithmic mean Divisia index of
Ang, Energy Policy 32 (2004). What moved a wait, such as spills, is named in its place where a count shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelgate.bench.explain import metrics
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.explain import split
from kernelgate.ci.explain.split import LogPart, Profiles

WORTH_A_WORD = 0.08
"""The share of the change from which on a contribution is named: with ten of less, most would still be named."""
LEAST_EXPLAINED = 0.25
"""Causes of less than this share of the change are not what it comes of."""
SUSPECTED = {"registers": ("registers", 0), "occupancy_pct": ("occupancy", 0.02), "local_instructions": ("spills", 0)}
"""What people suspect first, and the share by which it varies from run to run: counts do not."""
NOISE_POINTS = 1.5
"""Waits are times: two profiles of the same code differ by up to 1.5% of its time, and counts do not."""
SHOWN = (0.5, 3.0)
"""The profile shows a change if its own is this many times the measured one: caches are cold in a profile."""
SYMPTOMS = 2
"""A wait that costs so many times what a count costs, or less, may come of it: the count is named first."""
FOLLOWING = ("stall_barrier", "stall_not_selected", "active_pct")
"""Waits for other warps: they grow with whatever makes a warp slower."""


@dataclass(frozen=True)
class Contribution:
    """One cause's part of the change."""

    metric: str
    """The figure that moved, by its key in explain/metrics.py; `stall_…` for a wait."""
    before: float
    after: float
    share_pct: float
    """Percent of the base's time, positive where it costs time: shares and `unexplained_pct` sum to `change_pct`."""
    because: str = ""
    """What moved this figure, where the profiles show it: "as shared memory a block rose 48 → 144 KiB"."""

    @property
    def rank(self) -> int:
        """What a program asks for, then what it waits for, then what waits for its warps."""
        return 2 if self.metric in FOLLOWING else 1 if metrics.is_stall(self.metric) or self.metric == "call_us" else 0


@dataclass(frozen=True)
class Budget:
    """What became of the base's time: the bars of a waterfall from 0 to `change_pct`."""

    change_pct: float
    """The measured change of time, head against base; positive is slower."""
    contributions: tuple[Contribution, ...]
    """Those worth a word: the largest first, but causes before the waits that follow them; those against it last."""
    unexplained_pct: float
    """What is left of the change, in percent of the base's time."""
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
    def against(self) -> tuple[Contribution, ...]:
        """Those that make up for some of it, the largest last."""
        return tuple(one for one in self.contributions if one.share_pct * self.change_pct < 0) if self.is_shown else ()


def budget(
    before: Mapping[str, float],
    after: Mapping[str, float],
    change_pct: float,
    clocks: tuple[float, float] | None = None,
) -> Budget:
    """Splits the measured change by the figures of both profiles. Figures that are missing explain nothing. `clocks`:
    of the SMs while base and head were timed, in MHz; the profile says nothing of them."""
    sides = Profiles.usable(before, after)
    parts = split.parts(sides)
    total = sum(part.log for part in parts)
    profiled = as_percent(total) if parts else None
    if parts and clocks is not None and all(split.LEAST <= clock <= split.MOST for clock in clocks):
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
    large = (one for one in found if abs(one.share_pct) >= max(least, NOISE_POINTS if one.rank > 0 else 0.0) > 0)
    named = [one for one in large if one.metric]
    named.sort(key=lambda one: -math.copysign(one.share_pct, one.share_pct * change_pct))
    left_pct = change_pct - sum(one.share_pct for one in named)
    # The first one is the cause of the others, where one of them is that and costs enough.
    near = [one for one in named if one.share_pct / named[0].share_pct >= 1 / SYMPTOMS]
    first = sorted(near, key=lambda one: one.rank)[:1]
    causes_first = (*first, *(one for one in named if one not in first))
    unchanged = (
        words
        for key, (words, noise) in SUSPECTED.items()
        if sides.both(key) and abs(sides.after[key] - sides.before[key]) <= noise * sides.before[key]
    )
    return Budget(change_pct, causes_first, left_pct, profiled, tuple(unchanged))


# ---- In words --------------------------------------------------------------------------------------------------------

MOST = 3
"""Causes that are named."""
LARGE = 0.25
"""The share of the change from which on what was made up for, or stays unexplained, is said."""
MOSTLY = 0.5

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
    if not found.is_shown:
        apart = f"{profiled} under the profiler, at equal clocks and with cold caches, but {measured} as measured"
        return (f"not known: {apart}. {_ruled_out(found)}",)
    if not found.causes:
        return (f"not known: {profiled} under the profiler, and no figure of it says why. {_ruled_out(found)}",)
    unchanged = ", ".join(found.unchanged)
    rest = (f"{unchanged[0].upper()}{unchanged[1:]}: unchanged.",) if unchanged else ()
    return (f"{'; '.join(_clauses(found))}.", *rest)


def _ruled_out(found: Budget) -> str:
    if not found.unchanged:
        return "Nothing can be ruled out: registers, occupancy and spills changed or were not read."
    return f"Ruled out, since unchanged: {', '.join(found.unchanged)}."


def _clauses(found: Budget) -> Iterator[str]:
    change, explained = abs(found.change_pct), sum(abs(one.share_pct) for one in found.causes)
    first, *others = found.causes
    part = "in part " if explained < MOSTLY * change else ""
    # Together with what works against it, a cause may be more than the change; alone it is at most all of it.
    alone = not found.against or abs(found.against[-1].share_pct) < LARGE * change
    share = round(abs(first.share_pct), 1)
    points = f"all {change:.1f}" if alone and share >= round(change, 1) else f"{share:.1f} of the {change:.1f}"
    yield f"{part}{cause(first)}: {points} points"
    for one in others[: MOST - 1]:
        if abs(one.share_pct) >= LARGE * change:
            yield f"{cause(one)}: {abs(one.share_pct):.1f} points"
    for largest in found.against[-1:]:
        if explained > (1 + LARGE) * change and abs(largest.share_pct) >= LARGE * change:
            sign = "−" if found.change_pct > 0 else "+"
            yield f"against that {cause(largest)}: {sign}{abs(largest.share_pct):.1f}"
    if found.unexplained_pct / found.change_pct >= LARGE:
        yield f"{abs(found.unexplained_pct):.1f} points stay unexplained"


def cause(one: Contribution) -> str:
    """What moved, from where to where, and what moved it: "3.8% more instructions executed, 24.9 → 25.9 M"."""
    return ", ".join(filter(None, (_moved(one), one.because)))


def _moved(one: Contribution) -> str:
    key, more, costs = one.metric, one.after > one.before, one.share_pct > 0
    ratio = one.after / one.before if one.before else 0.0
    words = f"{{more}} {metrics.label(key)}, {{sides}}"
    if metrics.is_stall(key):
        known = metrics.METRICS.get(key)
        waits = known.waits if known and known.waits else f"({metrics.label(key)})"
        words = f"{'longer' if costs else 'shorter'} waits {waits}, {{sides}} an instruction"
    percent = f"{100 * abs(ratio - 1):.1f}% {'more' if ratio > 1 else 'fewer'}"
    return _MOVED.get(key, words).format(
        sides=metrics.pair(key, one.before, one.after),
        ratio=f"{ratio:.1f} times as many" if ratio >= 2 else percent,
        more="more" if more else "fewer",
        more_of="more" if more else "less",
        rose="rose" if more else "fell",
        longer="longer" if costs else "less time",
    )
