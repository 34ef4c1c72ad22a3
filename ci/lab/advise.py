"""What to try on a kernel, best first: by what sessions showed where that has earned it, else by the cookbook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.explain.recommend import CATALOGUE, Action, Recommendation, against
from kernelgate.ci.lab import calibration
from kernelgate.ci.lab.advice_answer import (
    AdvisedAction,
    EarnedSkill,
    NvidiaRow,
    OutcomesAnswer,
    Recommended,
    ReliabilityRow,
)
from kernelgate.ci.lab.advice_model import Prediction
from kernelgate.ci.lab.calibration import Calibration
from kernelgate.ci.lab.export import rows
from kernelgate.ci.lab.outcomes import BLIND, Features, TryResult, gain_pct
from kernelgate.ci.policy.policy import Policy

NO_DATA = "no data: the cookbook's order"


def advise(analysis: Analysis, outcomes: Sequence[TryResult], policy: Policy) -> Recommended:
    """At most the policy's number of actions."""
    known = calibration.calibrate(outcomes, policy)
    bottleneck = analysis.bottleneck.bottleneck
    capability = analysis.kernel.compute_capability
    architecture = f"sm_{capability[0]}{capability[1]}" if capability else BLIND
    reasons = {one.name: one for one in analysis.recommendations}
    names = list(dict.fromkeys([*reasons, *(one.name for one in against(bottleneck))]))
    enough = len(outcomes) >= policy.advice.least_outcomes
    if enough and known.earned:
        names += [name for name in _helped_at(bottleneck.value, outcomes) if name not in names]
    asked = [Features(architecture, bottleneck.value, name) for name in names]
    predicted = calibration.model(outcomes, policy).predict(asked) if enough else [None] * len(asked)
    made = [
        _advised(features, each, reasons.get(features.action), outcomes)
        for features, each in zip(asked, predicted, strict=True)
    ]
    if enough and known.earned:
        made.sort(key=lambda one: (one.probability or 0.0, one.predicted_gain_pct or 0.0), reverse=True)
    return Recommended(
        kernel=analysis.kernel.name,
        architecture=architecture,
        bottleneck=bottleneck.value,
        order="learned" if enough and known.earned else "cookbook",
        weak=enough and not known.earned,
        why=why(known, policy),
        skill=skill_of(known),
        recommendations=tuple(made[: policy.advice.shown]),
    )


def why(known: Calibration, policy: Policy) -> str:
    """What the order goes by, and what that is worth."""
    of = f"{counted(known.outcomes, 'outcome')} of {counted(known.sessions, 'session')}"
    if known.outcomes < policy.advice.least_outcomes:
        return f"{NO_DATA} ({of}; it takes {policy.advice.least_outcomes})"
    if known.skill is None or known.skill_interval is None:
        return f"{NO_DATA} ({of}: there is no other session to predict one from)"
    low, high = known.skill_interval
    said = f"the chances' Brier skill against the base rate is {known.skill:.2f} ({low:.2f} to {high:.2f}), by {of}"
    if known.earned:
        return f"by the chance that it helps: {said}"
    return f"the cookbook's order, for the figures are weak: {said}, and that interval includes zero"


def skill_of(known: Calibration) -> EarnedSkill:
    return EarnedSkill(
        outcomes=known.outcomes,
        sessions=known.sessions,
        helped=known.helped,
        brier=known.brier,
        base_brier=known.base_brier,
        skill=known.skill,
        interval=known.skill_interval,
    )


def published(outcomes: Sequence[TryResult], policy: Policy) -> OutcomesAnswer:
    """All outcomes, and what predictions from them are worth."""
    known = calibration.calibrate(outcomes, policy)
    return OutcomesAnswer(
        skill=skill_of(known),
        reliability=tuple(ReliabilityRow(**asdict(one)) for one in known.bins),
        covered=known.covered,
        nvidia=NvidiaRow(**asdict(known.nvidia)) if known.nvidia else None,
        outcomes=rows(outcomes),
    )


def _helped_at(bottleneck: str, outcomes: Iterable[TryResult]) -> list[str]:
    """Actions that helped against a bottleneck, whatever the cookbook says of them."""
    found = {one.features.action for one in outcomes if one.helped and one.features.bottleneck == bottleneck}
    return sorted(found & CATALOGUE.keys())


def _advised(
    features: Features, predicted: Prediction | None, called: Recommendation | None, outcomes: Sequence[TryResult]
) -> AdvisedAction:
    action: Action = CATALOGUE[features.action]
    same = [one for one in outcomes if one.features.action == features.action]
    here = [one for one in same if one.features.bottleneck == features.bottleneck]
    return AdvisedAction(
        action=features.action,
        words=called.action if called else action.words,
        predicted_gain_pct=_rounded(predicted.gain_pct) if predicted else None,
        interval_pct=_both(predicted.interval_pct) if predicted else None,
        probability=round(predicted.probability, 3) if predicted else None,
        n=len(here),
        evidence=_evidence(here, same, outcomes),
        reason=called.reason if called else None,
        link=action.link,
    )


def _evidence(here: Sequence[TryResult], same: Sequence[TryResult], outcomes: Sequence[TryResult]) -> str:
    if here:
        gains = [gain_pct(one.log_gain) for one in here if one.log_gain is not None]
        places = ", ".join(sorted({one.features.architecture for one in here}))
        return f"{_of(here)} against this bottleneck helped, on {places}{_between(gains)}"
    if same:
        return f"not tried against this bottleneck yet; elsewhere {_of(same)} helped"
    if outcomes:
        return f"not tried yet; of all others {_of(outcomes)} helped"
    return "not tried yet"


def _between(gains: Sequence[float]) -> str:
    if len(gains) < 2:
        return f"; it gained {gains[0]:.1f}% of the time" if gains else ""
    return f"; they gained {min(gains):.1f} to {max(gains):.1f}% of the time"


def _of(tries: Sequence[TryResult]) -> str:
    return f"{sum(one.helped for one in tries)} of {len(tries)} {'try' if len(tries) == 1 else 'tries'}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _both(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (round(interval[0], 1), round(interval[1], 1))
