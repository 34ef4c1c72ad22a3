"""What the verifier plans, compares and keeps to itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import BaseModel

from kernelgate.bench import record
from kernelgate.bench.build.library import Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.timing import arena, paired, pool, process, references, verifier
from kernelgate.bench.timing.arena import Arena, SharingError
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.protocol import (
    CaseChecked,
    CasePrepared,
    CheckCalls,
    Checked,
    CloseCase,
    PlanCalls,
    Planned,
    PrepareCase,
    Redraw,
)
from kernelgate.bench.timing.references import CallError, ComparedCall
from kernelgate.bench.timing.verifier import Verifier
from tests import registered
from tests.bench.in_process import ThreadWorker
from tests.bench.machine import CPU
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, ROWS, SUM, VerifiedCase, nothing

IN_PLACE = ROWS.replace("out=0", "") + "in_place = ['x']\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools of few windows, as of large inputs; and a machine on which nothing takes time."""
    monkeypatch.setattr(pool, "CHEAP_BYTES", 1 << 14)
    monkeypatch.setitem(verifier.LEAST_US, "cpu", 1e12)


@pytest.fixture(params=[ROWS, SUM, IN_PLACE], ids=["windows", "sets", "in place"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VerifiedCase]:
    with verified.opened(verified.write(tmp_path, request.param), AXES, cache_bytes=0) as made:
        yield made


def content(case: VerifiedCase, window: int, slot: int) -> bytes:
    given = case.given(window, slot)
    return b"".join(bytes(given[name].numpy()) for name in ("x", "y"))


# ----------------------------------------------------------------------------------------------------------------------
# Planning
# ----------------------------------------------------------------------------------------------------------------------


def test_no_two_calls_read_the_same_inputs(case: VerifiedCase) -> None:
    """Neither in one batch nor in several, whatever their size."""
    seen: set[bytes] = set()
    made = 0
    for count in (1, 3, 7, 20, 1, 20, 20, 13, 20, 20):
        count = min(count, case.pool.shape.windows)
        planned = case.plan(count)
        seen |= {content(case, window, slot) for window, slot in zip(planned.windows, planned.slots, strict=True)}
        made += count
        case.check(("head",) * count)
    assert made > 3 * case.pool.shape.windows, "the pool was exhausted several times"
    assert len(seen) == made
    assert case.verifier.close().calls["head"].repeated == 0


def test_a_batch_has_no_more_calls_than_there_are_windows(tmp_path: Path) -> None:
    """So that entries need not change places while a batch is planned. Of whole sets, calls read some again."""
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        assert case.prepared.slots == case.pool.shape.windows
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        assert case.prepared.slots > case.pool.shape.windows


def test_calls_that_read_inputs_again_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whole sets, where drawing others would take too long."""
    monkeypatch.setitem(verifier.LEAST_US, "cpu", 0.0)
    monkeypatch.setattr(verifier, "BUDGET", 0.0)
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        sets = case.pool.shape.windows
        seen: set[bytes] = set()
        for count in (sets - 1, 5, 2 * sets, 1):
            planned = case.plan(count)
            seen |= {content(case, *call) for call in zip(planned.windows, planned.slots, strict=True)}
            case.check(("base",) + ("head",) * (count - 1))
        made = sets - 1 + 5 + 2 * sets + 1
        assert len(seen) <= sets
        checked = case.verifier.close()
        repeated = sum(one.repeated or 0 for one in checked.calls.values())
        assert repeated == made - (sets - 1), "also where a set that was left over comes later"
        (note,) = checked.notes
        assert note.code == "fewer_inputs"
        share = 100 * repeated / made
        assert note.text.startswith(f"{share:.2g}% of the calls read inputs that an earlier call of the process had")


def test_more_calls_than_sets_in_one_batch_are_counted(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        sets = case.pool.shape.windows
        for _ in range(2):
            assert sorted(case.plan(3 * sets).windows) == sorted(list(range(sets)) * 3)
            case.check(("head",) * 3 * sets)
        assert case.verifier.close().calls["head"].repeated == 2 * 2 * sets


def test_another_process_may_read_what_one_has_read(case: VerifiedCase) -> None:
    """They are as new to it."""
    count = case.pool.shape.windows
    before = {content(case, *call) for call in pairs(case.plan(count))}
    case.check(("base",) * count)
    assert {content(case, *call) for call in pairs(case.plan(count, again=True))} == before
    case.check(("head",) * count)
    assert {side: one.repeated for side, one in case.verifier.close().calls.items()} == {"base": 0, "head": 0}


def pairs(planned: Planned) -> list[tuple[int, int]]:
    return list(zip(planned.windows, planned.slots, strict=True))


def test_each_call_of_a_batch_has_an_output_of_its_own(case: VerifiedCase) -> None:
    planned = case.plan(case.pool.shape.windows)
    assert len(set(planned.slots)) == len(planned.slots)
    assert {slot % case.prepared.slots for slot in planned.slots} == set(planned.slots)


# ----------------------------------------------------------------------------------------------------------------------
# Comparing
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slots whose outputs are compared, in the order in which calls were made."""
    found: list[int] = []
    compare_calls = references.compare_calls

    def spy(pool: Any, references: Any, outputs: Any, calls: list[ComparedCall]) -> list[CallError]:
        found.extend(call.slot for call in calls)
        return compare_calls(pool, references, outputs, calls)

    monkeypatch.setattr(references, "compare_calls", spy)
    return found


def test_a_quarter_of_the_calls_is_compared(case: VerifiedCase, looked_at: list[int]) -> None:
    for _ in range(6):
        case.turn(case.work, 20)
    assert len(looked_at) == 6 * 5
    checked = case.verifier.close()
    assert checked.calls == {"head": record.Calls(made=120, compared=30, failed=0, repeated=0)}
    assert checked.errors["head"].maximum is not None
    assert checked.errors["head"].maximum < 1e-5


def test_which_calls_are_compared_depends_on_the_seed(tmp_path: Path, looked_at: list[int]) -> None:
    chosen = []
    for seed in ("a", "a", "b"):
        with verified.opened(verified.write(tmp_path, ROWS), AXES, seed=seed) as case:
            looked_at.clear()
            for _ in range(4):
                case.turn(case.work, 20)
            chosen.append(tuple(looked_at))
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_one_call_alone_is_compared(case: VerifiedCase) -> None:
    case.turn(case.work, 1)
    assert case.verifier.close().calls["head"].compared == 1


def test_what_the_reference_gave_is_not_compared(case: VerifiedCase) -> None:
    planned = case.plan(9)
    for window, slot in list(pairs(planned))[1:]:
        case.work(case.given(window, slot), case.outs(slot), 0)
    assert case.check(("reference",) + ("head",) * 8).failed == 0
    assert set(case.verifier.close().calls) == {"head"}


def test_of_calls_that_return_tensors_those_are_compared_that_were_copied(tmp_path: Path, looked_at: list[int]) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        planned = case.plan(20)
        for number in (3, 17):
            case.work(case.given(planned.windows[number]), case.outs(planned.slots[number]), 0)
        assert case.check(("head",) * 20, copied=(3, 17)).failed == 0
        assert looked_at == [planned.slots[3], planned.slots[17]]


def test_where_comparing_takes_long_fewer_calls_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        case.turn(case.work, 32)
        monkeypatch.setitem(verifier.LEAST_US, "cpu", 0.0)
        monkeypatch.setattr(verifier, "BUDGET", 0.0)
        for _ in range(10):
            case.turn(case.work, 32)
        assert case.verifier.close().calls["head"].compared == 8 + 10 * 32 // 4 // verifier.FEWER


@pytest.mark.parametrize("body", [ROWS, SUM, ROWS.replace("independent", "nothing = 1\nindependent")])
def test_an_output_that_is_never_written_is_found_at_once(tmp_path: Path, body: str) -> None:
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        assert case.turn(nothing, 4).failed == 1
        checked = case.verifier.close()
        assert checked.calls["head"].failed == checked.calls["head"].compared == 1
        assert checked.errors["head"].maximum is None, "it holds no number"


def test_what_the_call_before_has_written_is_no_result(case: VerifiedCase) -> None:
    """Neither whole, nor where poison has not come."""
    for _ in range(3):
        assert case.turn(case.work, 20).failed == 0
    assert case.turn(nothing, 20).failed == 5


def test_poison_comes_to_each_byte_in_the_end(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), {**AXES, "N": 200}) as case:
        reached = torch.zeros(6 * 200 * 4, dtype=torch.bool)
        for _ in range(60):
            case.plan(1)
            case.verifier.arena.rows(case.verifier.outputs["out"]).zero_()
            case.check(("reference",))
            now = case.verifier.arena.rows(case.verifier.outputs["out"])[0, : len(reached)] == 0xFF
            assert 0 < int(now.sum()) < len(reached) / 2, "a part each time"
            reached |= now
        assert bool(reached.all())


def test_numbers_that_were_drawn_anew_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MANY", 20)
    body = """
cases = [dict(M=6, dtype="fp32")]
def inputs(self, case, draw):
    return dict(x=draw(case.M), factor=float(draw.uniform(1, 2, 1)[0]))
def outputs(self, case, x, factor):
    return Output(case.M)
def oracle(self, case, x, factor):
    return factor * x
"""
    with verified.opened(verified.write(tmp_path, body), {"M": 6, "dtype": "fp32"}) as case:
        sets = case.pool.shape.windows
        factors = {case.given(window)["factor"] for window in range(sets)}
        assert len(factors) == sets
        assert case.turn(case.work, sets).failed == 0
        assert not case.plan(0).inputs
        assert case.turn(case.work, sets).failed == 0
        assert not factors & {case.given(window)["factor"] for window in range(sets)}


# ----------------------------------------------------------------------------------------------------------------------
# As the leader meets it
# ----------------------------------------------------------------------------------------------------------------------


def test_a_verifier_answers_one_case_after_the_other(tmp_path: Path) -> None:
    asked = Verifier()
    card = verified.write(tmp_path, ROWS)
    fd = os.memfd_create("test", 0)
    try:
        with pytest.raises(KernelgateError, match="no case is prepared"):
            asked.answer(PlanCalls(count=1))
        for _ in range(2):
            step = PrepareCase(id="here", card_file=card, axes=AXES, device="cpu", cache_bytes=0, seed="s", fd=fd)
            assert isinstance(asked.answer(step), CasePrepared)
            assert isinstance(asked.answer(PlanCalls(count=2)), Planned)
            checked = asked.answer(CheckCalls(sides=("head", "head"), busy_us=1.0))
            assert isinstance(checked, Checked)
            assert checked.failed == 1
            assert asked.answer(Redraw()) == Checked(failed=0)
            closed = asked.answer(CloseCase())
            assert isinstance(closed, CaseChecked)
            assert closed.seconds > 0
            with pytest.raises(KernelgateError, match="no case is prepared"):
                asked.answer(CloseCase())
    finally:
        os.close(fd)


@dataclass
class Overheard:
    """The messages of a run, by the module of the process that they went to or came from."""

    sent: dict[str, list[str]] = field(default_factory=dict)
    answered: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture
def overheard(monkeypatch: pytest.MonkeyPatch, in_process: None) -> Overheard:  # noqa: ARG001 - a fixture
    heard = Overheard()
    send, receive = ThreadWorker.send, ThreadWorker.receive

    def sending(self: ThreadWorker, message: BaseModel) -> None:
        heard.sent.setdefault(self.function, []).append(message.model_dump_json())
        send(self, message)

    def receiving(self: ThreadWorker, *words: Any) -> Any:
        answer = receive(self, *words)
        heard.answered.setdefault(self.function, []).append(answer.model_dump_json())
        return answer

    monkeypatch.setattr(ThreadWorker, "send", sending)
    monkeypatch.setattr(ThreadWorker, "receive", receiving)
    return heard


@pytest.fixture
def plan(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PairedPlan:
    """A right base against a head that does nothing."""
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    body = f"{ROWS}cpu_cases = cases\ndef call(self, ops, case, out, x, y):\n    ops.add(x, y, out)\n"
    card = registered.facts(registered.write_card(tmp_path / "cards", "kind", body))
    code = '@operator("add(Tensor x, Tensor y, Tensor(a!) out) -> ()")\ndef add(x, y, out):\n    {}\n'
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    base, head = (
        registered.build(tmp_path / side, f"{name}_{side}", code.format(does), "kind")
        for side, does in (("base", "torch.add(x, y, out=out)"), ("head", "pass"))
    )
    part = CardPlan(card, Sides(base, head), card.suites["cpu"])
    return PairedPlan((part,), CPU, seed=712_391, processes=1, rounds=4, patience_s=60)


def numbers_in(message: object) -> Iterator[float]:
    if isinstance(message, dict | list):
        for one in message.values() if isinstance(message, dict) else message:
            yield from numbers_in(one)
    elif isinstance(message, int | float) and not isinstance(message, bool):
        yield message


def test_a_measured_process_is_told_neither_seeds_nor_what_is_right(
    plan: PairedPlan, overheard: Overheard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets: list[str] = []
    asked_case = process.asked_case

    def asking(setup: Any, *words: Any) -> PrepareCase:
        asked = asked_case(setup, *words)
        secrets.extend([setup.secret, asked.seed])
        return asked

    monkeypatch.setattr(process, "asked_case", asking)
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)  # the witness, too, is asked
    done = paired.run(plan, RunRecord(), tmp_path / "run.json")
    assert (done.processes[0].timings[0].calls["head"].failed or 0) > 0
    told, said = overheard.sent[process.WORKER], "".join(overheard.sent[process.VERIFIER])
    assert len(set(secrets)) > 2
    assert all(secret in said for secret in secrets), "the verifier is"
    assert not [secret for secret in secrets if secret in "".join(told)]
    assert str(plan.seed) not in "".join(told)
    kinds = {json.loads(line).get("ask", "request") for line in told}
    assert kinds == {"request", "open", "batch", "finish"}
    allowed = {"side", "windows", "slots"}
    for line in told:
        step = json.loads(line)
        if step.get("ask") == "batch":
            assert set(step) == {"ask", "what", "samples", "pause_us", "inputs", "graph", "blind"}
            assert all(set(sample) == allowed for sample in step["samples"])
            assert all(number == int(number) for number in numbers_in(step["samples"])), "no value of any tensor"
    assert secrets[0] not in (tmp_path / "run.json").read_text()


def test_what_was_compared_is_told_to_nobody_before_the_case_is_closed(
    plan: PairedPlan, overheard: Overheard, tmp_path: Path
) -> None:
    """Of a batch, only how many calls failed, and that to the leader alone."""
    paired.run(plan, RunRecord(), tmp_path / "run.json")
    answers = [json.loads(line) for line in overheard.answered[process.VERIFIER]]
    checked = [answer for answer in answers if "failed" in answer]
    assert checked
    assert all(set(answer) == {"failed", "probed"} for answer in checked)


def test_where_memory_cannot_be_shared_the_verifier_works_in_the_measured_process(
    plan: PairedPlan, overheard: Overheard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = arena.create

    def refusing(_: str, size: int, fd: int | None, shared: bool) -> Arena:
        if shared:
            raise SharingError("no peer may map it")
        return create(torch.device("cpu"), size, fd, shared)  # type: ignore[arg-type] # memory of this process

    monkeypatch.setattr(arena, "create", refusing)
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)
    done = paired.run(plan, RunRecord(), tmp_path / "run.json")
    calls = done.processes[0].timings[0].calls
    assert (calls["base"].failed, calls["head"].failed) == (0, calls["head"].compared)
    assert (calls["head"].compared or 0) > 0
    assert [one.role for one in done.processes] == ["paired", "witness", "witness", "witness"]
    witness = done.processes[1].timings[0]
    assert set(witness.samples_us) == set(witness.calls) == {"base", "head"}
    assert witness.calls["head"].failed == witness.calls["head"].compared
    (note,) = [note for note in done.notes if note.code == "verified_in_process"]
    assert "(no peer may map it)" in note.text
    asked = {json.loads(line)["ask"] for line in overheard.sent[process.WORKER] if "ask" in json.loads(line)}
    assert {"prepare", "plan", "check", "close"} <= asked
    assert not arena._LOCAL, "it is freed"


def test_a_card_whose_oracle_fails_is_one_sentence(plan: PairedPlan, tmp_path: Path, in_process: None) -> None:  # noqa: ARG001
    file = plan.parts[0].card.file
    file.write_text(file.read_text().replace("return x + y", "raise RuntimeError('no such operator')"))
    with pytest.raises(
        KernelgateError, match=r"^the verifier failed while drawing .* m6_n16_fp32 .*: RuntimeError: no such operator"
    ):
        paired.run(plan, RunRecord(), tmp_path / "run.json")
