"""Case ids, the work of a case, and which cases are chosen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.errors import UsageError
from kernelgate.bench.kernel import case_list
from kernelgate.bench.kernel.case_list import SuiteCase

CASES = st.builds(
    SuiteCase,
    seq=st.integers(1, case_list.MAX_SEQ),
    batch=st.integers(1, 512),
    heads=st.integers(1, 128),
    dtype=st.sampled_from(["fp16", "bf16", "fp32"]),
    causal=st.booleans(),
)


@given(CASES)
def test_an_id_and_a_case_are_two_spellings_of_one_thing(case: SuiteCase) -> None:
    assert case_list.parse(case.id) == case


def test_ids_read_as_the_design_says() -> None:
    assert SuiteCase(512, 32, 8, "fp16").id == "s512_b32_h8_d64_fp16"
    assert case_list.parse("s512_b8_h8_d64_bf16_causal") == SuiteCase(512, 8, 8, "bf16", causal=True)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "s512",
        "s0_b1_h1_d64_fp16",
        "s4097_b1_h1_d64_fp16",
        "s512_b32_h8_d128_fp16",
        "s512_b32_h8_d64_fp8",
        "s512_b32_h8_d64_fp16 ",
    ],
)
def test_what_is_no_id_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(UsageError, match="s512_b32_h8_d64_fp16"):
        case_list.parse(wrong)


def test_the_work_of_a_case() -> None:
    full, causal = SuiteCase(512, 32, 8, "fp16"), SuiteCase(512, 32, 8, "fp16", causal=True)
    assert full.work.flops == 4 * 32 * 8 * 512 * 512 * 64
    assert causal.work.flops == 4 * 32 * 8 * (512 * 513 / 2) * 64
    assert full.work.bytes == causal.work.bytes == 4 * 32 * 8 * 512 * 64 * 2
    assert SuiteCase(1, 1, 1, "fp32", causal=True).work == SuiteCase(1, 1, 1, "fp32").work


def test_the_axes_name_the_case_for_people() -> None:
    assert SuiteCase(512, 32, 8, "bf16", causal=True).axes == {
        "S": 512, "B": 32, "H": 8, "D": 64, "dtype": "bf16", "causal": 1
    }  # fmt: skip


def test_the_suites() -> None:
    assert case_list.SUITES["pr"][0] == case_list.SUITES["full"][0] == case_list.TARGET
    assert {name: len(cases) for name, cases in case_list.SUITES.items()} == {"pr": 11, "full": 27, "cpu": 3}
    assert all(len(set(cases)) == len(cases) for cases in case_list.SUITES.values())
    assert {case.seq for case in case_list.SUITES["full"]} == {448, 512, 640}


def test_what_is_chosen() -> None:
    one = case_list.TARGET.id
    assert case_list.select("cuda", None, []) == case_list.SUITES["pr"]
    assert case_list.select("cpu", None, []) == case_list.SUITES["cpu"]
    assert case_list.select("cuda", "full", []) == case_list.SUITES["full"]
    assert case_list.select("cuda", None, [one, one]) == (case_list.TARGET,)


@pytest.mark.parametrize(
    ("device", "name", "ids", "says"),
    [
        ("cuda", "none", [], "pr, full, cpu"),
        ("cuda", "pr", ["s512_b32_h8_d64_fp16"], "not both"),
        ("cuda", None, ["s512_b1_h1_d64_fp32"], "not fp32"),
        ("cpu", None, ["s512"], "s512"),
    ],
)
def test_what_cannot_be_chosen(device: str, name: str | None, ids: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        case_list.select(device, name, ids)
