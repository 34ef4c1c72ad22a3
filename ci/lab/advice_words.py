"""Advice and its calibration for people."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.ci.lab.advice_answer import AdvisedAction, OutcomesAnswer, Recommended


def recommended(answer: Recommended) -> str:
    return "\n".join(_recommended(answer))


def _recommended(answer: Recommended) -> Iterator[str]:
    yield f"{answer.kernel} on {answer.architecture}: {answer.bottleneck.replace('_', ' ')}"
    yield f"  {answer.why}"
    for number, one in enumerate(answer.recommendations, 1):
        yield f"  {number}. {one.action}: {one.words}"
        yield f"     {_figures(one, answer.weak)}{one.evidence}"
        yield f"     {one.reason}. {one.link}" if one.reason else f"     {one.link}"


def _figures(one: AdvisedAction, weak: bool) -> str:
    if one.probability is None:
        return ""
    gain = ""
    if one.predicted_gain_pct is not None and one.interval_pct is not None:
        low, high = one.interval_pct
        gain = f", {one.predicted_gain_pct:+.1f}% gained ({low:+.1f} to {high:+.1f}%)"
    return f"{'weak: ' if weak else ''}helps with {one.probability:.0%}{gain}; n = {one.n}; "


def outcomes(answer: OutcomesAnswer) -> str:
    return "\n".join(_outcomes(answer))


def _outcomes(answer: OutcomesAnswer) -> Iterator[str]:
    known = answer.skill
    yield f"{known.outcomes} outcomes of {known.sessions} sessions, of which {known.helped} helped"
    if known.skill is None or known.interval is None or known.brier is None or known.base_brier is None:
        yield "too few sessions to predict one from the others"
        return
    low, high = known.interval
    yield f"Brier score {known.brier:.3f}, of the base rate {known.base_brier:.3f}"
    yield f"skill {known.skill:.2f} ({low:.2f} to {high:.2f})"
    for row in answer.reliability:
        yield (
            f"  chance {row.low:.0%} to {row.high:.0%}: {row.n} tries, {row.predicted:.0%} on average, "
            f"{row.helped:.0%} helped ({row.interval[0]:.0%} to {row.interval[1]:.0%})"
        )
    if answer.covered is not None:
        yield f"{answer.covered:.0%} of the gains lay in their intervals"
    if answer.nvidia is not None:
        one = answer.nvidia
        rank = "" if one.rank_correlation is None else f", rank correlation {one.rank_correlation:.2f}"
        yield (
            f"NVIDIA's estimates: {one.n} tries, median {one.estimated_pct:.1f}% estimated, "
            f"{one.realised_pct:.1f}% realised{rank}, {one.helped} helped"
        )
