"""Static gates: what changed between base and head in what the compiler made, and what the policy says of it. Also
which of the compilers' warnings are news: those that the head has and the base has not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kernelgate.bench.record import MAX_WARNINGS, Build, CompilerWarning, KernelFacts, RunRecord
from kernelgate.ci.policy.policy import Static

Severity = Literal["fail", "warn"]


@dataclass(frozen=True)
class StaticFinding:
    code: Literal["new_spills", "occupancy_loss"]
    severity: Severity
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


def pairs(builds: Iterable[Build]) -> tuple[Pair, ...]:
    """The head's kernels beside the base's of the same card, name and target."""
    listed = [(build, one) for build in builds for one in build.kernels]
    bases = {(build.card, one.target, one.name): one for build, one in listed if build.side == "base"}
    return tuple(
        Pair(bases.get((build.card, one.target, one.name)), one, build.card)
        for build, one in listed
        if build.side == "head"
    )


def judge(builds: Iterable[Build], policy: Static) -> tuple[StaticFinding, ...]:
    """New spills and lost occupancy, as far as the policy asks for them. A kernel without a base is judged alone."""
    found: list[StaticFinding] = []
    for pair in pairs(builds):
        if policy.new_spills != "ignore":
            found += _spills(pair, policy.new_spills)
        if policy.occupancy_loss != "ignore":
            found += _occupancy(pair, policy.occupancy_loss)
    return tuple(found)


def _spills(pair: Pair, severity: Severity) -> Iterator[StaticFinding]:
    before = (pair.base.spill_bytes or 0) if pair.base else 0
    after = pair.head.spill_bytes or 0
    if after > before:
        message = f"{after} bytes of registers are spilled to local memory; the base spills {before}"
        yield StaticFinding("new_spills", severity, pair.head.name, pair.head.target, message, pair.card)


def _occupancy(pair: Pair, severity: Severity) -> Iterator[StaticFinding]:
    if pair.base is None:
        return
    for gpu, after in pair.head.occupancy_pct.items():
        before = pair.base.occupancy_pct.get(gpu)
        if before is not None and after < before - 0.01:
            limit = pair.head.occupancy_limits.get(gpu, "")
            because = f", limited by {limit}" if limit else ""
            message = f"occupancy on the {gpu} falls from {before:g}% to {after:g}%{because}"
            yield StaticFinding("occupancy_loss", severity, pair.head.name, pair.head.target, message, pair.card)


def exit_code(findings: Iterable[StaticFinding]) -> int:
    """1 where one blocks."""
    return int(any(finding.severity == "fail" for finding in findings))


def to_text(builds: Iterable[Build]) -> str:
    """A block for each kernel, base → head where they differ."""
    return "\n".join(line for pair in pairs(builds) for line in _lines(pair)) or "no device code"


def _lines(pair: Pair) -> Iterator[str]:
    head, base = pair.head, pair.base
    yield f"{head.name} for {head.target}"
    for name, key in _FIGURES:
        after = getattr(head, key)
        before = getattr(base, key) if base else after
        if after is not None:
            yield f"  {name}: {_arrow(before, after)}"
    for gpu, percent in head.occupancy_pct.items():
        was = base.occupancy_pct.get(gpu, percent) if base else percent
        yield f"  occupancy on the {gpu}: {_arrow(was, percent)}%, limited by {head.occupancy_limits.get(gpu, '?')}"
    if head.dynamic_shared_bytes is None and not head.occupancy_pct:
        why = "the library does not record its launches (see docs/CUDA_COOKBOOK.md#occupancy)"
        yield f"  occupancy: unknown, because {why}"
    mix = ", ".join(
        f"{kind} {_arrow(base.instructions.get(kind, 0) if base else count, count)}"
        for kind, count in head.instructions.items()
    )
    yield f"  instructions: {mix}"


_FIGURES = (
    ("registers per thread", "registers"),
    ("spilled bytes", "spill_bytes"),
    ("stack bytes", "stack_bytes"),
    ("static shared bytes", "static_shared_bytes"),
    ("dynamic shared bytes", "dynamic_shared_bytes"),
    ("threads per block", "threads"),
)


def _arrow(before: float | None, after: float) -> str:
    return f"{after:g}" if before is None or before == after else f"{before:g} → {after:g}"


# ---- warnings --------------------------------------------------------------------------------------------------------

_LINE = re.compile(r"\bline \d+")


@dataclass(frozen=True)
class NewWarnings:
    """Of one card's head."""

    card: str
    warnings: tuple[CompilerWarning, ...]
    against_base: bool
    """Whether the base's are left out; else it is not known which of them it has."""


def new_warnings(record: RunRecord, changed: Collection[str] | None) -> tuple[NewWarnings, ...]:
    """Of each card whose head was compiled where somebody looked. `changed`: the only files that count, where known.

    Lines move as a file changes: a warning is known where the base has as many of its text in its file. Of several
    alike, those at the base's very lines are the known ones first.
    """
    bases = {build.card: build.warnings for build in record.builds if build.side == "base"}
    found = []
    for head in record.builds:
        if head.side != "head" or head.warnings is None:
            continue
        base = bases.get(head.card)
        # A list that is full may lack what the base has, too.
        against_base = base is not None and len(base) < MAX_WARNINGS
        known = (base or ()) if against_base else ()
        there, left = {(one.file, one.line, one.text) for one in known}, Counter(map(_alike, known))
        fresh = []
        for one in sorted(head.warnings, key=lambda one: (one.file, one.line, one.text) not in there):
            if left[_alike(one)]:
                left[_alike(one)] -= 1
            elif changed is None or one.file in changed:
                fresh.append(one)
        if against_base:
            fresh.sort(key=lambda one: (one.file, one.line or 0, one.text))
        found.append(NewWarnings(head.card, tuple(fresh), against_base))
    return tuple(found)


def _alike(one: CompilerWarning) -> tuple[str, str]:
    return one.file, _LINE.sub("line", one.text)
