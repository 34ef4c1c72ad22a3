"""Whatever the numbers are: no exponent, nothing infinite, and no change of −100% in any word that people read."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import LARGEST_LOG, as_percent
from kernelgate.ci.document.render import comment
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import Direction, Status, overall
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import of_verdict
from kernelgate.ci.report.page import write
from tests.ci.report_examples import NINE, case, mean, record, verdict_of
from tests.ci.report_examples import judge as verdict_on

POLICY = Policy()
LOGS = st.floats(-2 * LARGEST_LOG, 2 * LARGEST_LOG) | st.floats(-1e-3, 1e-3) | st.sampled_from([-math.inf, math.inf])
SEEN = st.floats(1e-12, 1e13) | st.just(math.inf)
UNREADABLE = re.compile(
    r"\d[eE][+-]?\d|\binf\b|\bnan\b|(?<![\d.])100\.0+%? faster|−100\.0|\d{7,}(?:\.\d+)?[%,\]]", re.IGNORECASE
)


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
    said = [sentences.of_case(one, POLICY), sentences.noise([one])]
    said += [sentences.shown([one]) or "", sentences.in_statistics(seen)]
    said += [*formatting.signed(change, interval), *formatting.amount(change, interval)]
    together = replace(mean(Status.SLOWER, 1.0, 9), status=status, direction=one.direction)
    together = replace(together, change_pct=change, interval_pct=interval)
    said += [sentences.of_mean(together, POLICY)]
    assert all(map(readable, said)), said


@pytest.mark.parametrize(("log", "half"), [(-50.0, 1e-9), (50.0, 1e-9), (-3.0, 5.0)])
def test_comment_and_page_are_readable(log: float, half: float) -> None:
    change, interval = as_percent(log), (as_percent(log - half), as_percent(log + half))
    certain = half < abs(log)
    status = (Status.SLOWER if log > 0 else Status.FASTER) if certain else Status.UNDECIDED
    timed = case(512, 32, 321.4, 1.0)
    one = replace(
        verdict_of(timed, status, 1.0, 0.5),
        direction=directions(change)[certain],
        change_pct=change,
        interval_pct=interval,
        bootstrap_pct=interval,
        minimum_detectable_pct=as_percent(half),
        per_process=(),
    )
    one = replace(one, sentence=sentences.of_case(one, POLICY))
    together = replace(mean(Status.SLOWER, 1.0, 9), change_pct=change, interval_pct=interval, direction=one.direction)
    together = replace(together, sentence=sentences.of_mean(together, POLICY))
    made = of_verdict(record((timed,)), verdict_on(overall([one]), one, means=(together,)), POLICY)
    page = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", " ", write(made, Gates()), flags=re.DOTALL)
    for text in (comment(made.report), page):
        words = re.sub(r"\b[0-9a-f]{7,}\b|GPU-[\w-]+", "", text)  # commits and devices
        assert readable(words), UNREADABLE.findall(words)
