"""What is asserted of each case's change, and how surely: between the evidence and the gates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kernelgate.ci.judge import prior, stats
from kernelgate.ci.judge.case import Direction, Status
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.prior import HISTORY_TO_DIRECT_DF
from kernelgate.ci.judge.stats import GATES_P, INTERVAL_LEVEL, POWER, Pooled
from kernelgate.ci.policy.policy import TO_DIRECT, Gates, Policy

BASELINE_ALPHA: Final = 0.005
"""What alpha is for a comparison with a stored baseline, which was measured in other processes."""
EQUIVALENCE_ALPHA: Final = 0.01
"""The probability that a change at or beyond the margin is called equivalent, per case."""
SPENDING_SHAPE: Final = 0.5
"""How alpha is spent over the looks after each process: 0 spends hardly any on early looks (O'Brien and Fleming), 0.5
spends the same on each (Pocock), which takes the fewest processes where nothing changed."""
LOTTERY_PCT: Final = (6.0, 2.5)
"""What a lottery of placement may do to both of two processes alike, and to all of three, where no history excludes it.
One process in five that is 2% off is both of two in 4% of records, and all of three in 0.8%. A change of a third is no
such lottery: a direction before TO_DIRECT processes takes a change beyond these, and EARLY_SHARE of alpha at each of
these looks."""
EARLY_SHARE: Final = 0.5


@dataclass(frozen=True)
class Inference:
    """One log change with the levels at which something may be said of it after so many processes."""

    pooled: Pooled
    p: float | None
    """Two-sided, of no difference, adjusted over the family; None where the case is disqualified."""
    alpha: float
    """For a direction."""
    equivalence_alpha: float
    least: float = 0.0
    """A smaller log change shows no direction: so few processes may all be off by as much."""
    family: int = 1
    """How many cases share the level."""

    @property
    def early(self) -> bool:
        """Too few processes for a direction of a change of this size."""
        return 0 < self.least >= abs(self.pooled.change)

    @property
    def certain(self) -> bool:
        """Whether there is a difference at all, in the direction of the change."""
        return self.p is not None and self.p <= self.alpha and not self.early

    @property
    def direction(self) -> Direction:
        if not self.certain:
            return Direction.NONE
        return Direction.SLOWER if self.pooled.change > 0 else Direction.FASTER

    @property
    def shown(self) -> bool:
        """Whether a gate may act on the difference."""
        return self.certain and self.p is not None and self.p < GATES_P

    def likely(self, slower_pct: float, faster_pct: float) -> Status:
        """What is not certain, by whether its whole interval lies past one of these gates."""
        low, high = self.interval()
        if low > math.log1p(slower_pct / 100):
            return Status.LIKELY_SLOWER
        return Status.LIKELY_FASTER if high <= math.log1p(-faster_pct / 100) else Status.UNDECIDED

    def interval(self, alpha: float = 1 - INTERVAL_LEVEL) -> tuple[float, float]:
        """Which the log change lies outside of with probability `alpha` at most."""
        width = self.pooled.half_width(alpha)
        return self.pooled.change - width, self.pooled.change + width

    def within(self, margin: float) -> bool:
        """Two one-sided tests (Schuirmann 1987): the log change lies within ±`margin`."""
        low, high = self.interval(2 * self.equivalence_alpha)
        return -margin < low and high < margin

    def detectable(self) -> float:
        """The smallest log change that a run like this one shows with probability POWER."""
        seen = self.pooled.detectable(self.alpha / self.family, POWER)
        return max(seen, self.least + self.pooled.half_width(2 * (1 - POWER))) if self.least else seen


def within_gates(claim: Inference, gates: Gates) -> Status:
    """What a change is that no gate acts on."""
    if claim.within(math.log1p(gates.margin_pct / 100)):
        return Status.UNCHANGED
    beyond = {Direction.SLOWER: Status.SLOWER, Direction.FASTER: Status.FASTER}
    return beyond.get(claim.direction, Status.UNDECIDED)


def claims(evidences: Sequence[Evidence], policy: Policy) -> list[Inference | None]:
    """A claim for each case, None where there is nothing to estimate from. Sound cases share the level (Holm)."""
    # How likely each paired case is a usual one, as the record's other cases show it.
    known = {index: case for index, case in enumerate(evidences) if case.groups}
    fits = {index: fit for index, case in known.items() if (fit := case.groups[0].fit())}
    usual = dict(zip(fits, prior.shares(list(fits.values())), strict=True))
    own = {index: look([case], case.pooled(usual.get(index)), policy) for index, case in known.items()}
    sound = [index for index, case in known.items() if not case.disqualified]
    found = {index: replace(claim, family=max(1, len(sound))) for index, claim in own.items()}
    found |= zip(sound, shared([own[index] for index in sound]), strict=True)
    return [found.get(index) for index in range(len(evidences))]


def shared(family: Sequence[Inference]) -> list[Inference]:
    """The claims with their p adjusted over the family that they are (Holm). What may show no direction yet takes no
    part in the others' claims."""
    own, count = [claim.pooled.p() for claim in family], len(family)
    held = [1.0 if claim.early else p for claim, p in zip(family, own, strict=True)]
    adjusted = stats.holm(held, [claim.alpha for claim in family])
    return [
        replace(claim, p=min(1.0, count * p) if claim.early else together, family=count)
        for claim, p, together in zip(family, own, adjusted, strict=True)
    ]


def look(cases: Sequence[Evidence], change: Pooled, policy: Policy) -> Inference:
    """The look at the `change` of these cases together: as the one with the most processes has had. Where a history
    excludes of each that placement is a lottery, the first looks are like all others."""
    rules = policy.processes
    processes = max(case.processes for case in cases)
    free = all(
        case.against_baseline or (case.known is not None and case.known.df >= HISTORY_TO_DIRECT_DF) for case in cases
    )
    first = rules.minimum if free else max(rules.minimum, TO_DIRECT)
    direction = BASELINE_ALPHA if cases[0].against_baseline else policy.certainty.alpha
    alpha, equivalence_alpha = (
        stats.look_alpha(level, processes, since, rules.limit, SPENDING_SHAPE)
        for level, since in ((direction, first), (EQUIVALENCE_ALPHA, rules.minimum))
    )
    if processes >= first:
        return Inference(change, None, alpha, equivalence_alpha)
    # A single process, which `kernelgate.paired` asks about, shows no direction at all.
    least = math.log1p(LOTTERY_PCT[processes - 2] / 100) if processes > 1 else math.inf
    return Inference(change, None, EARLY_SHARE * direction, equivalence_alpha, least)
