"""Each way of calling a kernel finds the fault that it is for, and leaves a right kernel alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, ways
from kernelgate.bench.record import FuzzResult
from tests import faulty
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")

Build = Callable[[str], Library]
CASE = "b2_h3_d64_fp32_scale0.125_distribution-normal_way-"
PLAIN = "d64_fp32_scale{}_distribution-normal_way-plain"
ALLOWED = "times what is allowed"


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many however busy the machine is."""
    monkeypatch.setattr(ways, "REPEAT_S", 60.0)
    monkeypatch.setattr(ways, "REPEATS", 20)


def tried(library: Library, trial: str) -> FuzzResult:
    (result,) = fuzz.run(library, faulty.card(), 1, CPU, [trial]).results
    return result


@pytest.mark.parametrize(
    ("fault", "trial", "says"),
    [
        ("ignores_strides", f"s9_{CASE}gaps", "where q has gaps between its rows: .* or refuse it by an error"),
        ("ignores_strides", f"s9_{CASE}transposed", "where q has its last two axes exchanged in memory: "),
        ("refuses_without_a_name", f"s0_{CASE}plain", "the kernel raised an error: bad memory"),
        ("rarely_wrong", f"s9_{CASE}repeat", "call 400 on the same inputs: error 1"),
        ("keeps_its_choice_by_shape", f"s9_{CASE}between-others", "called with causal=True in between: .* keep some"),
        (
            "wrong_where_inputs_are_one",
            f"s9_{CASE.replace('fp32', 'fp32_causal')}shared-inputs",
            "where inputs of one shape are one tensor: error",
        ),
        ("static_workspace", f"s9_{CASE}two-threads", "called from two threads at once: error"),
        ("writes_before_output", f"s9_{CASE}offset", "the kernel wrote to memory outside the output out"),
        ("loses_the_sign_of_the_scale", f"s65_b1_h2_{PLAIN.format('-0.5')}", ALLOWED),
        pytest.param("cuts_off_after_1024", f"s1025_b1_h1_{PLAIN.format(0.125)}", ALLOWED, marks=pytest.mark.slow),
        pytest.param("folds_heads", f"s2_b1025_h1_{PLAIN.format(0.125)}", ALLOWED, marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_found(built: Build, fault: str, trial: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "rarely_wrong":
        monkeypatch.setattr(ways, "REPEATS", 450)
    result = tried(built(fault), trial)
    assert not result.passed
    assert re.search(says, result.message or ""), result.message
    assert result.repeat == f"kernelgate fuzz --seed 1 --case attention/{trial}"


@pytest.mark.parametrize(
    "way",
    ["offset", "gaps", "transposed", "repeat", "plain", "between-others", "shared-inputs", "two-threads"],
)
def test_a_right_kernel_passes_every_way(built: Build, way: str) -> None:
    result = tried(built("none"), f"s{0 if way == 'plain' else 9}_{CASE}{way}")
    assert (result.passed, result.note, result.repeatable) == (True, None, True if way == "repeat" else None)


@pytest.mark.parametrize("kernel", ["refuses_views", "refuses_without_a_name"])
def test_a_kernel_may_refuse_a_view_by_an_error_of_any_words(built: Build, kernel: str) -> None:
    result = tried(built(kernel), f"s9_{CASE}transposed")
    assert (result.passed, result.note) == (True, "refused by an error: q, k, v, out")
    assert result.kind == "refused", "which is no result that others are held against"


def test_other_bits_at_another_call_are_said_and_no_fault(built: Build) -> None:
    result = tried(built("never_twice_the_same"), f"s9_{CASE}repeat")
    assert (result.passed, result.repeatable) == (True, False)
    assert re.fullmatch(r"not the same to the bit in \d+ of \d+ calls on the same inputs", result.note or "")


@pytest.mark.parametrize("count", [1, 3, 100])
def test_of_few_entries_none_beyond_the_last_is_looked_at(count: int) -> None:
    """On a GPU an index past the end would end the process's context."""
    found = ways._entries(count, {"out": torch.empty(count, 5)})
    assert found == sorted(set(found))
    assert {0, count - 1} <= set(found) <= set(range(count))
