"""The page's drawings: whatever numbers a record holds, within the frame, and said in words."""

from __future__ import annotations

import re

import pytest

from kernelgate.bench.record import MAX_HOT_LINES, HotLine, HotSpots, Profile, Telemetry
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import of_verdict, reported
from kernelgate.ci.report.page import write
from kernelgate.ci.report.page_figures import MovedLine, moved_lines
from tests import runs
from tests.ci.report.situations import TARGET, situation
from tests.ci.report_examples import EXAMPLES
from tests.runs import on, process, run_record

TIMES = (
    (3.0,),
    (1e-9, 1e15) * 15,
    tuple(5 + 1e-12 * index for index in range(30)),
)
OFF_THE_SCALE = Telemetry(sm_mhz=1e20, temperature_c=-1e20, power_w=1e-20, throttle_reasons=("x",))
RATES = ("duration_us", "sm_mhz", "ffma_per_cycle", "dram_bytes_per_cycle", "memory_mhz", "ffma_peak", "dram_bytes")
FIGURES = (
    {"duration_us": 1e-9, "stall_wait": 1e20},
    {"duration_us": 5.0, "dram_bytes": 0.0, "tensor_pct": 1e-9},
    dict.fromkeys(RATES, 1e20),
)


def no_numbers(page: str) -> list[str]:
    return re.findall(r' (?:d|x|y|x1|x2|y1|y2|cx|cy|width|height)="[^"]*(?:nan|inf|e[+-])[^"]*"', page)


@pytest.mark.parametrize("sides", [("base", "head"), ("head",), ("reference",)])
def test_any_times_are_drawn(sides: tuple[str, ...]) -> None:
    for times in TIMES:
        every = [process(dict.fromkeys(sides, times), telemetry=one) for one in (None, Telemetry(), OFF_THE_SCALE)]
        page = write(reported(run_record((runs.case("c", every),), on("NVIDIA L4")), Policy()), Gates())
        assert no_numbers(page) == []


@pytest.mark.parametrize("figures", FIGURES, ids=["short", "nothing moved", "large"])
def test_any_profile_is_drawn(figures: dict[str, float]) -> None:
    example = EXAMPLES["slower"]()
    half = Profile(case=TARGET, side="head", metrics={key: value / 2 for key, value in figures.items()})
    both = (Profile(case=TARGET, side="base", metrics=dict(figures)), half)
    made = example.record.model_copy(update={"profile": both})
    assert no_numbers(write(of_verdict(made, example.verdict, Policy()), Gates())) == []


def shown(name: str) -> str:
    page = write(situation(name), Gates())
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page[page.index('<section class="samples"') :]))


@pytest.mark.slow
def test_what_gained_stands_first_with_both_sides() -> None:
    words = shown("samples by line")
    assert "(base 4,037, head 10,533 in all)" in words
    assert re.search(
        r"int x = \S+ .{0,60} gpu/kernels/collection.cu:17 → 9 base 2.4% short scoreboard "
        r"head 23.2% MIO queue full gained 20.8 points",
        words,
    )
    assert words.index("gained 20.8 points") < words.index("gained 8.7") < words.index("lost 35.0 points")
    assert words.index("Base: hottest instructions") < words.index("Head: hottest instructions")
    assert "17.5% MIO queue full S2R R17, SR_TID.X collection.cu:9" in words


def spots(*lines: tuple[int, str, int], samples: int = 10_000) -> HotSpots:
    listed = tuple(HotLine(file="a.cu", line=line, text=text, samples=count) for line, text, count in lines)
    return HotSpots(samples=samples, lines=listed)


def one(found: tuple[MovedLine, ...], text: str) -> MovedLine:
    (only,) = [each for each in found if each.text == text]
    return only


def test_a_line_that_a_full_list_left_out_has_no_share_and_no_change() -> None:
    full = spots(*((line, f"{line}", 400) for line in range(1, MAX_HOT_LINES + 1)))
    found = one(moved_lines(full, spots((90, "new", 4_000))), "new")
    assert (found.base.pct, found.head.pct, found.gain_pct, found.is_sure) == (None, 40.0, 0.0, False)
