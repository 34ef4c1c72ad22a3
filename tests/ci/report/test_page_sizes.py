"""The drawings of a ladder: every side told apart without colour, within the frame, and said in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kernelgate.ci.explain.next_step import Ladder, Rung
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import page_sizes
from kernelgate.ci.report.page import write
from tests.ci.report.situations import situation


def rungs(*times: tuple[int, float, float, float | None]) -> Ladder:
    return Ladder("attention", "S", tuple(Rung(*one) for one in times))


EIGHT = rungs(*((32 << step, 4.0 + step**3, 3.0 + step**3.5, 5.0 + step**3) for step in range(8)))


def test_the_page_of_a_ladder_has_both_drawings_and_says_every_size() -> None:
    page = write(situation("a ladder of sizes"), Gates())
    assert {"Sizes: time of one call", "Sizes: × PyTorch"} <= set(re.findall(r"<strong>(.*?)</strong>", page))
    assert "Time of one call by S. S=32: base 4.020 µs, head 4.024 µs, PyTorch 3.030 µs; S=64: " in page
    assert "How many times as fast as PyTorch the head is, by S. S=32: 0.75×; S=64: " in page
    assert "From the smallest size to the largest" not in write(situation("slower"), Gates())


def test_base_head_and_reference_are_told_apart_without_colour() -> None:
    for drawing in page_sizes.ladder(EIGHT, "PyTorch", "Sizes"):
        # Beside the eight sizes, each stands in the key.
        assert (drawing.count('class="base"'), drawing.count('class="head"')) == (9, 9)
        for side in ("base", "head", "reference"):
            assert drawing.count(f'class="curve {side}"') == 2


@pytest.mark.parametrize(
    "found",
    [
        EIGHT,
        rungs(*((step, 10.0, 10.0, None) for step in range(1, 6))),
        rungs(*((step, 11.0 + step, 1e-3, None) for step in range(1, 400))),
        rungs((1, 1e-3, 1e10, 1e-2), (10**15, 1e10, 1e-3, 1e9)),
    ],
    ids=["eight", "flat, head alone", "400", "extreme"],
)
def test_whatever_was_timed_stays_in_the_frame(found: Ladder) -> None:
    for drawing in page_sizes.ladder(found, "PyTorch", "Sizes"):
        svg = ElementTree.fromstring(re.findall("<svg.*</svg>", drawing, re.DOTALL)[0])  # noqa: S314 (ours)
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())
        assert len([one for one in svg.iter() if one.get("class") == "tick"]) >= 2
        assert len([one for one in svg.iter() if one.get("class") == "name"]) >= 2
        for element in svg.iter():
            for key, most in (("x", width), ("cx", width), ("x1", width), ("x2", width), ("y", height), ("cy", height)):
                if key in element.attrib:
                    assert -0.1 <= float(element.attrib[key]) <= most + 0.1, ElementTree.tostring(element)
