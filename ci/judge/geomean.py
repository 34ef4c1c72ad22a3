"""All cases of a card together: the geometric mean of their changes, with its interval and gates of its own.

The process is the unit here, too. What a process does to all of its cases alike must not count once for each of them,
so the correlation between cases of a process is estimated from the data and widens the interval of the mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
from scipy import linalg

from kernelgate.bench.record import CaseKey
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import inference, sentences
from kernelgate.ci.judge.case import MeanVerdict, Status
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, within_gates
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.policy.policy import Policy

CORRELATIONS = (np.arange(20) + 0.5) / 20
"""Between cases of one process; beforehand, each is as likely."""
DRAWINGS: Final = 1024
"""Of the cases' errors, so that one in a thousand is among them."""
Member: TypeAlias = tuple[Evidence, Pooled]
"""A case of a mean, and its change."""


def verdicts(
    evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy
) -> tuple[MeanVerdict, ...]:
    """Of each card with several cases that can be judged. The cards share the level (Holm)."""
    compared = Counter(case.key.card for case in evidences if not case.alone)
    by_card: dict[str, list[Member]] = {case.key.card: [] for case in evidences}
    for case, claim in zip(evidences, claims, strict=True):
        if claim and not case.disqualified:
            by_card[case.key.card].append((case, claim.pooled))
    several = {card: members for card, members in by_card.items() if len(members) > 1}
    looks = [inference.look([case for case, _ in one], joint(one), policy) for one in several.values()]
    return tuple(
        _verdict(card, [case.processes for case, _ in members], compared[card], claim, policy)
        for (card, members), claim in zip(several.items(), inference.shared(looks), strict=True)
    )


def unconfirmed(
    evidences: Sequence[Evidence], claims: Sequence[Inference | None], policy: Policy
) -> frozenset[CaseKey]:
    """The cases that lack processes for their mean to block."""
    cards = {mean.card for mean in verdicts(evidences, claims, policy) if mean.status is Status.LIKELY_SLOWER}
    few = (case for case in evidences if 0 < case.processes < policy.processes.to_block and not case.disqualified)
    return frozenset(case.key for case in few if case.key.card in cards)


def _verdict(card: str, processes: Sequence[int], compared: int, claim: Inference, policy: Policy) -> MeanVerdict:
    low, high = claim.interval()
    change = claim.pooled.change
    verdict = MeanVerdict(
        card=card,
        status=_status(claim, processes, compared, policy),
        direction=claim.direction,
        sentence="",
        change_pct=as_percent(change),
        interval_pct=(as_percent(low), as_percent(high)),
        p=1.0 if claim.p is None else claim.p,
        cases=len(processes),
        of=compared,
        processes=min(processes),
    )
    return replace(verdict, sentence=sentences.of_mean(verdict, policy))


def _status(claim: Inference, processes: Sequence[int], compared: int, policy: Policy) -> Status:
    """The gates, asked only of a difference that is itself certain. A mean that is past one must speak for its card: a
    loss for most of the cases, a gain for each of them, and so many that none alone, within the gate of single cases,
    could carry it there."""
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
    """The mean of the cases' log changes, each with the same weight. Its degrees of freedom and its bias are those of
    errors that all cases may share, which is the worst."""
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
    """Factors of the cases' errors, a row a drawing: of each case its distribution evenly, between cases at random.
    Seeded, so that a record always gets the same verdict."""
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
    """The mean's standard error, at the correlations that the cases of a process show, for each row of `factors`.

    A process's residual of a case is √ρ times what it shares with the process's other cases, plus what is its own. The
    variance of the mean follows from ρ; it is averaged over ρ, weighted by the restricted likelihood of the residuals.
    """
    blocks = [_block(case, pooled) for case, pooled in members]
    ids = ((at, id_, case.groups[-1].left_out) for case, _ in members for at, id_ in enumerate(case.process_ids))
    owners = np.array([id_ for at, id_, out in ids if at != out])
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
    """Of each correlation, normalised. The scale is integrated out: how far the cases move together says how much they
    share, not how far they move."""
    values, vectors = np.linalg.eigh(shared)
    squares = (vectors.T @ residuals) ** 2 + 1e-12
    variances = 1 + CORRELATIONS[:, None] * (np.maximum(values, 0.0) - 1)
    logarithms = -0.5 * (np.log(variances).sum(axis=1) + len(squares) * np.log((squares / variances).sum(axis=1)))
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())
