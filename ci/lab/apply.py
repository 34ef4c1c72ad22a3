"""Which patterns apply now, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.lab.pattern import Pattern
from kernelgate.ci.lab.seen import Seen, Thresholds
from kernelgate.ci.lab.signals import SIGNALS


@dataclass(frozen=True)
class Applies:
    pattern: Pattern
    why: tuple[str, ...]
    """What was seen, with its figure; nothing where all patterns were asked for and this one does not apply."""


def applying(patterns: Iterable[Pattern], seen: Seen, limits: Thresholds) -> tuple[Applies, ...]:
    """Those with a signal that fires, in their order. Raises KernelgateError for a signal that does not exist."""
    return tuple(one for one in judged(patterns, seen, limits) if one.why)


def judged(patterns: Iterable[Pattern], seen: Seen, limits: Thresholds) -> tuple[Applies, ...]:
    """All of them, each with what was seen."""
    return tuple(Applies(one, _why(one, seen, limits)) for one in patterns)


def _why(pattern: Pattern, seen: Seen, limits: Thresholds) -> tuple[str, ...]:
    strange = next((name for name in pattern.signals if name not in SIGNALS), None)
    if strange is not None:
        raise KernelgateError(
            f"pattern {pattern.name}: no signal is called {strange!r}; there are {', '.join(SIGNALS)}"
        )
    found = (SIGNALS[name](seen, limits) for name in pattern.signals)
    return tuple(dict.fromkeys(one for one in found if one is not None))
