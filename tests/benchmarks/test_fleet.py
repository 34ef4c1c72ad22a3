"""The section on the number of runners says what its simulation finds, and that agrees with what is known of queues."""

from __future__ import annotations

import random
import re

import pytest

from benchmarks import fleet

HOURLY = fleet.Demand("even", 1000, 24.0, (1,))


def constant(runners: int, seconds: float, stop_s: float | None = None, days: int = 20) -> fleet.Fleet:
    coming = fleet.arrivals(HOURLY, random.Random(7), days)
    return fleet.simulate(coming, [[seconds]] * len(coming), runners, stop_s, 60.0)


@pytest.mark.slow
def test_the_page_says_what_the_simulation_finds() -> None:
    page = fleet.PAGE.read_text(encoding="utf-8").split("\n## How many runners?\n")[1].split("\n## ")[0]
    assert fleet.text() in page, "python -m benchmarks.fleet"
    assert len(re.findall(r"[^\s|]*\w[^\s|]*", page)) <= 600
    assert f"{fleet.REST_S} s" in page
    known = fleet.bench_seconds()
    assert f"{min(known):.0f} to {max(known):.0f}" in page


@pytest.mark.parametrize("used", [0.3, 0.6, 0.8])
def test_one_runner_waits_as_pollaczek_and_khinchine_say(used: float) -> None:
    """Poisson arrivals, equal jobs: the mean wait is used / (2 (1 - used)) jobs."""
    seconds = used * fleet.DAY_S / HOURLY.pulls
    found = constant(1, seconds)
    mean = sum(found.waits_s) / len(found.waits_s)
    assert mean == pytest.approx(seconds * used / (2 * (1 - used)), rel=0.1)
    assert found.utilisation == pytest.approx(used, rel=0.02)
    assert found.keeps_up


def test_stopping_saves_money_and_a_restart_is_waited_for() -> None:
    coming = [10_000.0 * number for number in range(1, 50)]
    on, off = (fleet.simulate(coming, [[100.0]] * len(coming), 1, stop, 60.0) for stop in (None, 1000.0))
    assert (max(on.waits_s), min(off.waits_s)) == (0.0, 60.0)
    assert off.running_s == pytest.approx(1000 + 60 + 100)
    assert on.running_s > 8 * off.running_s
