"""A side with two speeds: no interval where none is believed, and both distributions in its place."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import reported
from kernelgate.ci.report.page import write
from tests.ci.records import paired_record


def jumping(base_us: float, low_us: float, high_us: float) -> RunRecord:
    """The head draws one of two speeds for each round."""
    rng = np.random.default_rng(0)
    noise = [np.exp(rng.normal(0, 0.002, 100)) for _ in range(10)]
    base = [base_us * one for one in noise[:5]]
    head = [np.where(rng.random(100) < 0.5, high_us, low_us) * one for one in noise[5:]]
    return paired_record(base, head)


def said(base_us: float, low_us: float, high_us: float) -> Report:
    return reported(jumping(base_us, low_us, high_us), Policy()).report


@pytest.mark.parametrize(
    ("speeds", "first", "second"),
    [
        ((145.7, 150.0, 190.0), "150.0 and 190.0 µs",
         "Base has one, 145.7 µs; both of head's are slower, by 3% and 30%."),
        ((152.8, 152.8, 165.1), "152.8 and 165.1 µs", "Base has one, 152.8 µs; head's differ from it by 0% and +8%."),
    ],
)  # fmt: skip
def test_both_speeds_are_named_and_no_interval(speeds: tuple[float, float, float], first: str, second: str) -> None:
    made = said(*speeds)
    text = render.comment(made)
    assert text.startswith(f"### ❔ Cannot tell: head has two speeds, {first}; does not block\n\n{second} ")
    assert "interval" not in text.split("<details>")[0]
    assert "[+" not in text
    again = "Two speeds again? Look at what varies by call: atomics, L2, the order of tiles: [guide](https://"
    assert again in text


def test_the_page_draws_both_distributions_and_no_interval() -> None:
    page = write(reported(jumping(145.7, 150.0, 190.0), Policy()), Gates())
    assert "Share of the samples that took at most so long. base: half within 145." in page
    assert page.count('class="curve base"') == 1 + 5, "the distribution, and each process in the order of the run"
    assert "together" not in page
    assert page.count('<span class="change">cannot tell</span>') == 1
