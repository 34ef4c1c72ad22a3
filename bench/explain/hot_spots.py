"""Which lines and instructions took a kernel's samples: from a report's counters by instruction.

Nsight Compute samples the warps of a launch at intervals, and counts for each instruction how often a warp was found
at it, and in which state ("Source Counters"; the counters `smsp__pcsamp_*`). `--set full` collects them, a quick set
does not.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from kernelgate.bench.record import MAX_HOT_INSTRUCTIONS, MAX_HOT_LINES, MAX_HOT_TEXT, HotInstruction, HotLine, HotSpots

SAMPLES = "smsp__pcsamp_sample_count"
STATE = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"
"""A second count of the same samples, of those cycles in which no warp was issued."""

_ADDRESS = re.compile(r" 0x[0-9a-f]{8,}$")
"""Behind a jump: where its target was in this very launch."""


def of_action(action: Any, known: set[str]) -> HotSpots | None:
    """The hot spots of one launch, its files as the line tables name them; None where the report has no samples by
    instruction."""
    samples = _by_address(action, SAMPLES) if SAMPLES in known else {}
    total = sum(samples.values())
    if not total:
        return None
    states: dict[int, Counter[str]] = defaultdict(Counter)
    for name in known:
        if name.startswith(STATE) and not name.endswith(NOT_ISSUED):
            for address, count in _by_address(action, name).items():
                states[address][name.removeprefix(STATE)] = count
    lines: Counter[tuple[str, int]] = Counter()
    line_states: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    instructions: list[HotInstruction] = []
    for address, count in sorted(samples.items(), key=lambda one: (-one[1], one[0])):
        place = _place(action, address)
        if place is not None:
            lines[place] += count
            line_states[place].update(states[address])
        if len(instructions) < MAX_HOT_INSTRUCTIONS:
            file, line = place or (None, None)
            sass = _ADDRESS.sub("", " ".join(str(action.sass_by_pc(address) or "").split()))[:MAX_HOT_TEXT]
            stall = _most(states[address])
            instructions.append(HotInstruction(sass=sass, file=file, line=line, samples=count, stall=stall))
    hottest = sorted(lines.items(), key=lambda one: (-one[1], one[0]))[:MAX_HOT_LINES]
    listed = tuple(
        HotLine(file=place[0], line=place[1], samples=count, stall=_most(line_states[place]))
        for place, count in hottest
    )
    return HotSpots(samples=total, lines=listed, instructions=tuple(instructions))


def _most(states: Counter[str]) -> str | None:
    """The state of most samples; of two alike the first by name."""
    return min(states, key=lambda state: (-states[state], state))[:MAX_HOT_TEXT] if states else None


def _by_address(action: Any, name: str) -> dict[int, int]:
    """A counter's value at each instruction's address, where it is not zero."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    addresses = metric.correlation_ids()
    counts: Counter[int] = Counter()
    for index in range(metric.num_instances()):
        counts[addresses.as_uint64(index)] += metric.as_uint64(index)
    return {address: count for address, count in counts.items() if count}


def _place(action: Any, address: int) -> tuple[str, int] | None:
    """File and line that an instruction was compiled from; None where there is no line table."""
    info = action.source_info(address)
    if info is None or not info.file_name() or info.line() < 1:
        return None
    return str(info.file_name())[-MAX_HOT_TEXT:], int(info.line())
