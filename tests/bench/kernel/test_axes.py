"""Ids of cases: unique, and read back to the axes that they came from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.kernel import axes
from kernelgate.bench.kernel.axes import RESERVED, AxisValue

WORDS = st.text("abcXYZ019.=-", min_size=1, max_size=6)
VALUES: tuple[st.SearchStrategy[AxisValue], ...] = (
    st.integers(-(10**18) + 1, 10**18 - 1),
    st.booleans(),
    WORDS,
    st.floats(allow_nan=False, allow_infinity=False),
)
NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,3}", fullmatch=True).filter(lambda name: name not in RESERVED)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, AxisValue], dict[str, AxisValue]]:
    """Two cases of one card: the same axes, of the same kinds."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower))
    kinds = {name: draw(st.sampled_from(VALUES)) for name in names if name.lower() != "dtype"}
    kinds["dtype"] = st.sampled_from(list(DTYPES))
    order = draw(st.permutations(list(kinds)))
    one, other = ({name: draw(kinds[name]) for name in order} for _ in range(2))
    return one, other


@settings(max_examples=25)
@given(cases())
def test_an_id_is_read_back_to_the_axes_that_it_came_from(both: tuple[dict[str, AxisValue], ...]) -> None:
    case, example = both
    assert not [why for axis, value in case.items() if (why := axes.mistake(axis, value))]
    assert axes.parse(axes.case_id(case), example) == case
    assert axes.parse(axes.case_id(case), case) == case


@pytest.mark.parametrize(
    ("case", "id_", "label"),
    [
        ({"S": 512, "B": 32, "H": 8, "D": 64, "dtype": "fp16", "causal": True}, "s512_b32_h8_d64_fp16_causal",
         "S=512 B=32 H=8 D=64 fp16 causal"),
        ({"S": 512, "dtype": "bf16", "causal": False}, "s512_bf16", "S=512 bf16"),
        ({"M": 4, "scale": 0.125, "layout": "NHWC", "dtype": "fp8_e4m3"}, "m4_scale0.125_layout-NHWC_fp8_e4m3",
         "M=4 scale=0.125 layout=NHWC fp8_e4m3"),
        ({"M": -3, "eps": 1e-05, "x": 2.0}, "m-3_eps1e-05_x2", "M=-3 eps=1e-05 x=2"),
    ],
)  # fmt: skip
def test_ids_and_labels_as_the_documents_show_them(case: dict[str, AxisValue], id_: str, label: str) -> None:
    assert axes.case_id(case) == id_
    assert axes.label(case) == label


def test_what_is_written_otherwise_is_no_id() -> None:
    example = {"S": 512, "B": 32, "dtype": "fp16", "causal": False}
    for wrong in ("", "s_b1_fp16", "s512_b32_fp8", "b1_s512_fp16", "s٣_b1_fp16"):
        assert axes.parse(wrong, example) is None


@pytest.mark.parametrize(
    ("axis", "value", "why"),
    [
        ("1M", 1, "is not a name of letters and digits"),
        ("Größe", 1, "is not a name of letters and digits"),
        ("items", 1, "no axis may be called 'items'"),
        ("M", None, "it may be a number, a word, True or False"),
        ("M", float("nan"), "a number must be finite"),
        ("dtype", "fp15", "it may be fp32, fp16, bf16"),
        ("dtype", 16, "it may be fp32"),
        ("layout", "a_b", "a word in an id has letters, digits"),
    ],
)
def test_what_cannot_stand_in_an_id(axis: str, value: object, why: str) -> None:
    assert why in (axes.mistake(axis, value) or "")
