"""What is asserted of each case's change, and how surely: between the evidence and the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kernelgate.ci.judge import spread, stats
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.spread import HISTORY_TO_DIRECT_DF
from kernelgate.ci.judge.stats import MISS, POWER, Pooled
from kernelgate.ci.policy.policy import TO_DIRECT, Policy

BASELINE_ALPHA: Final = 0.005
"""What alpha is for a comparison with a stored baseline, which was measured in other processes."""
EQUIVALENCE_ALPHA: Final = 0.01
"""The probability that a change at or beyond the margin is called equivalent, per case."""
SPENDING_SHAPE: Final = 0.5
"""How alpha is spent over the looks after each process: 0 spends hardly any on early looks (O'Brien and Fleming), 0.5
spends the same on each (Pocock), which takes the fewest processes where nothing changed."""


@dataclass(frozen=True)
class Look:
    """The levels at which something may be said after so many processes."""

    alpha: float
    """For a direction."""
    equivalence_alpha: float
    early: bool
    """Too few processes for any direction: `alpha` is that of the first look that may show one."""


@dataclass(frozen=True)
class Inference:
    """One log change with the levels at which something may be said of it."""

    pooled: Pooled
    p: float | None
    """Two-sided, of no difference, adjusted over the family; None where the case is disqualified."""
    look: Look
    family: int
    """How many cases share the level."""

    @property
    def certain(self) -> bool:
        """Whether there is a difference at all, in the direction of the change."""
        return self.p is not None and self.p <= self.look.alpha and not self.look.early

    def interval(self, level: float) -> tuple[float, float]:
        """Interval of the log change, for this case alone."""
        return self._around(self.pooled.half_width(1 - level))

    def within(self, margin: float) -> bool:
        """Two one-sided tests (Schuirmann 1987): the log change lies within ±`margin`."""
        low, high = self._around(self.pooled.half_width(2 * self.look.equivalence_alpha))
        return -margin < low and high < margin

    def likely_interval(self) -> tuple[float, float]:
        """Either end is passed with probability MISS: enough to stop on, not to claim."""
        return self._around(self.pooled.half_width(2 * MISS))

    def detectable(self) -> float:
        """The smallest log change that a run like this one shows with probability POWER."""
        return self.pooled.detectable(self.look.alpha / self.family, POWER)

    def _around(self, width: float) -> tuple[float, float]:
        return self.pooled.change - width, self.pooled.change + width


def claims(evidences: Sequence[Evidence], policy: Policy) -> list[Inference | None]:
    """A claim for each case, None where there is nothing to estimate from. Sound cases share the level (Holm)."""
    usual = _usual(evidences)
    pooled = [case.pooled(usual.get(index)) if case.groups else None for index, case in enumerate(evidences)]
    looks = [look([case], policy) for case in evidences]
    sound = [index for index, change in enumerate(pooled) if change and not evidences[index].disqualified]
    own = shared([pooled[index] for index in sound], [looks[index] for index in sound])
    adjusted = dict(zip(sound, own, strict=True))
    return [
        Inference(change, adjusted.get(index), looks[index], max(1, len(sound))) if change else None
        for index, change in enumerate(pooled)
    ]


def shared(changes: Sequence[Pooled | None], looks: Sequence[Look]) -> list[float]:
    """The changes' p, adjusted over the family that they are (Holm).

    What may show no direction yet takes no part in the others' claims.
    """
    own = [change.p() if change else 1.0 for change in changes]
    early = [one.early for one in looks]
    held = [1.0 if waits else p for p, waits in zip(own, early, strict=True)]
    adjusted = stats.holm_at_levels(held, [one.alpha for one in looks])
    return [
        min(1.0, len(own) * p) if waits else together for p, waits, together in zip(own, early, adjusted, strict=True)
    ]


def look(cases: Sequence[Evidence], policy: Policy) -> Look:
    """The look at these cases together: as the one with the most processes has had, and no direction before the one
    that needs the most for it may have any."""
    certainty, rules = policy.certainty, policy.processes
    processes = max(case.processes for case in cases)
    first = max(_first_look(case, rules.minimum) for case in cases)
    direction = BASELINE_ALPHA if cases[0].against_baseline else certainty.alpha

    def spent(alpha: float, since: int) -> float:
        return stats.look_alpha(alpha, processes, since, rules.limit, SPENDING_SHAPE)

    return Look(spent(direction, first), spent(EQUIVALENCE_ALPHA, rules.minimum), processes < first)


def _first_look(case: Evidence, minimum: int) -> int:
    """The processes that a direction takes: fewer where a history excludes that placement is a lottery."""
    known = case.known is not None and case.known.df >= HISTORY_TO_DIRECT_DF
    free = case.against_baseline or known
    return minimum if free else max(minimum, TO_DIRECT)


def _usual(evidences: Sequence[Evidence]) -> dict[int, float]:
    """By its place, how likely each paired case is a usual one, as the record's other cases show it."""
    fits = {
        index: found
        for index, case in enumerate(evidences)
        if not case.against_baseline and case.groups and (found := case.groups[0].fit())
    }
    return dict(zip(fits, spread.shares(list(fits.values())), strict=True))
