"""Static gates: what changed in what the compiler made, and which of its warnings only the head has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kernelgate.bench.core.documentation import page
from kernelgate.bench.record import MAX_WARNINGS, Build, CompilerWarning, KernelFacts, RunRecord, Side
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.policy.policy import Static

StaticCode = Literal["new_spills", "occupancy_loss"]
ROUNDING: Final = 0.01
"""Percentage points: records hold occupancy with two decimals."""


@dataclass(frozen=True)
class StaticFinding:
    code: StaticCode
    severity: Literal["fail", "warn"]
    kernel: str
    target: str
    message: str
    card: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.kernel} for {self.target}: {self.message}"


@dataclass(frozen=True)
class Pair:
    """One kernel for one target; no base where the head is the first to have it."""

    base: KernelFacts | None
    head: KernelFacts
    card: str = ""


def shared_before(pair: Pair) -> int | None:
    """The base's shared memory, where it and the head's are the same sum: with the launch's part or without it."""
    if pair.base is None or (pair.base.dynamic_shared_bytes is None) != (pair.head.dynamic_shared_bytes is None):
        return None
    return pair.base.shared_bytes


def pairs(builds: Sequence[Build]) -> tuple[Pair, ...]:
    """The head's kernels beside the base's of the same card, name and target."""
    bases = dict(_kernels(builds, "base"))
    return tuple(Pair(bases.get(key), one, key[0]) for key, one in _kernels(builds, "head"))


def _kernels(builds: Sequence[Build], side: Side) -> Iterator[tuple[tuple[str, str, str], KernelFacts]]:
    ours = (build for build in builds if build.side == side)
    return (((build.card, one.target, one.name), one) for build in ours for one in build.kernels)


def judge(builds: Sequence[Build], policy: Static) -> tuple[StaticFinding, ...]:
    """New spills and lost occupancy, as far as the policy asks for them. A kernel without a base is judged alone."""
    losses = ((pair, code, message) for pair in pairs(builds) for code, message in _losses(pair))
    return tuple(
        StaticFinding(code, severity, pair.head.name, pair.head.target, message, pair.card)
        for pair, code, message in losses
        if (severity := getattr(policy, code)) != "ignore"
    )


def unseen(builds: Sequence[Build], policy: Static) -> tuple[Line, ...]:
    """What the gate on occupancy cannot see, where the policy has one, in a sentence."""
    found = list(_uncompared(builds)) if policy.occupancy_loss == "fail" else []
    if not found:
        return ()
    (kernel, gpu, why), *others = found
    more = f" and {len(others)} more" if others else ""
    return (("the occupancy of ", Code(kernel), f" on the {gpu}{more} cannot be compared: {why}"),)


def _uncompared(builds: Sequence[Build]) -> Iterator[tuple[str, str, str]]:
    """Kernel, GPU and reason. A kernel that is gone may be a new one by another name, where that has less."""
    bases, heads = (dict(_kernels(builds, side)) for side in ("base", "head"))
    for key, base in bases.items():
        head, beside = heads.get(key), {other: one for other, one in heads.items() if other[:2] == key[:2]}
        new = [one.occupancy_pct for other, one in beside.items() if other not in bases]
        for gpu, was in base.occupancy_pct.items():
            if not beside or (head and gpu not in head.occupancy_pct):
                yield base.name, gpu, "the head's is not known"
            elif not head and any(pct.get(gpu, 0.0) < was - ROUNDING for pct in new):
                yield base.name, gpu, "the head has no kernel of this name"


def _losses(pair: Pair) -> Iterator[tuple[StaticCode, str]]:
    head, base = pair.head, pair.base
    before, after = base.spill_bytes or 0 if base else 0, head.spill_bytes or 0
    if after > before:
        yield "new_spills", f"{after} bytes of registers are spilled to local memory; the base spills {before}"
    for gpu, now in head.occupancy_pct.items():
        was = base.occupancy_pct.get(gpu) if base else None
        if was is not None and now < was - ROUNDING:
            because = f", limited by {head.occupancy_limits[gpu]}" if head.occupancy_limits.get(gpu) else ""
            yield "occupancy_loss", f"occupancy on the {gpu} falls from {was:g}% to {now:g}%{because}"


def to_text(builds: Sequence[Build]) -> str:
    return "\n".join(line for pair in pairs(builds) for line in _lines(pair)) or "no device code"


def _lines(pair: Pair) -> Iterator[str]:
    head, base = pair.head, pair.base or pair.head
    yield f"{head.name} for {head.target}"
    for name, key in _FIGURES:
        if (after := getattr(head, key)) is not None:
            yield f"  {name}: {formatting.arrow(getattr(base, key), after)}"
    for gpu, percent in head.occupancy_pct.items():
        shown = formatting.arrow(base.occupancy_pct.get(gpu), percent)
        yield f"  occupancy on the {gpu}: {shown}%, limited by {head.occupancy_limits.get(gpu, '?')}"
    if head.dynamic_shared_bytes is None and not head.occupancy_pct:
        why = f"the library does not record its launches (see {page('CUDA_COOKBOOK.md#occupancy')})"
        yield f"  occupancy: unknown, because {why}"
    counts = head.instructions.items()
    mix = (f"{kind} {formatting.arrow(base.instructions.get(kind, 0), count)}" for kind, count in counts)
    yield f"  instructions: {', '.join(mix)}"


_FIGURES = (
    ("registers per thread", "registers"),
    ("spilled bytes", "spill_bytes"),
    ("stack bytes", "stack_bytes"),
    ("static shared bytes", "static_shared_bytes"),
    ("dynamic shared bytes", "dynamic_shared_bytes"),
    ("threads per block", "threads"),
)


_LINE = re.compile(r"\bline \d+")


def new_warnings(
    record: RunRecord, changed: Collection[str] | None
) -> Iterator[tuple[tuple[CompilerWarning, ...], bool]]:
    """Of each card whose head was compiled where somebody looked. `changed`: the only files that count, where known.
    Lines move as a file changes: a warning is known where the base has as many of its text in its file."""
    bases = {build.card: build.warnings for build in record.builds if build.side == "base"}
    for card, warnings in ((build.card, build.warnings) for build in record.builds if build.side == "head"):
        if warnings is None:
            continue
        base = bases.get(card)
        # A list that is full may lack what the base has, too.
        known = base if base is not None and len(base) < MAX_WARNINGS else None
        there, left, fresh = set(known or ()), Counter(map(_alike, known or ())), []
        for one in sorted(warnings, key=lambda one: one not in there):
            if left[_alike(one)]:
                left[_alike(one)] -= 1
            elif changed is None or one.file in changed:
                fresh.append(one)
        if known is not None:
            fresh.sort(key=lambda one: (one.file, one.line or 0, one.text))
        yield tuple(fresh), known is not None


def _alike(one: CompilerWarning) -> tuple[str, str]:
    return one.file, _LINE.sub("line", one.text)
