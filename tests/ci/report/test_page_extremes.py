"""Whatever numbers a record may hold, the page is drawn, and no coordinate is anything but a number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.record import Profile, Telemetry
from kernelgate.ci.document.drawing import Scale
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import of_verdict, reported
from kernelgate.ci.report.page import write
from tests import runs
from tests.ci.report.situations import TARGET
from tests.ci.report_examples import EXAMPLES
from tests.runs import on, process, run_record

TIMES = {
    "equal": (5.0,) * 30,
    "single": (3.0,),
    "shortest": (1e-9,) * 30,
    "longest": (1e15,) * 30,
    "far apart": (1e-9, 1e15) * 15,
    "almost equal": tuple(5 + 1e-12 * index for index in range(30)),
}
STATES = {
    "unknown": None,
    "nothing known": Telemetry(),
    "off the scale": Telemetry(sm_mhz=1e20, temperature_c=-1e20, power_w=1e-20, throttle_reasons=("x",)),
}


def no_numbers(page: str) -> list[str]:
    """Coordinates that are none."""
    return re.findall(r' (?:d|x|y|x1|x2|y1|y2|cx|cy|width|height)="[^"]*(?:nan|inf|e[+-])[^"]*"', page)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("sides", [("base", "head"), ("head",), ("reference",)])
def test_any_times_are_drawn(sides: tuple[str, ...], times: str) -> None:
    every = [process(dict.fromkeys(sides, TIMES[times]), telemetry=state) for state in STATES.values()]
    page = write(reported(run_record((runs.case("c", every),), on("NVIDIA L4")), Policy()), Gates())
    assert no_numbers(page) == []


FIGURES = {
    "short": {"duration_us": 1e-9, "stall_wait": 1e20},
    "nothing moved": {"duration_us": 5.0, "dram_bytes": 0.0, "tensor_pct": 1e-9},
    "large": dict.fromkeys(
        ("duration_us", "sm_mhz", "ffma_per_cycle", "dram_bytes_per_cycle", "memory_mhz", "ffma_peak", "dram_bytes"),
        1e20,
    ),
}


@pytest.mark.parametrize("figures", FIGURES)
def test_any_profile_is_drawn(figures: str) -> None:
    example = EXAMPLES["slower"]()
    metrics = FIGURES[figures]
    both = (
        Profile(case=TARGET, side="base", metrics=metrics),
        Profile(case=TARGET, side="head", metrics={key: value / 2 for key, value in metrics.items()}),
    )
    made = example.record.model_copy(update={"profile": both})
    assert no_numbers(write(of_verdict(made, example.verdict, Policy()), Gates())) == []


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
@settings(max_examples=50)
def test_ticks_are_round_few_and_inside(low: float, width: float) -> None:
    axis = Scale(low, low + width, 0.0, 100.0)
    for most in (3, 5, 7):
        ticks = axis.ticks(most)
        assert 1 <= len(ticks) <= most + 1
        assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8), st.floats(-1e12, 1e12))
@settings(max_examples=50)
def test_every_value_stands_between_the_ends(shown: list[float], any_value: float) -> None:
    axis = Scale.over(shown, 10.0, 90.0)
    assert 10.0 <= axis.at(any_value) <= 90.0
    assert all(axis.holds(value) for value in shown)
