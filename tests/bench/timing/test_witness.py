"""Base and head, each alone in a process, timed by the clock of the leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pydantic import BaseModel

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.timing import arena, paired, witness
from kernelgate.bench.timing.arena import Arena, SharingError
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.protocol import TimingRequest
from tests import registered
from tests.bench.in_process import ThreadWorker
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")

CARD = """
cases = [dict(M=6, N=16, dtype="fp32"), dict(M=4, N=8, dtype="fp32")]
cpu_cases = cases
independent = dict(x=0, y=0, out=0)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), y=draw(case.M, case.N))
def oracle(self, case, x, y):
    return x + y
def call(self, ops, case, out, x, y):
    ops.add(x, y, out)
"""
CODE = """
@operator("add(Tensor x, Tensor y, Tensor(a!) out) -> ()")
def add(x, y, out):
    {}
"""
RIGHT = "torch.add(x, y, out=out)"

Plan = Callable[..., PairedPlan]
WITNESSES = ["witness"] * witness.TURNS["cpu"]


@pytest.fixture
def plan(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Of a right base, or of none, against a head that does this."""
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)

    def library(side: str, does: str, card: str) -> Library:
        space = f"{name}_{card}_{side}"
        return registered.build(tmp_path / space, space, CODE.format(does), card)

    def make(does: str = RIGHT, alone: bool = False, card: str = "kind") -> PairedPlan:
        facts = registered.facts(registered.write_card(tmp_path / f"cards {card}", card, CARD))
        sides = Sides(None if alone else library("base", RIGHT, card), library("head", does, card))
        part = CardPlan(facts, sides, facts.suites["cpu"])
        return PairedPlan((part,), CPU, seed=3, processes=1, rounds=2, patience_s=60)

    return make


def run(planned: PairedPlan, path: Path, resume: bool = False) -> RunRecord:
    return paired.run(planned, RunRecord(), path, resume=resume)


def roles(done: RunRecord) -> list[str]:
    return [one.role for one in done.processes]


def test_each_case_of_the_witness_has_both_sides(plan: Plan, tmp_path: Path) -> None:
    done = run(plan(), tmp_path / "run.json")
    assert record.read(tmp_path / "run.json") == done
    assert roles(done) == ["paired", *WITNESSES]
    assert [one.id for one in done.processes[1:]] == ["witness", "witness-2", "witness-3"]
    assert all(sorted(one.loaded) == ["base", "head"] for one in done.processes[1:])
    taken = done.processes[1]
    assert [timing.key for timing in taken.timings] == [case.key for case in done.cases]
    for timing in taken.timings:
        assert {side: len(samples) for side, samples in timing.samples_us.items()} == {
            "base": witness.BATCHES["cpu"],
            "head": witness.BATCHES["cpu"],
        }
        assert timing.inner_repeats is not None
        for calls in timing.calls.values():
            assert calls.made is not None
            assert calls.made > witness.BATCHES["cpu"] * timing.inner_repeats
            assert (calls.failed, calls.repeated) == (0, 0)
            assert calls.compared
        assert all(errors.maximum is not None for errors in timing.errors.values())
    assert paired.process_count(done) == 1, "it is not compared"
    assert {cost.phase for cost in done.costs} == {"calls", "verifying", "witness"}


def test_each_process_of_the_witness_holds_one_side(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[list[str]] = []
    send = ThreadWorker.send

    def sending(self: ThreadWorker, message: BaseModel) -> None:
        if isinstance(message, TimingRequest):
            held.append(sorted(side for side, _ in message.libraries))
        send(self, message)

    monkeypatch.setattr(ThreadWorker, "send", sending)
    run(plan(), tmp_path / "run.json")
    assert held[0] == ["base", "head"], "the paired comparison"
    assert sorted(held[1:]) == [["base"], ["base"], ["base"], ["head"], ["head"], ["head"]]


def test_wrong_outputs_need_no_witness(plan: Plan, tmp_path: Path) -> None:
    done = run(plan("torch.add(x, y, out=out).mul_(1.5)"), tmp_path / "run.json")
    assert roles(done) == ["paired"]
    (note,) = [note for note in done.notes if note.code == "no_witness"]
    assert (note.card, note.text) == ("kind", "outputs of kind were wrong: no need of a witness")


def test_what_the_witness_sees_is_compared(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a head that is wrong everywhere stands for one that is wrong when it is alone."""
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)
    done = run(plan("torch.add(x, y, out=out).mul_(1.5)"), tmp_path / "run.json")
    for timing in done.processes[1].timings:
        assert timing.calls["base"].failed == 0
        assert timing.calls["head"].failed == timing.calls["head"].compared


def test_a_kernel_that_remembers_finds_nothing_to_remember(plan: Plan, tmp_path: Path) -> None:
    """Each call reads what its process has never seen."""
    does = """key = bytes(x.numpy()) + bytes(y.numpy())
    hits.append(key in known)
    known.add(key)
    torch.add(x, y, out=out).add_(any(hits))"""
    done = run(plan(f"{does}\nknown, hits = set(), []"), tmp_path / "run.json")
    for timing in done.processes[1].timings:
        assert timing.calls["head"].failed == 0, "a result that is remembered would be wrong"


def test_a_library_against_itself_has_nothing_to_hide(plan: Plan, tmp_path: Path) -> None:
    planned = plan()
    head = planned.parts[0].sides.head
    part = replace(planned.parts[0], sides=Sides(head, head))
    assert roles(run(replace(planned, parts=(part,)), tmp_path / "run.json")) == ["paired"]


def test_a_head_alone_has_nobody_beside_it(plan: Plan, tmp_path: Path) -> None:
    assert roles(run(plan(alone=True), tmp_path / "run.json")) == ["block"]


def test_who_wants_no_witness_gets_none(plan: Plan, tmp_path: Path) -> None:
    assert roles(run(replace(plan(), witness=False), tmp_path / "run.json")) == ["paired"]


@pytest.mark.slow
def test_two_cards_have_a_witness_each(plan: Plan, tmp_path: Path) -> None:
    both = plan(card="one"), plan(card="two")
    done = run(replace(both[0], parts=(*both[0].parts, *both[1].parts)), tmp_path / "run.json")
    assert roles(done) == ["paired", "paired", *WITNESSES, *WITNESSES]
    assert [one.id for one in done.processes[2::3]] == ["witness-one", "witness-two"]
    assert [{timing.card for timing in one.timings} for one in done.processes[2::3]] == [{"one"}, {"two"}]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_a_resumed_record_that_lacks_it_gets_it_alone(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    planned, path = plan(), tmp_path / "run.json"
    before = run(replace(planned, witness=False), path)
    create = arena.create

    def refusing(_: str, size: int, fd: int | None, shared: bool) -> Arena:
        if shared:
            raise SharingError("no peer may map it")
        return create(torch.device("cpu"), size, fd, shared)  # type: ignore[arg-type] # memory of this process

    if not shared:
        monkeypatch.setattr(arena, "create", refusing)
    done = run(planned, path, resume=True)
    assert done.processes[:1] == before.processes
    assert roles(done) == ["paired", *WITNESSES]
    assert set(done.processes[1].timings[0].calls) == {"base", "head"}
    assert [note.code for note in done.notes].count("verified_in_process") == (not shared)
    assert run(planned, path, resume=True).processes == done.processes, "and once alone"


@pytest.mark.slow
def test_a_resumed_witness_goes_on_where_it_stopped(plan: Plan, tmp_path: Path) -> None:
    planned, path = plan(), tmp_path / "run.json"
    whole = run(planned, path)
    record.write(whole.model_copy(update={"processes": whole.processes[:2]}), path)
    done = run(planned, path, resume=True)
    assert done.processes[:2] == whole.processes[:2]
    assert [one.id for one in done.processes] == [one.id for one in whole.processes]
