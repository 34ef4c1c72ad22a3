"""A comparison finds one wrong element, and nothing where all are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelgate.bench.timing import checking, references, windows
from kernelgate.bench.timing.checking import CallError, CallTally, ComparedCall, Outputs
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, ROWS, SUM, VerifiedCase

OF_INTEGERS = "def outputs(self, case, x, y):\n    return Output(case.M, case.N, dtype='int32')\n"
OWN_RULE = "def compare(self, case, name, out, expected):\n    return {}\n"
BODIES = {
    "windows": (ROWS, AXES),
    "sets": (SUM, AXES),
    "half": (ROWS, {**AXES, "dtype": "fp16"}),
    "8 bits": (ROWS, {**AXES, "dtype": "fp8_e4m3"}),
    "integers": (ROWS + OF_INTEGERS, {**AXES, "dtype": "int32"}),
    "infinite": (ROWS.replace("return x + y", "return (x + y) / (y > 0)"), AXES),
    "in place": (ROWS.replace("out=0", "") + "in_place = ['x']\n", AXES),
    "own rule": (
        ROWS + "def compare(self, case, name, out, expected):\n    return bool((out == expected).all())\n",
        AXES,
    ),
    "own ratio": (
        ROWS + "def compare(self, case, name, out, expected):\n    return (out - expected).abs() / 1e-3\n",
        AXES,
    ),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "CHEAP_BYTES", 1 << 13)


@pytest.fixture(params=BODIES)
def body(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return BODIES[request.param]


@contextmanager
def calls(folder: Path, body: tuple[str, dict[str, Any]], count: int = 5) -> Iterator[tuple[VerifiedCase, Any]]:
    """Calls whose outputs are right."""
    with verified.opened(verified.write(folder, body[0]), body[1]) as case:
        planned = case.plan(count)
        for window, slot in zip(planned.windows, planned.slots, strict=True):
            case.work(case.given(window, slot), case.outs(slot), 0)
        yield case, planned


def compared(case: VerifiedCase, planned: Any) -> list[CallError]:
    made = [ComparedCall(window, slot) for window, slot in zip(planned.windows, planned.slots, strict=True)]
    known = case.verifier.references
    return checking.compare_calls(case.pool, known, Outputs(case.verifier.arena, case.verifier.outputs), made)


def test_what_is_right_passes(body: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    with calls(tmp_path, body) as (case, planned):
        errors = compared(case, planned)
        assert [error.failed for error in errors] == [False] * 5
        if body in (BODIES["windows"], BODIES["sets"], BODIES["half"]):
            assert all(error.maximum is not None and error.maximum < 1e-2 for error in errors)
            assert all(error.mean is not None and error.mean <= (error.maximum or 0) for error in errors)


def one_wrong_element(out: torch.Tensor) -> None:
    out[4, 7] = 100


def one_that_is_not_finite(out: torch.Tensor) -> None:
    out[5, 15] = float("nan") if out.is_floating_point() else -128


def a_stale_row(out: torch.Tensor) -> None:
    out[2] = out[3]


def nothing_written(out: torch.Tensor) -> None:
    out.view(torch.uint8).fill_(0xFF)


@pytest.mark.parametrize("fault", [one_wrong_element, one_that_is_not_finite, a_stale_row, nothing_written])
def test_one_wrong_call_among_right_ones_is_found(
    body: tuple[str, dict[str, Any]], tmp_path: Path, fault: Callable[[torch.Tensor], None]
) -> None:
    with calls(tmp_path, body) as (case, planned):
        fault(case.outs(planned.slots[2])[case.names[0]])
        errors = compared(case, planned)
        assert [error.failed for error in errors] == [False, False, True, False, False]
        if body == BODIES["windows"]:
            unknown = fault in (one_that_is_not_finite, nothing_written)
            assert (errors[2].maximum is None) is unknown
            assert (errors[2].mean is None) is unknown


def test_an_error_within_the_tolerance_is_none(tmp_path: Path) -> None:
    with calls(tmp_path, BODIES["windows"]) as (case, planned):
        atol, rtol = case.verifier.references.limits["out"]
        out = case.outs(planned.slots[0])["out"]
        limit = atol + rtol * float(out[1, 1].abs())
        out[1, 1] += 0.9 * limit
        assert not compared(case, planned)[0].failed
        out[1, 1] += 0.2 * limit
        (found, *_) = compared(case, planned)
        assert found.failed
        assert found.maximum == pytest.approx(1.1 * limit, rel=1e-2)


def test_each_output_is_looked_at(tmp_path: Path) -> None:
    body = """
cases = [dict(M=6, N=16, dtype="fp32")]
independent = dict(x=0, total=0, signs=0)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def outputs(self, case, x):
    return dict(total=Output(case.M), signs=Output(case.M, case.N))
def oracle(self, case, x):
    return x.sum(1), x.sign()
"""
    with calls(tmp_path, (body, AXES)) as (case, planned):
        case.outs(planned.slots[1])["total"][5] += 1
        case.outs(planned.slots[3])["signs"][0, 0] += 1
        assert [error.failed for error in compared(case, planned)] == [False, True, False, True, False]


# ----------------------------------------------------------------------------------------------------------------------
# Where a part has references
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["", OWN_RULE.format("out == expected")])
def test_where_rows_have_references_the_others_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 0.0})
    monkeypatch.setattr(references, "PROVEN_ELEMENTS", 1)
    with calls(tmp_path, (ROWS + own, {**AXES, "M": 64}), 1) as (case, planned):
        right = checking.right_of(case.pool, case.verifier.references, planned.windows[0])
        assert right.entries is not None
        out = case.outs(planned.slots[0])["out"]
        other = next(row for row in range(64) if row not in right.entries.tolist())
        out[other] += 1
        assert not compared(case, planned)[0].failed
        out[int(right.entries[-1]), 3] += 1
        assert compared(case, planned)[0].failed


# ----------------------------------------------------------------------------------------------------------------------
# Sums
# ----------------------------------------------------------------------------------------------------------------------


def test_a_tally_counts_and_keeps_the_largest_error() -> None:
    tally = CallTally(made=9)
    for error in (CallError(False, 0.25, 0.1), CallError(True, 2.0, 0.3)):
        tally.add(error)
    calls = tally.calls(repeated=4)
    assert (calls.made, calls.compared, calls.failed, calls.repeated) == (9, 2, 1, 4)
    assert tally.errors().maximum == 2.0
    assert tally.errors().mean == pytest.approx(0.2)
    tally.add(CallError(True, None))
    assert tally.errors().maximum is None
    assert tally.errors().mean == pytest.approx(0.2)
