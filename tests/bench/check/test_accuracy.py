"""Base and head on the same inputs: which errors are measured, and what a kernel that fails leaves of the others.

With attention, whose faults are planted (tests/faulty.py), and with cards of a few lines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.check import accuracy, accuracy_worker
from kernelgate.bench.kernel.cards import CardFacts, ChosenCase
from kernelgate.bench.kernel.commit import Compared
from kernelgate.bench.record import Check, OutputAccuracy
from tests import faulty, registered
from tests.accuracies import output, side
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")
CASE = """
cases = [dict(M=16, N=256, dtype="fp16"), dict(M=16, N=256, dtype="fp32")]
cpu_cases = cases
distributions = ("normal", "large")
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def call(self, ops, case, out, x):
    ops.third(x, out)
def oracle(self, case, x):
    return x / 3
"""
KERNEL = """
@operator("third(Tensor x, Tensor(a!) out) -> ()")
def third(x, out):
    CODE
"""
RIGHT = "out.copy_(x.double() / 3)"
OTHER = "out.copy_(x / 3)"
TWICE = "out.copy_((x.double() / 7).to(x.dtype).double() * 7 / 3)"


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """And time enough, on a machine that others use."""
    monkeypatch.setattr(accuracy, "BUDGET_S", 600.0)


Measure = Callable[..., Check]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    """The check of kernels that do this, for a card of a few lines."""

    def measure(base: str, head: str, body: str = CASE, namespaces: tuple[str, str] = ("base", "head")) -> Check:
        libraries = (
            registered.build(tmp_path / name, f"{tmp_path.name}_{namespace}", KERNEL.replace("CODE", code), "third")
            for name, namespace, code in zip(("base", "head"), namespaces, (base, head), strict=True)
        )
        return measured(registered.facts(registered.write_card(tmp_path / "cards", "third", body)), Sides(*libraries))

    return measure


def measured(card: CardFacts, sides: Sides, only: str = "") -> Check:
    chosen = [ChosenCase(card, case) for case in card.suites["cpu"] if case.id.endswith(only)]
    (check,) = accuracy.run(accuracy.comparable([Compared(card, sides, None)], chosen), 1, CPU)
    return check


def by_name(check: Check) -> dict[tuple[str, str], OutputAccuracy]:
    return {(one.case, one.distribution): one for one in check.accuracies}


def test_every_case_as_it_is_timed_and_the_first_in_every_distribution(measure: Measure) -> None:
    check = measure(RIGHT, TWICE)
    half, single = "m16_n256_fp16", "m16_n256_fp32"
    assert (check.kind, check.status, check.reason, check.asked, check.run) == ("accuracy", "passed", None, 3, 3)
    found = by_name(check)
    assert list(found) == [(half, "normal"), (single, "normal"), (half, "large")]
    for one in found.values():
        assert (one.base.draws, one.identical, one.elements, one.not_finite) == (accuracy.DRAWS, 0, 4096, 0)
        assert max(one.base.maximum) < 0.501
        assert min(head / base for base, head in zip(one.base.mean, one.head.mean, strict=True)) > 1.3
    assert len(set(found[half, "normal"].base.mean)) == accuracy.DRAWS, "each draw is another one"


TWO = """
cases = [dict(M=16, N=256, dtype="fp16")]
cpu_cases = cases
distributions = ("normal",)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def outputs(self, case, x):
    return dict(out=Output(case.M, case.N), index=Output(case.M, dtype="int64"))
def call(self, ops, case, out, index, x):
    ops.third(x, out)
    index.copy_(x.argmax(-1))
def oracle(self, case, x):
    return x / 3, x.argmax(-1)
"""


def test_every_output_has_its_own_figures(measure: Measure) -> None:
    check = measure(RIGHT, TWICE, TWO)
    assert check.status == "passed", check.reason
    out, index = check.accuracies
    assert (out.output, index.output) == ("out", "index")
    assert (out.identical, index.identical) == (0, accuracy.DRAWS)
    assert max(index.head.maximum) == 0.0


@pytest.mark.parametrize(
    ("body", "named", "said"),
    [
        (TWO.replace("index.copy_(x.", "index.copy_(out."), ["out"], "None"),
        (CASE + 'def outputs(self, case, x):\n    return dict(i=Output(case.M, case.N, dtype="int64"))\n'
         "def call(self, ops, case, i, x):\n    ops.third(x, i)\n", [], "whole numbers differ"),
    ],
    ids=["beside another output", "alone"],
)  # fmt: skip
def test_an_index_that_differs_is_not_called_less_accurate(
    measure: Measure, body: str, named: list[str], said: str
) -> None:
    """It may name another of two equal elements, and its distance from the oracle's says nothing."""
    check = measure(RIGHT, "out.copy_(x / -3)", body)
    assert [one.output for one in check.accuracies] == named
    assert said in str(check.reason)


def test_a_process_that_speaks_of_something_else_is_not_believed() -> None:
    asked = accuracy.DrawnInputs(id="one", axes={}, distribution="normal", seeds=(1,))
    answers = [(), (output(side(), side()),), (output(side(), side(), case="two"),), (output(side(), side()),) * 2]
    measured = (accuracy.CaseMeasured(outputs=one) for one in answers)
    speaking: list[Any] = [SimpleNamespace(ask=lambda *_, one=one: one) for one in measured]
    said = [accuracy._measured(one, asked) for one in speaking]
    unexpected = "the process sent an unexpected message"
    assert [one.left_out for one in said] == [None, None, unexpected, unexpected]
    assert [one.last for one in said] == [False, False, True, True]


def test_a_part_is_enough_where_the_card_says_that_entries_are_independent(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(accuracy_worker.ELEMENTS, "cpu", 1000)
    check = measure(RIGHT, OTHER, CASE + "independent = dict(x=0, out=0)\n")
    assert [one.elements for one in check.accuracies] == [3 * 256] * 3
    assert all(max(one.base.maximum) < 0.501 for one in check.accuracies), "entries meet their own oracle"


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (RIGHT, "raise ValueError('no such shape')", "the head raised an error: no such shape"),
        ("raise ValueError('no such shape')", RIGHT, "the base raised an error: no such shape"),
        (RIGHT, "out.fill_(float('nan'))", "out has no element that is finite on both sides and in the oracle"),
    ],
    ids=["head", "base", "nan"],
)
def test_what_cannot_be_measured_says_why(measure: Measure, base: str, head: str, why: str) -> None:
    check = measure(base, head)
    assert (check.status, check.asked, check.run, check.accuracies) == ("skipped", 3, 0, ())
    assert check.reason == f"3 of 3 left out, such as m16_n256_fp16: {why}"


def test_elements_that_are_not_finite_are_counted_and_left_out_of_both(measure: Measure) -> None:
    check = measure(RIGHT, RIGHT + "; out[0, :2] = float('inf')")
    for one in check.accuracies:
        assert (one.elements, one.not_finite, one.identical) == (4094, 2 * accuracy.DRAWS, 0)
        assert one.head == one.base


def test_what_a_side_does_to_its_inputs_reaches_neither_the_other_nor_the_oracle(measure: Measure) -> None:
    check = measure(RIGHT + "; x.zero_()", RIGHT)
    assert [one.identical for one in check.accuracies] == [accuracy.DRAWS] * 3
    assert all(one.base == one.head for one in check.accuracies), "the same bits"
    assert all(max(one.base.maximum) < 0.501 for one in check.accuracies)


def test_fewer_draws_are_better_than_none_and_without_time_a_case_is_left_out(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(accuracy_worker.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(accuracy, "BUDGET_S", 18.0)
    check = measure(RIGHT, OTHER)
    assert [4 <= one.base.draws < accuracy.DRAWS for one in check.accuracies] == [True, True]
    assert check.reason.startswith(
        "1 of 3 left out, such as m16_n256_fp16, large inputs: the time for it ran out after "
    )


def test_one_library_and_a_head_alone_have_nothing_to_compare() -> None:
    one = Library(Path("one"), Manifest.model_construct(sha256="1", key="1"), cached=True)
    chosen = [ChosenCase(faulty.card(), faulty.card().target)]
    for sides in (Sides(one, one), Sides(None, one)):
        assert accuracy.comparable([Compared(faulty.card(), sides, None)], chosen) == ()


def test_libraries_that_cannot_share_a_process_are_not_compared(measure: Measure) -> None:
    check = measure(RIGHT, OTHER, namespaces=("same", "same"))
    assert check.status == "skipped"
    assert check.reason.startswith("base and head cannot be loaded into one process: both register")


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_crash_costs_only_the_cases_on_which_the_kernel_crashes(measure: Measure) -> None:
    dies = "import os; os.abort() if x.dtype == torch.float16 and float(x.max()) > 100 else out.copy_(x / 3)"
    check = measure(RIGHT, dies)
    assert (check.status, check.asked, check.run) == ("passed", 3, 2)
    assert check.reason.startswith("1 of 3 left out, such as m16_n256_fp16, large inputs: the process was killed by ")


@pytest.mark.slow
def test_attention_that_is_less_accurate_in_each_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "DRAWS", 2)
    file = tmp_path / "cards" / "attention.py"
    file.parent.mkdir()
    text = faulty.CARD.read_text(encoding="utf-8").replace("cpu_cases = [", 'cpu_cases = [case(512, 1, 4, "bf16"), ')
    file.write_text(text, encoding="utf-8")
    card = registered.facts(file)
    base = faulty.build(tmp_path / "base", "accuracy_base", "rounds_once")
    for fault, figure in (("truncates", "outward"), ("rounds_twice", "mean"), ("biased", "bias")):
        head = faulty.build(tmp_path / fault, f"accuracy_{fault}", fault)
        found = by_name(measured(card, Sides(base, head), "bf16"))["s512_b1_h4_d64_bf16", "normal"]
        before, after = getattr(found.base, figure), getattr(found.head, figure)
        assert min(map(abs, after)) > 1.3 * max(map(abs, before))
