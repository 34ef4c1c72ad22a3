"""What is asserted of each case's change, and of the geometric mean of a card's cases, and how surely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import scipy

from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import prior, sentences, stats
from kernelgate.ci.judge.case import Direction, MeanVerdict, Status
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.prior import HISTORY_TO_DIRECT_DF
from kernelgate.ci.judge.stats import GATES_P, INTERVAL_LEVEL, POWER, Array, Pooled
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
    equivalence_alpha: float
    least: float = 0.0
    """A smaller log change shows no direction: so few processes may all be off by as much."""
    family: int = 1

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
    """The claims with their p adjusted over the family (Holm), in which what may show no direction yet has no part."""
    own, count = [claim.pooled.p() for claim in family], len(family)
    held = [1.0 if claim.early else p for claim, p in zip(family, own, strict=True)]
    adjusted = stats.holm(held, [claim.alpha for claim in family])
    return [
        replace(claim, p=min(1.0, count * p) if claim.early else together, family=count)
        for claim, p, together in zip(family, own, adjusted, strict=True)
    ]


def look(cases: Sequence[Evidence], change: Pooled, policy: Policy) -> Inference:
    """The look at the `change` of these cases together, as the one with the most processes has had."""
    rules = policy.processes
    processes = max(case.processes for case in cases)
    free = all(case.against_baseline or (case.known and case.known.df >= HISTORY_TO_DIRECT_DF) for case in cases)
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


# ---- All cases of a card together ------------------------------------------------------------------------------------
# What a process does to all of its cases alike must not count once for each of them, so the correlation between cases
# of a process is estimated from the data and widens the interval of the mean.

CORRELATIONS = (np.arange(20) + 0.5) / 20
"""Between cases of one process; beforehand, each is as likely."""
DRAWINGS: Final = 1024
"""Of the cases' errors, so that one in a thousand is among them."""
Member: TypeAlias = tuple[Evidence, Pooled]
"""A case of a mean, and its change."""


def mean_verdicts(
    evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy
) -> tuple[MeanVerdict, ...]:
    """Of each card with several cases that can be judged. The cards share the level (Holm)."""
    compared = Counter(case.key.card for case in evidences if not case.alone)
    by_card: dict[str, list[Member]] = {case.key.card: [] for case in evidences}
    for case, claim in zip(evidences, claims, strict=True):
        if claim and not case.disqualified:
            by_card[case.key.card].append((case, claim.pooled))
    several = {card: members for card, members in by_card.items() if len(members) > 1}
    looks = [look([case for case, _ in one], joint(one), policy) for one in several.values()]
    found = []
    for (card, members), claim in zip(several.items(), shared(looks), strict=True):
        processes, (low, high) = [case.processes for case, _ in members], claim.interval()
        verdict = MeanVerdict(
            card=card,
            status=_status(claim, processes, compared[card], policy),
            direction=claim.direction,
            sentence="",
            change_pct=as_percent(claim.pooled.change),
            interval_pct=(as_percent(low), as_percent(high)),
            p=1.0 if claim.p is None else claim.p,
            cases=len(processes),
            of=compared[card],
            processes=min(processes),
        )
        found.append(replace(verdict, sentence=sentences.of_mean(verdict, policy)))
    return tuple(found)


def _status(claim: Inference, processes: Sequence[int], compared: int, policy: Policy) -> Status:
    """A mean that is past a gate must speak for its card: a loss for most of the cases, a gain for each, and so many
    that none alone, within its own gate, could carry it there."""
    gates, cases = policy.gates, len(processes)
    change = as_percent(claim.pooled.change)
    many = 2 * cases > compared and cases * gates.mean_regression_pct >= gates.regression_pct
    if claim.shown:
        if change > gates.mean_regression_pct and many:
            return Status.REGRESSED if min(processes) >= policy.processes.to_block else Status.LIKELY_SLOWER
        every = cases == compared and cases * gates.mean_improvement_pct >= gates.improvement_pct
        if change <= -gates.mean_improvement_pct and every:
            return Status.IMPROVED
    status = within_gates(claim, gates)
    likely = claim.likely(gates.mean_regression_pct, gates.mean_improvement_pct)
    return likely if status is Status.UNDECIDED and many and likely is Status.LIKELY_SLOWER else status


def joint(members: Sequence[Member]) -> Pooled:
    """The mean of the cases' log changes, with df and bias of errors that all cases share, which is the worst."""
    changes = [pooled for _, pooled in members]
    errors = np.array([one.error for one in changes])
    change, bias = (float(np.mean([getattr(one, name) for one in changes])) for name in ("change", "bias"))
    df = float(errors.sum() / (errors / np.sqrt([one.df for one in changes])).sum()) ** 2
    factors = _drawn(changes)
    # A stored baseline is one for all cases, and so is what the machine was like on its day.
    if any(case.against_baseline for case, _ in members):
        scales = np.asarray(factors @ errors / len(members))
    else:
        scales = _errors(members, factors)
    error = float(np.exp(np.log(scales).mean()))
    if np.ptp(scales / error) == 0:
        return Pooled(change, error, df, bias)
    return Pooled(change, error, df, bias, scales / error, np.full(len(scales), 1 / len(scales)))


def _drawn(errors: Sequence[Pooled]) -> Array:
    """Factors of the cases' errors, a row a drawing: of each case its distribution evenly, between cases at random."""
    if all(len(one.factors) == 1 for one in errors):
        return np.ones((1, len(errors)))
    rng = np.random.default_rng(DRAWINGS)
    drawn = np.ones((DRAWINGS, len(errors)))
    for column, one in zip(drawn.T, errors, strict=True):
        order = np.argsort(one.factors)
        reached = np.cumsum(one.weights[order])
        places = np.searchsorted(reached, (np.arange(DRAWINGS) + 0.5) / DRAWINGS * reached[-1])
        column[:] = one.factors[order][np.minimum(places, len(order) - 1)][rng.permutation(DRAWINGS)]
    return drawn


def _errors(members: Sequence[Member], factors: Array) -> Array:
    """The mean's standard error for each row of `factors`. A process's residual of a case is √ρ times what it shares
    with the process's other cases, plus what is its own; the variance of the mean is averaged over ρ, weighted by the
    restricted likelihood of the residuals."""
    blocks = [_block(case, pooled) for case, pooled in members]
    ids = ((at, id_, case.groups[-1].left_out) for case, _ in members for at, id_ in enumerate(case.process_ids))
    owners = np.array([id_ for at, id_, out in ids if at != out])
    inside = (owners[:, None] == np.unique(owners)[None, :]).astype(float)
    columns = np.repeat(np.arange(len(members)), [len(pulls) for pulls, _, _ in blocks])
    pulls = np.concatenate([pulls for pulls, _, _ in blocks]) / len(members) * factors[:, columns]
    own, shared = (pulls**2).sum(axis=1), ((pulls @ inside) ** 2).sum(axis=1)
    contrasts = scipy.linalg.block_diag(*(basis for _, _, basis in blocks))
    if contrasts.shape[1] == 0:
        return np.asarray(np.sqrt(np.maximum(own, shared)))
    residuals = contrasts.T @ np.concatenate([values for _, values, _ in blocks])
    weights = _likelihood(residuals, contrasts.T @ inside @ inside.T @ contrasts)
    return np.asarray(np.sqrt(own + float(weights @ CORRELATIONS) * (shared - own)))


def _block(case: Evidence, pooled: Pooled) -> tuple[Array, Array, Array]:
    """A case's processes in units of their own spread: each one's pull on the case's change, its value, and a basis of
    the contrasts between processes, which do not depend on the change."""
    group = case.groups[0]
    values, variances, _ = group.kept
    weights = 1 / (group.prior**2 + variances)
    spreads = pooled.error * np.sqrt(weights.sum() / weights)
    _, _, rows = np.linalg.svd((1 / spreads)[None, :] * spreads.min())
    return weights / weights.sum() * spreads, (values - pooled.change) / spreads, rows[1:].T


def _likelihood(residuals: Array, shared: Array) -> Array:
    """Of each correlation, normalised. The scale is integrated out."""
    values, vectors = np.linalg.eigh(shared)
    squares = (vectors.T @ residuals) ** 2 + 1e-12
    variances = 1 + CORRELATIONS[:, None] * (np.maximum(values, 0.0) - 1)
    logarithms = -0.5 * (np.log(variances).sum(axis=1) + len(squares) * np.log((squares / variances).sum(axis=1)))
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())
