"""Real paired comparisons whose answer is known: tests/data/comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge import policy
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import CaseVerdict, Direction, Outcome, exit_code, judge
from kernelgate.ci.report import why

ROOT = Path(__file__).parent.parent.parent
TARGET = "s512_b32_h8_d64_fp16"


def paired_record(name: str) -> RunRecord:
    return record.read(ROOT / "tests" / "data" / "comparisons" / f"{name}.json")


def target(name: str, rules: Policy) -> CaseVerdict:
    return next(case for case in judge(paired_record(name), rules).cases if case.id == TARGET)


@pytest.fixture(scope="module")
def rules() -> Policy:
    return policy.load(ROOT / ".ci" / "kernelgate.toml")


def test_a_slowdown_of_5_percent_blocks(rules: Policy) -> None:
    verdict = judge(paired_record("slower_5pct"), rules)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.REGRESSED, 1)
    assert {case.verdict for case in verdict.cases} == {Outcome.REGRESSED}
    found = target("slower_5pct", rules)
    assert found.interval_pct is not None
    assert found.interval_pct[0] > 4.5
    assert found.interval_pct[1] < 6.0


def test_a_slowdown_of_1_percent_is_seen_and_blocks_nothing(rules: Policy) -> None:
    verdict = judge(paired_record("slower_1pct"), rules)
    assert exit_code(verdict) == 2
    assert {case.direction for case in verdict.cases} == {Direction.SLOWER}
    found = target("slower_1pct", rules)
    assert found.interval_pct is not None
    assert found.interval_pct[0] > 0.5
    assert found.interval_pct[1] < 1.5


def test_identical_code_is_equivalent(rules: Policy) -> None:
    sides = {build.side: build.library_sha256 for build in paired_record("identical").builds}
    assert sides["base"] != sides["head"], "two libraries, or nothing is shown"
    verdict = judge(paired_record("identical"), rules)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.EQUIVALENT, 2)
    assert {case.direction for case in verdict.cases} == {Direction.NONE}


def test_a_kernel_that_runs_into_the_power_limit_is_judged_case_by_case(rules: Policy) -> None:
    """The largest cases draw so much power that the clock falls: of them nothing is claimed, of the others all."""
    verdict = judge(paired_record("wgmma"), rules)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.INCONCLUSIVE, 2)
    improved = {case.id: case.change_pct for case in verdict.cases if case.verdict is Outcome.IMPROVED}
    assert len(improved) == 9
    assert improved["s512_b32_h8_d64_fp16"] == pytest.approx(-40.8, abs=0.05)
    assert {case.id for case in verdict.cases} - set(improved) == {"s512_b32_h16_d64_fp16", "s512_b48_h16_d64_fp16"}
    assert "throttled in 5 of 5 processes" in verdict.reason


@pytest.mark.parametrize(("name", "slower"), [("slower_5pct", True), ("identical", False)])
def test_the_h200_baseline_sees_what_is_large(name: str, slower: bool, rules: Policy) -> None:
    baseline = record.read(ROOT / "tests" / "data" / "baseline_h200_run1.json")
    verdict = judge(paired_record(name), rules, baseline, against="baseline_h200.json")
    assert {case.direction is Direction.SLOWER for case in verdict.cases} == {slower}


def test_the_baseline_of_another_gpu_is_refused_by_name(rules: Policy) -> None:
    baseline = record.read(ROOT / ".ci" / "baseline_s512.json")
    verdict = judge(paired_record("identical"), rules, baseline, against="baseline_s512.json")
    assert exit_code(verdict) == 3
    assert "measured on NVIDIA L4, this record on NVIDIA H200" in verdict.reason


CARDS = ROOT / "tests" / "data" / "cards"


@pytest.mark.parametrize(("name", "cases"), [("rmsnorm_same", 6), ("swiglu_same", 8), ("int8_same", 4)])
def test_other_kernels_against_themselves_are_equivalent(name: str, cases: int, rules: Policy) -> None:
    """RMSNorm in CUDA, SwiGLU in Triton, an int8 matrix product: the head differs by a comment."""
    measured = record.read(CARDS / f"{name}.json")
    assert len({build.library_sha256 for build in measured.builds}) == 2, "two libraries, or nothing is shown"
    verdict = judge(measured, rules)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.EQUIVALENT, 2)
    assert [case.direction for case in verdict.cases] == [Direction.NONE] * cases
    assert [(check.status, len(check.results)) for check in measured.checks] == [("passed", 32)]
    assert not [note for note in measured.notes if note.code == "compiled_while_measuring"]


@pytest.mark.parametrize(
    ("name", "case", "least", "most"),
    [("rmsnorm_slower", "m4096_n8192_fp16", 3.0, 6.0), ("swiglu_slower", "t4096_f14336_bf16", 3.0, 6.0)],
)
def test_other_kernels_that_do_5_percent_more_work_are_slower(
    name: str, case: str, least: float, most: float, rules: Policy
) -> None:
    """More blocks do some rows again. Of small cases they fit into the last wave, and nothing is lost."""
    verdict = judge(record.read(CARDS / f"{name}.json"), rules)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.REGRESSED, 1)
    [found] = [one for one in verdict.cases if one.id == case]
    assert found.direction is Direction.SLOWER
    assert found.interval_pct is not None
    assert least < found.interval_pct[0] < found.interval_pct[1] < most


def test_the_roofline_of_an_int8_kernel_is_that_of_int8() -> None:
    """137.4 billion operations in 225 µs, of 8192 a clock on 132 multiprocessors at 1743 MHz."""
    measured = record.read(CARDS / "int8_same.json")
    [both] = why.both_sides(measured)
    roof = both.head.roofline
    assert roof.achieved_flops == pytest.approx(610e12, rel=0.01)
    assert roof.peak_flops == pytest.approx(1885e12, rel=0.01)
    assert (roof.roof, roof.percent_of_roof) == ("tensor", pytest.approx(32.4, abs=0.5))
