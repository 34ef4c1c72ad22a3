"""The words and the order of judged cases, at the edges of every threshold. And whatever the numbers are: no exponent,
nothing infinite, and no change of −100% in any word that people read."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import LARGEST_LOG, as_percent
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import Direction, Status, worst_first
from kernelgate.ci.policy.policy import Policy
from tests.ci.report_examples import NINE, below_gate, faster, mean, noisy, same, slower, verdict_of

ONE = NINE[0]
POLICY = Policy()
LOGS = st.floats(-2 * LARGEST_LOG, 2 * LARGEST_LOG) | st.floats(-1e-3, 1e-3) | st.sampled_from([-math.inf, math.inf])
SEEN = st.floats(1e-12, 1e13) | st.just(math.inf)
UNREADABLE = re.compile(
    r"\d[eE][+-]?\d|\binf\b|\bnan\b|(?<![\d.])100\.0+%? faster|−100\.0|\d{7,}(?:\.\d+)?[%,\]]", re.IGNORECASE
)


def test_the_worst_case_comes_first_whatever_the_order_was() -> None:
    ordered = [
        *(slower(ONE, 9.0), slower(ONE, 4.0), below_gate(ONE, 2.0), noisy(ONE, 1.0, 2.0), noisy(ONE, -1.0, 2.0)),
        *(faster(ONE, -20.0), faster(ONE, -12.0), below_gate(ONE, -4.0), same(ONE, 0.2), same(ONE, -0.2)),
    ]
    assert worst_first(reversed(ordered)) == ordered
    assert worst_first([*ordered[5:], *ordered[:5]]) == ordered


def test_noise_is_as_blind_as_its_worst_case() -> None:
    assert sentences.noise([noisy(ONE, 0.0, 1.0), noisy(ONE, 0.0, 2.0)]) == (
        "too noisy; a change below 2.4% could not be seen"
    )
    unknown = replace(noisy(ONE, 0.0, 1.0), minimum_detectable_pct=None)
    assert sentences.noise([unknown]) == "5 repeats are too few to be sure"
    assert sentences.noise([replace(unknown, change_pct=None)]) == "too little was measured"
    few = replace(noisy(ONE, 0.0, 2.0), processes=2)
    assert sentences.noise([noisy(ONE, 0.0, 1.0), few]) == "too few repeats; a change below 2.4% could not be seen"
    assert sentences.shown([]) is None


def readable(text: str) -> bool:
    return UNREADABLE.search(text) is None


def directions(change: float) -> list[Direction]:
    return [Direction.NONE, Direction.SLOWER if change > 0 else Direction.FASTER]


@given(LOGS, st.floats(0, 60), SEEN, st.sampled_from([one for one in Status if one is not Status.ALONE]), st.booleans())
def test_every_sentence_is_readable(log: float, half: float, seen: float, status: Status, certain: bool) -> None:
    change = as_percent(log)
    interval = (as_percent(log - half), as_percent(log + half))
    one = replace(
        verdict_of(NINE[0], status, 1.0, 0.5),
        direction=directions(change)[certain],
        change_pct=change,
        interval_pct=interval,
        minimum_detectable_pct=seen,
    )
    said = [sentences.of_case(one, POLICY), sentences.noise([one]), sentences.shown([one]) or ""]
    said += [*formatting.signed(change, interval), *formatting.amount(change, interval)]
    together = replace(mean(Status.SLOWER, 1.0, 9), status=status, direction=one.direction)
    together = replace(together, change_pct=change, interval_pct=interval)
    said += [sentences.of_mean(together, POLICY)]
    assert all(map(readable, said)), said
