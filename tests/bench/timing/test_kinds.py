"""Timing kernels of other kinds than attention: in place, new tensors, no reference, packages, two cards in one run.

Nothing here asserts how long anything takes.
"""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from kernelgate.bench import record
from kernelgate.bench.kernel.commit import CardPlan
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.timing import paired, pool, process, verifier
from kernelgate.bench.timing.protocol import BatchDone
from kernelgate.ci.judge import correctness
from tests import registered
from tests.bench.in_process import ThreadLeader
from tests.bench.timing.conftest import CASE, INTO, KERNEL, KindBench, calls, codes, looked_at, roles

pytestmark = pytest.mark.usefixtures("in_process")

IN_PLACE = f"{CASE}in_place = ['x']\ndef call(self, ops, case, x, y):\n    ops.add_(x, y)\n"
BESIDE = (
    IN_PLACE.replace("return x + y\n", "return dict(x=x + y, out=x + y)\n")
    .replace("ops.add_(x, y)", "ops.add(x, y, out)\n    ops.add_(x, y)")
    .replace("call(self, ops, case, ", "call(self, ops, case, out, ")
)
BESIDE += "def outputs(self, case, x, y):\n    return dict(out=Output(case.M, case.N))\n"
RETURNS = f"{CASE}def call(self, ops, case, x, y):\n    return ops.plus(x, y)\n"


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where inputs are large, so that its parts are read again and again."""
    monkeypatch.setattr(process, "MAX_CPU_CACHE", 0)
    monkeypatch.setattr(pool, "CHEAP_BYTES", 0)
    monkeypatch.setitem(verifier.LEAST_US, "cpu", 1e9)


@pytest.mark.slow
@pytest.mark.parametrize("body", [INTO, IN_PLACE, BESIDE, RETURNS], ids=["out", "in place", "both", "new tensors"])
def test_a_right_kernel_of_each_kind_is_timed_and_checked(bench: KindBench, body: str) -> None:
    done = bench.time(body)
    (timing,) = done.processes[0].timings
    assert set(timing.samples_us) == {"base", "head", "reference"}
    assert [len(timing.samples_us[side]) for side in ("base", "head")] == [30, 30]
    assert set(calls(done)) == {"base", "head"}
    assert all(map(looked_at, calls(done).values()))
    assert ("calls return new tensors" in codes(done).get("returns_new_tensors", "")) == (body == RETURNS)
    witness = bench.run(bench.part(bench.card(body), bench.library(), bench.library()), rounds=10, witness=True)
    assert roles(witness)[-1] == "witness"
    assert all(side.compared and not side.failed for side in calls(witness, -1).values())


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        (IN_PLACE, "    x.add_(y)", "    x.copy_(known.setdefault(x.data_ptr(), x + y))"),
        (BESIDE, "    x.add_(y)", "    x.copy_(known.setdefault(x.data_ptr(), x + y))"),
        (BESIDE, "out.copy_(x + y)", "out.copy_(known.setdefault(out.data_ptr(), x + y))"),
    ],
    ids=["alone", "beside an output", "only the output"],
)
def test_a_kernel_that_skips_work_in_place_when_it_is_timed_is_caught(
    bench: KindBench, body: str, old: str, new: str
) -> None:
    lazy = KERNEL.replace(old, new)
    done = bench.time(body, lazy)
    assert looked_at(calls(done)["base"])
    assert calls(done)["head"].failed > 0


@pytest.mark.parametrize("alone", [False, True], ids=["compared", "witness"])
def test_nothing_that_a_measured_process_says_keeps_a_call_from_being_compared(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """Here half of the calls do nothing, and its answers say that the others are all that there is to look at."""
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)  # the witness, too, is asked
    send = ThreadLeader.send

    def narrowing(self: ThreadLeader, message: BaseModel) -> None:
        names = {"copied": ()} if isinstance(message, BatchDone) and "copied" in BatchDone.model_fields else {}
        send(self, message.model_copy(update=names))

    lazy = KERNEL.replace("return x + y", "return x + y if calls[0] % 2 else torch.zeros_like(x)")
    monkeypatch.setattr(ThreadLeader, "send", narrowing)
    done = bench.run(bench.part(bench.card(RETURNS), bench.library(), bench.library(lazy)), rounds=20, witness=True)
    assert calls(done, alone)["base"].failed == 0
    assert 0 < calls(done, alone)["head"].failed < (calls(done, alone)["head"].compared or 0)


@pytest.mark.parametrize("value", ["1e30", "-3e38", "float('inf')"])
def test_an_error_beyond_all_numbers_is_a_wrong_output_of_the_head_like_any_other(bench: KindBench, value: str) -> None:
    part = bench.against(f"out.copy_(x + y); out[0, 0] = {value}")
    done = bench.run(part, rounds=10)
    assert record.read(bench.path) == done
    assert (calls(done)["base"].failed, calls(done)["head"].failed) == (0, calls(done)["head"].compared)
    assert done.processes[0].timings[0].errors["head"].maximum == (None if "inf" in value else record.LARGEST)
    said = correctness.wrong_outputs(done)[CaseKey("kind", "m8_n16_fp32")].message
    assert said.startswith("the head's timed output is wrong in ")
    assert ("largest error over 1e+21" in said) == ("inf" not in value)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("raise NotImplementedError('no such operator\\nhere')", "no such operator"),
        ("return x.mul_(2)", "it changes its input x, which the kernels read, too"),
    ],
)
def test_a_reference_that_cannot_be_timed_leaves_the_others(bench: KindBench, reference: str, why: str) -> None:
    done = bench.time(f"{INTO}def reference(self, case, x, y):\n    {reference}\n")
    assert set(done.processes[0].timings[0].samples_us) == {"base", "head"}
    assert codes(done)["reference_fails"] == f"m8_n16_fp32: the reference is not timed: {why}"
    assert "no_reference" not in codes(done), "base and head had no part in it"
    assert calls(done)["head"].failed == 0


def test_inputs_that_are_lists_numbers_or_expanded_are_filled_anew(bench: KindBench) -> None:
    """The numbers of a set are drawn together with its tensors."""
    body = """
cases = [dict(M=8, N=16, dtype="fp32")]
cpu_cases = cases
def inputs(self, case, draw):
    parts = [draw(case.M), draw(1).expand(case.M)]
    return dict(parts=parts, counts=[int(draw.integers(0, 9, 1)[0])], factor=float(draw.uniform(1, 2, 1)[0]))
def outputs(self, case, parts, counts, factor):
    return Output(case.M)
def call(self, ops, case, out, parts, counts, factor):
    ops.total(parts, counts, factor, out)
def oracle(self, case, parts, counts, factor):
    return factor * sum(parts) + counts[0]
"""
    code = f"""
seen = set()
@operator("total(Tensor[] parts, int[] counts, float factor, Tensor(a!) out) -> ()")
def total(parts, counts, factor, out):
    out.copy_(factor * sum(parts) + counts[0])
    seen.add((factor, counts[0]))
    with open({str(bench.folder / "told")!r}, 'w') as file:
        file.write(str(len(seen)))
"""
    done = bench.run(bench.part(bench.card(body), None, bench.library(code)), rounds=50)
    assert looked_at(calls(done)["head"])
    assert int((bench.folder / "told").read_text()) > 4, "few sets, drawn anew again and again"


def test_each_side_is_called_as_its_own_commit_calls_it(bench: KindBench) -> None:
    judge = bench.card(INTO)
    own = INTO.replace("ops.add(x, y, out)", "ops.add_scaled(out, x, y, 1.0)").replace("return x + y", "return x - y")
    theirs = registered.write_card(bench.folder / "own", "kind", own)
    code = """
@operator("add_scaled(Tensor(a!) out, Tensor x, Tensor y, float factor) -> ()")
def add_scaled(out, x, y, factor):
    out.copy_(x + factor * y)
"""
    done = bench.run(bench.part(judge, bench.library(own=judge.file), bench.library(code, own=theirs)))
    assert all(map(looked_at, calls(done).values())), "the judge's oracle"


PACKAGE = "import sys\ndef add(x, y, out):\n    out.copy_(x + FACTOR * y)\n"
CALLS_PACKAGE = (
    f"build = Package('NAME')\n{CASE}def call(self, package, case, out, x, y):\n    package.add(x, y, out)\n"
)


def sides_of_packages(bench: KindBench, name: str, *operators: tuple[str, ...]) -> CardPlan:
    """A right base, and a head that is wrong. A process has one package of a name and side."""
    both = [
        registered.package(bench.folder / side, name, PACKAGE.replace("FACTOR", factor), "kind", registers)
        for side, factor, registers in zip(("base", "head"), ("1", "2"), operators, strict=True)
    ]
    return bench.part(bench.card(CALLS_PACKAGE.replace("NAME", name)), both[0], both[1])


def test_packages_of_one_name_share_a_process_and_each_runs_its_own_code(bench: KindBench) -> None:
    done = bench.run(sides_of_packages(bench, "mine", (), ("mine::other",)))
    assert roles(done) == ["paired"]
    assert (calls(done)["base"].failed, calls(done)["head"].failed > 0) == (0, True)


def test_packages_that_register_the_same_operator_take_turns(bench: KindBench) -> None:
    """Torch would answer both with one side's operator, without a word."""
    both = tuple(f"ours::{name}" for name in "bcdef")
    done = bench.run(sides_of_packages(bench, "ours", ("ours::a", *both), (*both, "ours::g")))
    assert roles(done) == ["alternating"]
    assert "both register the operator ours::b, ours::c, ours::d and 2 more)" in codes(done)["alternating"]
    assert "precision is lower" in codes(done)["alternating"]
    samples = done.processes[0].timings[0].samples_us
    assert {side: len(times) for side, times in samples.items()} == {"base": 30, "head": 30, "reference": 8}
    assert (calls(done)["base"].failed, calls(done)["head"].failed > 0) == (0, True)


TUNED = """
from triton.runtime.autotuner import Autotuner
class Database:
    def __getitem__(self, key):
        raise KeyError(key)
class Tuner(Autotuner):
    def __init__(self):
        self.configs, self.cache, self.base_fn, self.best_config = [1, 2], Database(), add, "of its own"
""" + PACKAGE.replace("FACTOR", "1")


def test_a_tuner_that_does_not_answer_as_tritons_is_no_crash_of_the_kernel(bench: KindBench) -> None:
    """FlagGems keeps configurations in a database, and its kernels were said to crash while they are timed."""
    head = registered.package(bench.folder / "head", "tuned", TUNED + "tuner = Tuner()\n", "kind")
    done = bench.run(bench.part(bench.card(CALLS_PACKAGE.replace("NAME", "tuned")), None, head))
    assert looked_at(calls(done)["head"])
    assert "what the autotuner chose cannot be read: AttributeError" in codes(done)["note"]


# Two cards in one run


def test_two_cards_take_turns_and_are_resumed_where_they_were_cut_short(bench: KindBench) -> None:
    """Their cases have one id; of the second there is a head alone, of which no judge says that it is undecided."""
    one = bench.part(bench.card(INTO, "one"), bench.library(card="one"), bench.library(card="one"))
    two = one, bench.part(bench.card(RETURNS, "two"), None, bench.library(card="two"))
    asked: list[int] = []

    def undecided(so_far: RunRecord) -> frozenset[CaseKey]:
        asked.append(len(so_far.processes))
        return frozenset() if len(so_far.processes) in (1, 4) else paired.all_cases(so_far)

    done = bench.run(*two, processes=5, undecided=undecided)
    assert asked == [1, 2, 3, 4]
    made = [("one-1", "paired"), ("two-1", "block"), ("one-2", "paired"), ("two-2", "block")]
    assert [(process.id, process.role) for process in done.processes] == made
    assert [{timing.card for timing in process.timings} for process in done.processes] == [{"one"}, {"two"}] * 2
    assert [(build.card, build.side) for build in done.builds] == [("one", "base"), ("one", "head"), ("two", "head")]
    assert record.read(bench.path) == done
    assert done.run.ended == "complete"
    cut = done.model_copy(update={"processes": done.processes[:3]})
    record.write(cut, bench.path)
    resumed = bench.run(*two, processes=2, resume=True)
    assert [(process.id, process.role) for process in resumed.processes] == made
    assert resumed.processes[:3] == cut.processes
    assert resumed.processes[3] != done.processes[3], "it was timed again"
