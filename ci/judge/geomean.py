"""All cases of a card together: the geometric mean of their changes, with its interval and gates of its own.

The process is the unit here, too. What a process does to all of its cases alike must not count once for each of them,
so the correlation between cases of a process is estimated from the data and widens the interval of the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import linalg

from kernelgate.bench.record import CaseKey
from kernelgate.ci.judge import inference, sentences
from kernelgate.ci.judge.case import Direction, MeanVerdict, Status
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, within_gates
from kernelgate.ci.judge.stats import GATES_P, INTERVAL_LEVEL, Array, Pooled
from kernelgate.ci.judge.validity import percent
from kernelgate.ci.policy.policy import Policy

CORRELATIONS = (np.arange(20) + 0.5) / 20
"""Between cases of one process; beforehand, each is as likely."""
DRAWINGS: Final = 1024
"""Of the cases' errors, so that one in a thousand is among them."""


@dataclass(frozen=True)
class Member:
    """One case of a mean."""

    case: Evidence
    pooled: Pooled


@dataclass(frozen=True)
class Mean:
    """The members of one card, and what may be said of their mean."""

    card: str
    members: tuple[Member, ...]
    of: int
    claim: Inference

    @property
    def processes(self) -> int:
        """Of the case with the fewest."""
        return min(member.case.processes for member in self.members)


def means(evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy) -> list[Mean]:
    """What may be said of the mean of each card with several cases that can be judged. The cards share the level
    (Holm)."""
    found = []
    for card in dict.fromkeys(case.key.card for case in evidences):
        pairs = zip(evidences, claims, strict=True)
        compared = [(case, claim) for case, claim in pairs if case.key.card == card and not case.alone]
        members = tuple(Member(case, claim.pooled) for case, claim in compared if claim and not case.disqualified)
        if len(members) > 1:
            claim = inference.look([member.case for member in members], joint(members), policy)
            found.append(Mean(card, members, len(compared), claim))
    shared = inference.shared([mean.claim for mean in found])
    return [replace(mean, claim=claim) for mean, claim in zip(found, shared, strict=True)]


def verdicts(
    evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy
) -> tuple[MeanVerdict, ...]:
    found = []
    for mean in means(evidences, claims, policy):
        low, high = mean.claim.interval(INTERVAL_LEVEL)
        change = mean.claim.pooled.change
        certain = Direction.SLOWER if change > 0 else Direction.FASTER
        verdict = MeanVerdict(
            card=mean.card,
            status=_status(mean, policy),
            direction=certain if mean.claim.certain else Direction.NONE,
            sentence="",
            change_pct=percent(change),
            interval_pct=(percent(low), percent(high)),
            p=1.0 if mean.claim.p is None else mean.claim.p,
            cases=len(mean.members),
            of=mean.of,
            processes=mean.processes,
        )
        found.append(replace(verdict, sentence=sentences.of_mean(verdict, policy)))
    return tuple(found)


def unconfirmed(
    evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy
) -> frozenset[CaseKey]:
    """The cases that lack processes for their mean to block."""
    return frozenset(
        member.case.key
        for mean in means(evidences, claims, policy)
        if _status(mean, policy) is Status.UNCONFIRMED
        for member in mean.members
        if member.case.processes < policy.processes.to_block
    )


def _status(mean: Mean, policy: Policy) -> Status:
    """The gates, asked only of a difference that is itself certain. A mean that is past one must speak for its card: a
    loss for most of the cases, a gain for each of them, and so many that none alone, within the gate of single cases,
    could carry it there."""
    gates, claim, cases = policy.gates, mean.claim, len(mean.members)
    change = percent(claim.pooled.change)
    if claim.certain and claim.p is not None and claim.p < GATES_P:
        many = 2 * cases > mean.of and cases * gates.mean_regression_pct >= gates.regression_pct
        if change > gates.mean_regression_pct and many:
            return Status.REGRESSED if mean.processes >= policy.processes.to_block else Status.UNCONFIRMED
        every = cases == mean.of and cases * gates.mean_improvement_pct >= gates.improvement_pct
        if change <= -gates.mean_improvement_pct and every:
            return Status.IMPROVED
    return within_gates(claim, gates)


# ---- the mean and its error ------------------------------------------------------------------------------------------


def joint(members: Sequence[Member]) -> Pooled:
    """The mean of the cases' log changes, each with the same weight.

    Its degrees of freedom and its bias are those of errors that all cases may share, which is the worst.
    """
    errors = np.array([member.pooled.error for member in members])
    change = float(np.mean([member.pooled.change for member in members]))
    bias = float(np.mean([member.pooled.bias for member in members]))
    df = float(errors.sum() / (errors / np.sqrt([member.pooled.df for member in members])).sum()) ** 2
    factors = _drawn([member.pooled for member in members])
    # A stored baseline is one for all cases, and so is what the machine was like on its day.
    if any(member.case.against_baseline for member in members):
        scales = np.asarray(factors @ [member.pooled.error for member in members] / len(members))
    else:
        scales = _errors(members, factors)
    error = float(np.exp(np.log(scales).mean()))
    if np.ptp(scales / error) == 0:
        return Pooled(change, error, df, bias)
    return Pooled(change, error, df, bias, scales / error, np.full(len(scales), 1 / len(scales)))


def _drawn(errors: Sequence[Pooled]) -> Array:
    """Factors of the cases' errors, a row a drawing: of each case its distribution evenly, between cases at random.

    Seeded, so that a record always gets the same verdict.
    """
    if all(len(one.factors) == 1 for one in errors):
        return np.ones((1, len(errors)))
    rng = np.random.default_rng(DRAWINGS)
    columns = []
    for one in errors:
        order = np.argsort(one.factors)
        reached = np.cumsum(one.weights[order])
        places = np.searchsorted(reached, (np.arange(DRAWINGS) + 0.5) / DRAWINGS * reached[-1])
        rising = one.factors[order][np.minimum(places, len(order) - 1)]
        columns.append(rising[rng.permutation(DRAWINGS)])
    return np.stack(columns, axis=1)


def _errors(members: Sequence[Member], factors: Array) -> Array:
    """The mean's standard error, at the correlations that the cases of a process show, for each row of `factors`.

    A process's residual of a case is √ρ times what it shares with the process's other cases, plus what is its own. The
    variance of the mean follows from ρ; it is averaged over ρ, weighted by the restricted likelihood of the residuals.
    """
    blocks = [_block(member) for member in members]
    owners = np.concatenate([member.case.kept_ids for member in members])
    inside = (owners[:, None] == np.unique(owners)[None, :]).astype(float)
    columns = np.repeat(np.arange(len(members)), [len(pulls) for pulls, _, _ in blocks])
    pulls = np.concatenate([pulls for pulls, _, _ in blocks]) / len(members) * factors[:, columns]
    own, shared = (pulls**2).sum(axis=1), ((pulls @ inside) ** 2).sum(axis=1)
    contrasts = linalg.block_diag(*(basis for _, _, basis in blocks))
    if contrasts.shape[1] == 0:
        return np.asarray(np.sqrt(np.maximum(own, shared)))
    residuals = contrasts.T @ np.concatenate([values for _, values, _ in blocks])
    weights = _likelihood(residuals, contrasts.T @ inside @ inside.T @ contrasts)
    return np.asarray(np.sqrt(own + float(weights @ CORRELATIONS) * (shared - own)))


def _block(member: Member) -> tuple[Array, Array, Array]:
    """A case's processes in units of their own spread: each one's pull on the case's change, its value, and a basis of
    the contrasts between processes, which do not depend on the change."""
    group = member.case.groups[0]
    values, variances = group.kept
    weights = 1 / (group.prior**2 + variances)
    spreads = member.pooled.error * np.sqrt(weights.sum() / weights)
    _, _, rows = np.linalg.svd((1 / spreads)[None, :] * spreads.min())
    return weights / weights.sum() * spreads, (values - member.pooled.change) / spreads, rows[1:].T


def _likelihood(residuals: Array, shared: Array) -> Array:
    """Of each correlation, normalised. The scale is integrated out: how far the cases move together says how much they
    share, not how far they move."""
    values, vectors = np.linalg.eigh(shared)
    squares = (vectors.T @ residuals) ** 2 + 1e-12
    variances = 1 + CORRELATIONS[:, None] * (np.maximum(values, 0.0) - 1)
    logarithms = -0.5 * (np.log(variances).sum(axis=1) + len(squares) * np.log((squares / variances).sum(axis=1)))
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())
