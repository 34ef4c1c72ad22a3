"""What may be asserted, and at which level: exactly at each limit and on either side of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.stats import Pooled
from kernelgate.ci.judge.validity import Finding

POLICY = Policy()
POOLED = Pooled(change=0.02, error=0.004, df=12.0, bias=0.001)
CLAIM = Inference(POOLED, p=0.01, alpha=0.01, equivalence_alpha=0.02, miss=0.05, family=3)
PRIOR = math.log1p(POLICY.spread.change_pct / 100)


def evidence(*values: float, findings: tuple[Finding, ...] = (), sides: int = 1, prior: float = PRIOR) -> Evidence:
    """A case whose processes changed so much, in log time, and whose rounds say nothing of their scatter."""
    group = Group(np.array(values), np.zeros(len(values)), prior, 10.0)
    return Evidence(CaseKey("", "x"), (), (), (), sides == 1, (group,) * sides, 0.0, findings)


NOTHING = replace(evidence(0.0, 0.0), groups=())
SPOILT = (Finding("drift", "it drifted", disqualifies=True),)


# ---- one claim -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "certain"), [(0.01, True), (np.nextafter(0.01, 1), False), (np.nextafter(0.01, 0), True), (None, False)]
)
def test_a_difference_is_certain_up_to_its_level(p: float | None, certain: bool) -> None:
    assert replace(CLAIM, p=p).certain == certain


def test_intervals_lie_around_the_change_at_their_own_level() -> None:
    low, high = CLAIM.interval(0.9)
    assert (low + high) / 2 == pytest.approx(POOLED.change)
    assert (high - low) / 2 == pytest.approx(POOLED.half_width(0.1))
    low, high = CLAIM.likely_interval()
    assert (high - low) / 2 == pytest.approx(POOLED.half_width(2 * 0.05)), "either end is passed with `miss`"


@pytest.mark.parametrize("sign", [1, -1])
def test_within_is_shown_by_two_one_sided_tests(sign: int) -> None:
    claim = replace(CLAIM, pooled=replace(POOLED, change=sign * POOLED.change))
    reach = POOLED.change + POOLED.half_width(2 * CLAIM.equivalence_alpha)
    assert not claim.within(reach), "exactly at the margin"
    assert not claim.within(reach * (1 - 1e-9))
    assert claim.within(reach * (1 + 1e-9))


def test_what_would_have_been_seen_takes_the_share_of_the_family() -> None:
    assert CLAIM.detectable(0.9) == pytest.approx(POOLED.detectable(0.01 / 3, 0.9))


# ---- the claims of a record ------------------------------------------------------------------------------------------


def test_a_case_without_an_estimate_has_no_claim() -> None:
    (first, second) = claims([NOTHING, evidence(0.02, 0.02)], POLICY)
    assert first is None
    assert second is not None
    assert second.family == 1


def test_sound_cases_share_the_level_and_spoilt_ones_take_no_part() -> None:
    cases = [evidence(0.001, 0.001), evidence(0.05, 0.05), evidence(0.05, 0.05, findings=SPOILT), NOTHING]
    small, large, spoilt, nothing = claims(cases, POLICY)
    assert small is not None
    assert large is not None
    assert spoilt is not None
    assert nothing is None
    assert (spoilt.p, spoilt.certain) == (None, False)
    assert small.p is not None
    assert large.p == pytest.approx(2 * large.pooled.p()), "Holm: the smaller of two counts double"
    assert small.p == pytest.approx(small.pooled.p())
    assert [small.family, large.family, spoilt.family] == [2, 2, 2]


def test_a_record_of_spoilt_cases_alone_is_a_family_of_one() -> None:
    (claim,) = claims([evidence(0.05, 0.05, findings=SPOILT)], POLICY)
    assert claim is not None
    assert claim.family == 1


@pytest.mark.parametrize(("sides", "alpha"), [(1, POLICY.certainty.alpha), (2, POLICY.certainty.baseline_alpha)])
@pytest.mark.parametrize("processes", [2, 3, 5, 6])
def test_a_level_is_spent_over_the_looks(sides: int, alpha: float, processes: int) -> None:
    (claim,) = claims([evidence(*[0.01] * processes, sides=sides)], POLICY)
    assert claim is not None
    spent = [stats.look_alpha(level, processes, 2, 5, 0.4) for level in (alpha, POLICY.certainty.equivalence_alpha)]
    assert [claim.alpha, claim.equivalence_alpha] == pytest.approx(spent)
    assert claim.miss == POLICY.certainty.miss


# ---- what the other cases of a record show ---------------------------------------------------------------------------


def pooled_errors(*cases: Evidence) -> list[float]:
    return [claim.pooled.error for claim in claims(cases, POLICY) if claim]


WIDE = (-3 * PRIOR, 0.0, 3 * PRIOR)
"""Processes that scatter nine times as much (squared) as the prior says."""


def test_a_record_whose_other_cases_scatter_is_less_precise() -> None:
    calm = evidence(0.0, 0.0, 0.0)
    (alone,) = pooled_errors(calm)
    beside = pooled_errors(calm, evidence(*WIDE))[0]
    assert beside > alone
    # (10 · 1 + 2 · 9) / (10 + 2), moderated with the case's own 0: (10 · 28/12 + 2 · 0) / 12 in place of 10 / 12.
    assert beside**2 / alone**2 == pytest.approx(28 / 12)


def test_calm_cases_make_no_case_more_precise_than_the_prior() -> None:
    (alone,) = pooled_errors(evidence(*WIDE))
    beside = pooled_errors(evidence(*WIDE), evidence(0.0, 0.0, 0.0), evidence(0.0, 0.0, 0.0))[0]
    assert beside == pytest.approx(alone)


def test_a_wild_case_counts_as_far_as_chance_could_reach() -> None:
    calm = evidence(0.0, 0.0, 0.0)
    bound = stats.scatter_bound(POLICY.limits.disagree_p, 2)
    expected = (10 + 2 * bound) / 12
    (alone,) = pooled_errors(calm)
    wild = [pooled_errors(calm, evidence(-far, 0.0, far))[0] for far in (0.1, 0.2)]
    assert [error**2 / alone**2 for error in wild] == pytest.approx([expected, expected])


@pytest.mark.parametrize("other", [NOTHING, evidence(*WIDE, sides=2)], ids=["nothing", "baseline"])
def test_cases_that_say_nothing_of_the_scatter_take_no_part(other: Evidence) -> None:
    calm, wide = evidence(0.0, 0.0, 0.0), evidence(*WIDE)
    assert pooled_errors(calm, other)[0] == pytest.approx(pooled_errors(calm)[0])
    assert pooled_errors(calm, wide, other)[0] == pytest.approx(pooled_errors(calm, wide)[0])
