"""What may be asserted, and at which level: exactly at each limit and on either side of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey
from kernelgate.ci.judge import prior
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import claims
from kernelgate.ci.judge.prior import KnownSpread
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Policy

POLICY = Policy()
PRIOR = math.log1p(prior.CHANGE_PCT / 100)


def evidence(*values: float, findings: tuple[Finding, ...] = (), sides: int = 1) -> Evidence:
    """A case whose processes changed so much, in log time, and whose rounds say nothing of their scatter."""
    group = Group(np.array(values), np.zeros(len(values)), PRIOR, 10.0)
    if sides == 1:
        known = prior.prior(prior.CHANGE_PCT)
        group = replace(group, prior_df=1000.0, spread=known)
    return Evidence(CaseKey("", "x"), (), (), (), sides == 1, (group,) * sides, 0.0, findings)


NOTHING = replace(evidence(0.0, 0.0), groups=())
SPOILT = (Finding("drift", "it drifted", disqualifies=True),)


def test_sound_cases_share_the_level_and_spoilt_ones_take_no_part() -> None:
    cases = [evidence(*[0.001] * 4), evidence(*[0.05] * 4), evidence(*[0.05] * 4, findings=SPOILT), NOTHING]
    small, large, spoilt, nothing = claims(cases, POLICY)
    assert nothing is None
    assert (spoilt.p, spoilt.certain) == (None, False)
    assert large.p == pytest.approx(2 * large.pooled.p()), "Holm: the smaller of two counts double"
    assert small.p == pytest.approx(small.pooled.p())
    assert [small.family, large.family, spoilt.family] == [2, 2, 2]
    (alone,) = claims([cases[2]], POLICY)
    assert alone.family == 1


def remembered(df: float) -> KnownSpread:
    return KnownSpread(spread_pct=0.03, noise_pct=0.0, df=df, comparisons=3)


@pytest.mark.parametrize(("known", "early"), [(None, True), (remembered(7.9), True), (remembered(8.0), False)])
def test_before_four_processes_only_a_history_shows_a_small_direction(known: KnownSpread | None, early: bool) -> None:
    """Placement may be a lottery in which all of three processes fall the same way."""
    (claim,) = claims([replace(evidence(0.02, 0.02, 0.02), known=known)], POLICY)
    assert claim.p < 1e-4
    assert (claim.early, claim.certain) == (early, not early)
    (four,) = claims([replace(evidence(*[0.02] * 4), known=known)], POLICY)
    assert four.certain


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("processes", "lottery_pct"), [(2, 6.0), (3, 2.5)])
def test_what_is_larger_than_a_lottery_is_certain_at_once(processes: int, lottery_pct: float, sign: int) -> None:
    limit = math.log1p(lottery_pct / 100)
    at, beyond = (
        claims([evidence(*[sign * change] * processes)], POLICY)[0] for change in (limit * (1 - 1e-9), limit * 1.2)
    )
    assert (at.early, at.certain) == (True, False)
    assert (beyond.early, beyond.certain) == (False, True)
    assert limit < at.detectable() < 1.02 * limit, "what would have been seen is not less than that"
