"""What is right for a pool: how precise it is, how much of it there is, that it follows what changes place, and that
each output is held against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.timing import pool, references, verifier
from kernelgate.bench.timing.device import DeviceComparison
from kernelgate.bench.timing.references import CallError, Way
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, IN_PLACE, ROWS, SUM, TWO_OUTPUTS, VerifiedCase


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "CHEAP_BYTES", 1 << 14)


def way(case: VerifiedCase) -> Way:
    found = case.verifier.oracle.way
    assert found is not None
    return found


CANCELS = ROWS.replace("return x + y", "return (x + 3e4) - 3e4 + y")
IN_FLOAT64 = ROWS.replace("return x + y", "assert x.dtype == torch.float64\n    return x + y")


@pytest.mark.parametrize(
    ("body", "wide"),
    [(ROWS, False), (CANCELS, True), (IN_FLOAT64, True)],
    ids=["harmless", "cancels", "takes no other"],
)
def test_an_oracle_that_float32_is_too_coarse_for_is_asked_in_float64(tmp_path: Path, body: str, wide: bool) -> None:
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        assert way(case).wide is wide
        right = case.right(3)["out"]
        found = case.verifier.references.right_of(3)
        assert (found[1]["out"].reshape(right.shape) - right).abs().max() < 1e-6


def test_an_oracle_that_looks_at_other_rows_is_one_sentence(tmp_path: Path) -> None:
    body = ROWS.replace("return x + y", "return (x + y).sum(0)")
    card, said = verified.write(tmp_path, body), r"oracle\(\) gave 16 elements of out for \d+ entries, not \d+"
    with pytest.raises(UsageError, match=said), verified.opened(card, AXES):
        pytest.fail("it cannot be prepared")


# How much of it there is


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time to ask the oracle."""
    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 0.0})
    monkeypatch.setattr(references, "PROVEN_ELEMENTS", 1)


@pytest.mark.usefixtures("slow")
def test_where_the_oracle_is_slow_some_entries_have_references(tmp_path: Path) -> None:
    """Others each time that the pool is drawn."""
    with verified.opened(verified.write(tmp_path, ROWS), {**AXES, "M": 64}) as case:
        known = case.verifier.references
        assert not known.complete
        assert len(known.entries) == 16, "twice an eighth of a case"
        assert bool((known.entries[1:] > known.entries[:-1]).all())
        entries_are_right(case)
        order = case.pool.shuffle()
        assert order is not None
        known.follow(order)
        entries_are_right(case)
        before = known.entries
        case.plan(0, "new")
        assert case.verifier.references.entries.tolist() != before.tolist()
        entries_are_right(case)
        assert [case.turn(case.work, 64) for _ in range(4)] == [0] * 4, "of windows without any, none is compared"
        assert case.verifier.tallies["head"].compared
        share = f"{100 * 16 / case.pool.size.entries:.2g}% of each were looked at"
        assert [note.text for note in case.verifier.close().notes if share in note.text]


def entries_are_right(case: VerifiedCase) -> None:
    """Each window's, by the oracle's whole answer for it."""
    met = set()
    for window in range(case.pool.size.windows):
        if not all(case.verifier.references.comparable([window])):
            continue
        entries, values = case.verifier.references.right_of(window)
        assert entries is not None
        met.update((entries + case.pool.size.start(window)).tolist())
        torch.testing.assert_close(values["out"].double(), case.right(window)["out"][entries])
    assert met == set(case.verifier.references.entries.tolist())


@pytest.mark.usefixtures("slow")
def test_where_the_oracle_is_slow_one_set_has_references(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        known = case.verifier.references
        assert known.entries.tolist() == [0]
        assert not known.complete
        order = case.pool.shuffle()
        assert order is not None
        known.follow(order)
        for window in range(case.pool.size.windows):
            assert known.comparable([window]) == [order.tolist()[window] == 0]
            entries, right = known.right_of(window)  # which asks the oracle about the others
            assert entries is None
            torch.testing.assert_close(right["out"].double().view(6, 16), case.right(window)["out"])


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("set_us", "least"), [(0.0, 10), (1e9, 1)])
def test_where_the_oracle_is_slow_it_is_asked_about_calls_that_were_made(
    tmp_path: Path, set_us: float, least: int
) -> None:
    """As many as there is time for, and never none: of calls on two sets of many, chance would compare none at all."""
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        case.verifier.references.set_us = set_us
        assert case.turn(case.work, 40) == 0
        assert case.turn(verified.nothing, 40, "base") >= least
        closed = case.verifier.close()
        assert [closed.calls[side].compared >= least for side in ("base", "head")] == [True, True]
        compared = sum(calls.compared for calls in closed.calls.values())
        assert f"the outputs of {compared} of 80 calls were looked at" in closed.notes[-1].text


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("busy_us", "least"), [(1e9, 8), (0.0, 1)], ids=["long calls", "no time at all"])
def test_where_the_oracle_is_slow_each_side_has_what_a_judge_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_us: float, least: int
) -> None:
    """More than a share of 1%, for else the record is not believed, and no repeat would change that."""
    monkeypatch.setattr(verifier, "LEAST_US", {"cpu": 0.0})
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        case.verifier.references.set_us = 160e6  # beside which what this machine takes is nothing
        monkeypatch.setattr(case.verifier, "_redraw", lambda: None)
        monkeypatch.setattr(case.verifier.references, "comparable", lambda windows: [False] * len(windows))
        for _ in range(4):
            case.plan(200)
            case.check(("base", "head") * 100, busy_us=busy_us)
        assert min(case.verifier.tallies[side].compared for side in ("base", "head")) >= least


def test_where_there_is_time_each_set_has_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 600.0})
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        assert case.verifier.references.complete


COUNTS = "asked = []\n" + ROWS.replace("return x + y", "self.asked.append(len(x))\n    return x + y")
"""A card that counts the entries that its oracle is asked for."""


def test_the_oracle_is_asked_in_slices_that_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "CHUNK_ELEMENTS", 5 * 16)
    with verified.opened(verified.write(tmp_path, COUNTS), AXES) as case:
        assert case.verifier.references.complete
        asked: list[int] = getattr(case.kernel, "asked")  # noqa: B009 - of this card alone
        assert max(asked[:-1]) == 5, "the last one is the reference, which is timed whole"
        x, y = (case.pool.entries(name) for name in ("x", "y"))
        torch.testing.assert_close(case.verifier.references.values["out"], x + y)


OF_INTEGERS = "def outputs(self, case, x, y):\n    return Output(case.M, case.N, dtype='int32')\n"
OWN_RULE = "def compare(self, case, name, out, expected):\n    return bool((out == expected).all())\n"
BY_INPUTS = """
def compare(self, case, name, out, expected, inputs, outputs):
    return (outputs[name] - self.oracle(case, **inputs)).abs() <= 1e-3
"""
BODIES = {
    "windows": (ROWS, AXES),
    "sets": (SUM, AXES),
    "integers": (ROWS + OF_INTEGERS, {**AXES, "dtype": "int32"}),
    "infinite": (ROWS.replace("return x + y", "return (x + y) / (y > 0)"), AXES),
    "in place": (IN_PLACE, AXES),
    "own rule": (ROWS + OWN_RULE, AXES),
    "rule beside inputs": (ROWS + BY_INPUTS, AXES),
    "rule beside the inputs of a set": (SUM + BY_INPUTS, AXES),
}


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
    return case.verifier.references.compare(list(zip(planned.windows, planned.slots, strict=True)))


def one_wrong_element(out: torch.Tensor) -> None:
    out[4, 7] = 100


def one_that_is_not_finite(out: torch.Tensor) -> None:
    out[5, 15] = float("nan") if out.is_floating_point() else -128


def a_stale_row(out: torch.Tensor) -> None:
    out[2] = out[3]


def nothing_written(out: torch.Tensor) -> None:
    out.view(torch.uint8).fill_(0xFF)


def test_wrong_calls_among_right_ones_are_found(body: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    with calls(tmp_path, body, 9) as (case, planned):
        assert case.verifier.references.values[case.names[0]].is_floating_point() == (body != BODIES["integers"])
        faults = {1: one_wrong_element, 3: one_that_is_not_finite, 5: a_stale_row, 7: nothing_written}
        errors = compared(case, planned)
        assert [error.failed for error in errors] == [False] * 9
        if body in (BODIES["windows"], BODIES["sets"]):
            assert all(error.maximum is not None and error.maximum < 1e-2 for error in errors)
            assert all(error.mean is not None and error.mean <= (error.maximum or 0) for error in errors)
        for at, fault in faults.items():
            fault(case.outs(planned.slots[at])[case.names[0]])
        errors = compared(case, planned)
        assert [error.failed for error in errors] == [at in faults for at in range(9)]
        if body == BODIES["windows"]:
            unknown = [False, False, False, True, False, False, False, True, False]
            assert [error.maximum is None for error in errors] == unknown
            assert [error.mean is None for error in errors] == unknown


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
    with calls(tmp_path, (TWO_OUTPUTS, AXES)) as (case, planned):
        case.outs(planned.slots[1])["total"][5] += 1
        case.outs(planned.slots[3])["signs"][0, 0] += 1
        assert [error.failed for error in compared(case, planned)] == [False, True, False, True, False]


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("own", ["", OWN_RULE, BY_INPUTS])
def test_where_rows_have_references_the_others_are_not_looked_at(tmp_path: Path, own: str) -> None:
    with calls(tmp_path, (ROWS + own, {**AXES, "M": 64}), 1) as (case, planned):
        entries, _ = case.verifier.references.right_of(planned.windows[0])
        assert entries is not None
        out = case.outs(planned.slots[0])["out"]
        other = next(row for row in range(64) if row not in entries.tolist())
        out[other] += 1
        assert not compared(case, planned)[0].failed
        out[int(entries[-1]), 3] += 1
        assert compared(case, planned)[0].failed


def test_a_call_is_as_wrong_as_its_worst_output() -> None:
    first = DeviceComparison(max_abs=0.5, wrong=0, nonfinite=0, mean_abs=0.1, compared=4)
    second = DeviceComparison(max_abs=2.0, wrong=1, nonfinite=0, mean_abs=0.3, compared=4)
    assert references._worst([first, second]) == CallError(True, 2.0, pytest.approx(0.2))
    assert references._worst([first, first]) == CallError(False, 0.5, pytest.approx(0.1))
    assert references._worst([first, replace(second, nonfinite=1)]) == CallError(True, None, None)
    with pytest.raises(KernelgateError, match="did not run"):
        references._worst([first, replace(second, compared=0)])
