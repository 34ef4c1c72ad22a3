"""What is asserted of each case's change, and how surely: between the evidence and the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.ci.judge import stats
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.stats import Pooled


@dataclass(frozen=True)
class Inference:
    """One case's log change with the levels at which something may be said of it."""

    pooled: Pooled
    p: float | None
    """Two-sided, of no difference, adjusted over the cases of the record; None where the case is disqualified."""
    alpha: float
    """The level for a direction after this many processes."""
    equivalence_alpha: float
    miss: float
    """How often measuring may stop on the wrong side of a threshold."""
    family: int
    """How many cases share the level."""

    @property
    def certain(self) -> bool:
        """Whether there is a difference at all, in the direction of the change."""
        return self.p is not None and self.p <= self.alpha

    def interval(self, level: float) -> tuple[float, float]:
        """Interval of the log change, for this case alone."""
        return self._around(self.pooled.half_width(1 - level))

    def within(self, margin: float) -> bool:
        """Two one-sided tests (Schuirmann 1987): the log change lies within ±`margin`."""
        low, high = self._around(self.pooled.half_width(2 * self.equivalence_alpha))
        return -margin < low and high < margin

    def likely_interval(self) -> tuple[float, float]:
        """Either end is passed with probability `miss`: enough to stop on, not to claim."""
        return self._around(self.pooled.half_width(2 * self.miss))

    def detectable(self, power: float) -> float:
        """The smallest log change that a run like this one shows with probability `power`."""
        return self.pooled.detectable(self.alpha / self.family, power)

    def _around(self, width: float) -> tuple[float, float]:
        return self.pooled.change - width, self.pooled.change + width


def claims(evidences: Sequence[Evidence], policy: Policy) -> list[Inference | None]:
    """A claim for each case, None where there is nothing to estimate from. Sound cases share the level (Holm)."""
    expected = _expected_scatter(evidences, policy)
    pooled = [case.pooled(ratio) if case.groups else None for case, ratio in zip(evidences, expected, strict=True)]
    reached = [levels(case.against_baseline, case.processes, policy) for case in evidences]
    sound = {index: change.p() for index, change in enumerate(pooled) if change and not evidences[index].disqualified}
    shared = stats.holm_at_levels(list(sound.values()), [reached[index][0] for index in sound])
    adjusted = dict(zip(sound, shared, strict=True))
    return [
        Inference(change, adjusted.get(index), *reached[index], policy.certainty.miss, max(1, len(sound)))
        if change
        else None
        for index, change in enumerate(pooled)
    ]


def levels(against_baseline: bool, looks: int, policy: Policy) -> tuple[float, float]:
    """The levels for a direction and for equivalence at the look after so many processes."""
    certainty, processes = policy.certainty, policy.processes

    def spent(alpha: float) -> float:
        return stats.look_alpha(alpha, looks, processes.minimum, processes.limit, certainty.spending_shape)

    return spent(certainty.baseline_alpha if against_baseline else certainty.alpha), spent(certainty.equivalence_alpha)


def _expected_scatter(evidences: Sequence[Evidence], policy: Policy) -> list[float]:
    """For each case, the scatter ratio to expect from what the record's other cases show; never below 1.

    The policy's prior weighs as many processes as it says. A wild case counts only as far as chance could reach.
    """
    prior, reach = policy.spread.prior_processes, policy.limits.disagree_p
    groups = [None if case.against_baseline or not case.groups else case.groups[0] for case in evidences]
    weights = [group.df if group else 0 for group in groups]
    ratios = [group.df * min(group.scatter, stats.scatter_bound(reach, group.df)) if group else 0.0 for group in groups]
    total, weight = sum(ratios), sum(weights)
    return [max(1.0, (prior + total - own) / (prior + weight - df)) for own, df in zip(ratios, weights, strict=True)]
