"""What all processes of a run share, what each is told, what one leaves behind; and the witness: each side alone."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from kernelgate.bench import record
from kernelgate.bench.build.library import Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.worker import Ready, WorkerProcess
from kernelgate.bench.timing import case_timing, paired, pool, process, protocol, verifier, worker
from kernelgate.bench.timing.case_timing import CaseResult, ProcessError, Runner, Team
from kernelgate.bench.timing.hold import IN_A_ROW
from kernelgate.bench.timing.pool import Arena, SharingError
from kernelgate.bench.timing.process import Turn
from tests import registered
from tests.bench.in_process import ThreadWorker
from tests.bench.machine import CPU
from tests.bench.timing.conftest import INTO, KERNEL, KindBench, calls, codes, roles
from tests.bench.timing.simulated import CASE, SimulatedProcess
from tests.processes import alive

ROWS = f"{INTO}independent = dict(x=0, y=0, out=0)\n"
TWO = ROWS.replace("cases = [dict(", "cases = [dict(M=4, N=8, dtype='fp32'), dict(", 1)
WRONG = "out.copy_(x + y).mul_(1.5)"


@pytest.mark.slow
def test_a_process_that_a_library_leaves_behind_is_ended_and_named(bench: KindBench) -> None:
    """It could rewrite the record, or disturb what is measured later."""
    program, pid = bench.folder / "lingers", bench.folder / "pid"
    shutil.copy(shutil.which("sleep") or "", program)
    code = f"""
import subprocess
@operator("add(Tensor x, Tensor y, Tensor(a!) out) -> ()")
def add(x, y, out):
    torch.add(x, y, out=out)
daemon = subprocess.Popen([{str(program)!r}, "600"], start_new_session=True)
with open({str(pid)!r}, "w") as file:
    file.write(str(daemon.pid))
"""
    done = bench.run(bench.part(bench.card(), None, bench.library(code)), rounds=2)
    assert codes(done)["left_processes"] == "process 1 of 1: it left lingers running, which was ended"
    assert not alive(int(pid.read_text()))
    assert roles(done) == ["block"]


def test_inputs_that_are_read_again_are_not_in_the_cache() -> None:
    assert [process.cache_bytes("cuda", known) for known in (50 << 20, None)] == [100 << 20, 2 * process.UNKNOWN_CACHE]
    assert [process.cache_bytes("cpu", known) for known in (4 << 20, 1 << 30)] == [4 << 20, process.MAX_CPU_CACHE]


def test_both_start_orders_occur() -> None:
    both: dict[record.Side, Any] = {"base": None, "head": None}

    def split(number: int, together: bool) -> list[list[record.Side]]:
        return Turn(Any, both, (), number, "paired", "1", "it", together).split(5)

    assert split(0, together=False) == [["base"], ["head"]]
    assert split(1, together=False) == [["head"], ["base"]]
    assert {tuple(split(number, together=True)[0]) for number in range(20)} == {("base", "head"), ("head", "base")}


# What each process is told


@dataclass
class Overheard:
    """The messages of a run, by the function of the process that they went to or came from."""

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


def numbers_in(message: object) -> Iterator[float]:
    if isinstance(message, dict | list):
        for one in message.values() if isinstance(message, dict) else message:
            yield from numbers_in(one)
    elif isinstance(message, int | float) and not isinstance(message, bool):
        yield message


def test_a_measured_process_is_told_neither_seeds_nor_what_is_right(
    bench: KindBench, overheard: Overheard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does anybody hear what was compared, and what came of it, before the case is closed."""
    secrets: list[str] = []
    asked_case = process.asked_case

    def asking(setup: Any, *words: Any) -> protocol.PrepareCase:
        asked = asked_case(setup, *words)
        secrets.extend([setup.secret, asked.seed])
        return asked

    monkeypatch.setattr(process, "asked_case", asking)
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)  # the witness, too, is asked
    done = bench.run(bench.against("pass", ROWS), rounds=4, witness=True)
    assert (calls(done)["head"].failed or 0) > 0
    told, said = overheard.sent[process.WORKER], "".join(overheard.sent[process.VERIFIER])
    assert len(set(secrets)) > 2
    assert all(secret in said for secret in secrets), "the verifier is"
    assert not [secret for secret in secrets if secret in "".join(told)]
    assert "712391" not in "".join(told), "the run's own seed"
    steps = [json.loads(line) for line in told]
    assert {step.get("ask", "request") for step in steps} == {"request", "open", "batch", "start", "finish"}
    for step in steps:
        if step.get("ask") == "batch":
            assert set(step) == {"ask", "what", "samples", "pause_us", "inputs", "moved", "graph"}
        samples = step.get("samples", [step["calls"]] if "calls" in step else [])
        assert all(set(sample) == {"side", "windows", "slots"} for sample in samples)
        assert all(number == int(number) for number in numbers_in(samples)), "no value of any tensor"
    assert secrets[0] not in bench.path.read_text()
    answers = [set(json.loads(line)) for line in overheard.answered[process.VERIFIER]]
    at_the_ends = [set(kind.model_fields) for kind in (protocol.CasePrepared, protocol.CaseChecked)]
    told = [names for names in answers if names not in at_the_ends]
    assert {frozenset(names) for names in told} == {frozenset({"probed"}), frozenset(protocol.Planned.model_fields)}


@pytest.mark.slow
def test_a_process_imports_ahead_what_its_own_sides_will_import_and_no_other_ones(
    bench: KindBench, overheard: Overheard
) -> None:
    """The next ones start while one is timed; the last witness has none after it."""
    base, head = (
        registered.build(bench.folder / name, f"{bench.name}_{name}", KERNEL, "kind", imports=(name, "colorsys"))
        for name in ("chunk", "sndhdr")
    )
    done = bench.run(bench.part(bench.card(), base, head), rounds=2, processes=2, witness=True)
    assert roles(done) == ["paired", "paired", "witness"]
    told = [json.loads(line)["ahead"] for line in overheard.sent[process.WORKER] if '"ahead"' in line]
    both = ["chunk", "colorsys", "sndhdr"]
    of_turns = [sorted(one) for one in told]
    assert of_turns[:4] == [both] * 4, "the first two, and two that wait for the witness"
    assert sorted(of_turns[4:]) == [["chunk", "colorsys"], ["colorsys", "sndhdr"]]
    assert not [one for one in told if one[-1] == "colorsys" and len(one) == 3], "in the order of the imports"


@pytest.mark.parametrize(("device", "cores", "paused"), [("cpu", 64, True), ("cuda", 2, True), ("cuda", 16, False)])
def test_what_starts_early_stands_still_while_it_would_disturb_a_batch(
    device: str, cores: int, paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    doing: list[str] = []

    @contextmanager
    def pausing() -> Iterator[None]:
        doing.append("paused")
        yield
        doing.append("on")

    monkeypatch.setattr(process.environment, "kind", lambda _: device)
    monkeypatch.setattr(process.os, "sched_getaffinity", lambda _: range(cores))
    setup = process.Setup(CPU, process.Measuring(1), SimpleNamespace(paused=pausing))  # type: ignore[arg-type]
    simulated = SimulatedProcess({"base": 10.0, "head": 10.0})
    answer = simulated._answer

    def heard(asked: Any) -> Any:
        doing.append(type(asked).__name__)
        return answer(asked)

    monkeypatch.setattr(simulated, "_answer", heard)
    setup.verifier = simulated
    (team,) = setup.teams((simulated,))
    case_timing.time_rounds(team, simulated.samples(), 1, lambda: None)
    assert doing == ["PlanCalls", *(["paused", "Batch", "on"] if paused else ["Batch"]), "CheckCalls"]


@pytest.fixture
def unshared(monkeypatch: pytest.MonkeyPatch) -> None:
    create = pool.create

    def refusing(_: str, size: int, fd: int | None, shared: bool, sealed: bool = False) -> Arena:
        if shared:
            raise SharingError("no peer may map it")
        return create("cpu", size, fd, shared, sealed)

    monkeypatch.setattr(pool, "create", refusing)
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)


@pytest.mark.usefixtures("unshared")
def test_where_memory_cannot_be_shared_the_verifier_works_in_the_measured_process(
    bench: KindBench, overheard: Overheard, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = bench.run(bench.against("pass", ROWS), rounds=4, witness=True)
    assert (calls(done)["base"].failed, calls(done)["head"].failed) == (0, calls(done)["head"].compared)
    assert (calls(done)["head"].compared or 0) > 0
    assert roles(done) == ["paired", "witness"]
    assert set(done.processes[1].timings[0].samples_us) == set(calls(done, 1)) == {"base", "head"}
    assert calls(done, 1)["head"].failed == calls(done, 1)["head"].compared
    assert "(no peer may map it)" in codes(done)["verified_in_process"]
    asked = {json.loads(line)["ask"] for line in overheard.sent[process.WORKER] if "ask" in json.loads(line)}
    assert {"prepare", "plan", "check", "close"} <= asked
    assert not pool._LOCAL, "it is freed"
    monkeypatch.setattr(Sides, "clash", "both register the same operator")
    with pytest.raises(ProcessError, match="cannot share a process, and CUDA shares no memory between two here"):
        bench.run(bench.against("pass", ROWS), rounds=4)


def cannot_map(shared: protocol.Memory) -> Ready:
    raise SharingError(f"no peer may map {shared.bytes} bytes")


@pytest.mark.usefixtures("in_process")
def test_a_measured_process_that_says_it_cannot_map_memory_is_not_believed(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have the verifier in its own process. A process that no kernel is in is asked; if it cannot either,
    that is so."""
    part, refusals = bench.against("pass", ROWS), iter(range(9))
    opens = worker.Worker._open

    def refuses(self: Any, asked: protocol.OpenCase) -> protocol.CaseOpened:
        if next(refusals) == 0:
            raise SharingError("no peer may map it")
        return opens(self, asked)

    monkeypatch.setattr(worker.Worker, "_open", refuses)
    said = "process 1 of 1 says that it cannot map memory, which a process without a kernel can: no peer may map it"
    with pytest.raises(ProcessError, match=said):
        bench.run(part, rounds=2)
    refusals = iter(range(9))
    monkeypatch.setattr(verifier, "map_memory", cannot_map)
    assert "verified_in_process" in codes(bench.run(part, rounds=2))


@pytest.mark.usefixtures("in_process")
def test_a_card_whose_oracle_fails_is_one_sentence(bench: KindBench) -> None:
    part = bench.against("pass")
    file = part.card.file
    file.write_text(file.read_text().replace("return x + y", "raise RuntimeError('no such operator')"))
    with pytest.raises(
        KernelgateError, match=r"^the verifier failed while drawing .* m8_n16_fp32 .*: RuntimeError: no such operator"
    ):
        bench.run(part)


@pytest.mark.slow
def test_each_case_of_the_witness_has_both_sides_each_in_a_process_of_its_own(
    bench: KindBench, overheard: Overheard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed record gets what it lacks of it, and nothing twice. A kernel that remembers inputs meets none again."""
    does = """key = bytes(x.numpy()) + bytes(y.numpy())
    hits.append(key in seen)
    seen.add(key)
    torch.add(x, y, out=out).add_(any(hits))"""
    monkeypatch.setitem(process.WITNESS_TURNS, "cpu", 2)
    part = bench.against(f"{does}\nseen, hits = set(), []", TWO)
    done = bench.run(part, rounds=2, witness=True)
    assert record.read(bench.path) == done
    assert roles(done) == ["paired", "witness", "witness"]
    assert [one.id for one in done.processes[1:]] == ["witness", "witness-2"]
    assert all(sorted(one.loaded) == ["base", "head"] for one in done.processes[1:])
    requests = [json.loads(line) for line in overheard.sent[process.WORKER] if '"libraries"' in line]
    held = [sorted(side for side, _ in protocol.TimingRequest.model_validate(one).libraries) for one in requests]
    assert held[0] == ["base", "head"], "the paired comparison"
    assert sorted(held[1:]) == [["base"]] * 2 + [["head"]] * 2
    taken = done.processes[1]
    assert [timing.key for timing in taken.timings] == [case.key for case in done.cases]
    for timing in taken.timings:
        assert {side: len(samples) for side, samples in timing.samples_us.items()} == {"base": 5, "head": 5}
        assert timing.inner_repeats is not None
        for made in timing.calls.values():
            assert made.made == 6 * timing.inner_repeats + 1
            assert (made.failed, made.repeated) == (0, 0), "a result that is remembered would be wrong"
            assert made.compared
        assert all(errors.maximum is not None for errors in timing.errors.values())
    assert paired.process_count(done) == 1, "it is not compared"
    assert {cost.phase for cost in done.costs} == {"calls", "verifying", "witness", "starting"}
    wall = sum(process.wall_seconds or 0.0 for process in done.processes)
    assert sum(cost.gpu_seconds for cost in done.costs) == pytest.approx(wall, abs=0.01), "all of it"
    record.write(done.model_copy(update={"processes": done.processes[:2]}), bench.path)
    resumed = bench.run(part, rounds=2, witness=True, resume=True)
    assert resumed.processes[:2] == done.processes[:2]
    assert [one.id for one in resumed.processes] == [one.id for one in done.processes]
    assert bench.run(part, rounds=2, witness=True, resume=True).processes == resumed.processes


@pytest.mark.usefixtures("in_process")
def test_wrong_outputs_need_no_witness_and_what_a_witness_sees_is_compared(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a head that is wrong everywhere stands for one that is wrong when it is alone."""
    part = bench.against(WRONG)
    done = bench.run(part, rounds=2, witness=True)
    assert roles(done) == ["paired"]
    (note,) = [note for note in done.notes if note.code == "no_witness"]
    assert (note.card, note.text) == ("kind", "outputs of kind were wrong: no need of a witness")
    mended = replace(part, sides=Sides(part.sides.head, part.sides.base))
    assert "witness" in roles(bench.run(mended, rounds=2, witness=True)), "only the head's decide all"
    monkeypatch.setattr(paired, "_wrong", lambda *_: False)
    done = bench.run(part, rounds=2, witness=True)
    assert calls(done, 1)["base"].failed == 0
    assert calls(done, 1)["head"].failed == calls(done, 1)["head"].compared


@pytest.mark.usefixtures("in_process")
def test_who_has_nothing_to_hide_gets_no_witness(bench: KindBench) -> None:
    part = bench.against("out.copy_(x + y)")
    head = part.sides.head
    for sides, witness, role in (
        (part.sides, False, "paired"),
        (Sides(head, head), True, "paired"),
        (Sides(None, head), True, "block"),
    ):
        assert roles(bench.run(replace(part, sides=sides), rounds=2, witness=witness)) == [role]


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_two_cards_have_a_witness_each(bench: KindBench) -> None:
    parts = [
        bench.part(bench.card(ROWS, name), bench.library(card=name), bench.library(card=name))
        for name in ("one", "two")
    ]
    done = bench.run(*parts, rounds=2, witness=True)
    assert roles(done) == ["paired", "paired", "witness", "witness"]
    assert [one.id for one in done.processes[2:]] == ["witness-one", "witness-two"]
    assert [{timing.card for timing in one.timings} for one in done.processes[2:]] == [{"one"}, {"two"}]


class Blind(Runner):
    """A verifier, or a measured process of one side, on a clock that it sets forward itself."""

    def __init__(
        self, heard: list[tuple[object, ...]], clock: SimpleNamespace, side: str = "", call_us: float = 0.0
    ) -> None:
        self.name, self.sides, self.worker = side, (side,), cast(WorkerProcess, SimpleNamespace(touched=False))
        self.heard, self.clock, self.call_us = heard, clock, call_us
        self.wrong_us = 0.0
        """What its clock hides of a batch."""
        self.returns, self.copying_us = False, 0.0
        self.slow_us = [600_000.0]
        """What the next batches take longer to queue: the first call compiles."""
        self.waits = False
        """Whether its calls wait for the device."""

    def queued_us(self, calls: int, hold_us: float = 0.0) -> float:
        waited = hold_us + self.call_us * (calls - 1) if self.waits and calls else 0.0
        return 10.0 * calls + waited + (self.slow_us.pop(0) if calls and self.slow_us else 0.0)

    def rest(self) -> None:
        self.heard.append((self.name, "rests"))

    def ask(self, asked: Any, kind: Any, calls_s: float | None = None) -> Any:  # noqa: ARG002
        clock = self.clock
        if isinstance(asked, protocol.PrepareCase):
            clock.fresh_calls = asked.fresh_calls
            return SimulatedProcess({}, slots=20).samples().prepared
        if isinstance(asked, protocol.PlanCalls):
            self.heard.append(("plan", asked.count, asked.inputs))
            return protocol.Planned(windows=tuple(range(asked.count)), slots=tuple(range(asked.count)))
        if isinstance(asked, protocol.Copy):
            clock.now += self.copying_us / 1e6
            return protocol.BatchDone(queued_us=self.queued_us(clock.calls))
        if isinstance(asked, protocol.Start):
            clock.calls = len(asked.calls.windows)
            self.heard.append((self.name, clock.calls, asked.pause_us))
            clock.probed_us = clock.calls * self.call_us
            clock.now += (110 + clock.probed_us + (self.wrong_us if clock.calls > 1 else 0)) / 1e6
            if self.returns and clock.calls:
                return Ready()
            return protocol.BatchDone(queued_us=self.queued_us(clock.calls, asked.pause_us))
        if isinstance(asked, protocol.CheckCalls):
            assert (len(asked.sides), asked.samples) == (clock.calls, 1)
            probe = protocol.ProbeReading(started_us=0.0, us=clock.probed_us, sm_mhz=None)
            return protocol.Checked(probed=(probe,) if clock.on_gpu else ())
        if isinstance(asked, protocol.OpenCase):
            return protocol.CaseOpened(clock_step_us=0.0, returns=self.returns)
        if isinstance(asked, protocol.Finish):
            self.heard.append((self.name, "finish"))
            return protocol.CaseDone(autotuned={})
        return protocol.CaseChecked(calls={"base": record.Calls(made=7)}, errors={}, seconds=0.25)


def rounded(result: CaseResult) -> dict[str, set[int]]:
    """The times of each side."""
    return {side: set(map(round, times)) for side, times in result.timing.samples_us.items()}


@pytest.mark.parametrize("on_gpu", [True, False], ids=["GPU", "CPU"])
def test_a_witness_times_each_side_between_clocks_that_agree(on_gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(process.BATCH_US, "cpu", 20_000.0)
    heard: list[tuple[object, ...]] = []
    clock = SimpleNamespace(now=0.0, on_gpu=on_gpu)
    monkeypatch.setattr(process, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    device = "cuda" if on_gpu else "cpu"
    known = {"workers": SimpleNamespace(fds=(3, 4)), "secret": "s", "hosted": False, "environment": CPU}
    setup = SimpleNamespace(device=device, end_left=lambda: heard.append(("left", "ended")), **known)
    card = SimpleNamespace(file=Path("card.py"), name="card")
    base, head = Blind(heard, clock, "base", 100.0), Blind(heard, clock, "head", 50.0)
    team = Team(Blind(heard, clock), (base, head))

    def alone(*notes: record.Note) -> CaseResult:
        heard.clear()
        clock.now = 0.0
        paired = SimpleNamespace(processes=(), notes=notes) if notes else None
        turn: Any = SimpleNamespace(card=card, id="witness", known=paired)
        return process._alone(setup, turn, [team], (base, head), CASE, random.Random(1))  # type: ignore[arg-type]

    result = alone()
    assert clock.fresh_calls == (30 if on_gpu else 200), "of 100 µs, where nothing is known"
    hold_us = 1.5 * 200 + 200 if on_gpu else 0.0
    plans = [at for at, one in enumerate(heard) if one[0] == "plan"]
    assert all(heard[at + 2] == (heard[at + 1][0], "rests") for at in plans), "nobody runs while inputs are drawn"
    ends = [*(["plan"] if on_gpu else []), "base", "base", *(["plan"] if on_gpu else []), "head", "head"]
    assert [one[0] for one in heard[-len(ends) :]] == ends, "each ends, on a GPU with a call"
    del heard[-len(ends) :], plans[len(plans) - ends.count("plan") :]
    made = [one for one in heard if one[0] in ("base", "head") and one[1] != "rests"]
    count = 8 if on_gpu else 5
    assert [heard[at - 1] for at in plans[-2 * count :]] == [("left", "ended")] * 2 * count, "before either side"
    empty = made[: -2 * count][-6:]
    assert empty == [("base", 0, hold_us), ("head", 0, hold_us)] * 3, "what a batch takes without calls"
    assert sorted(made[-2 * count :]) == [("base", 20, hold_us)] * count + [("head", 20, hold_us)] * count
    plans = [one for one in heard if one[0] == "plan"]
    assert plans[-2 * count :] == [("plan", 20, "new"), ("plan", 20, "again")] * count
    assert rounded(result) == {"base": {100}, "head": {50}}
    assert (result.timing.inner_repeats, result.timing.calls["base"].made) == (20, 7)
    assert (result.notes, result.verifying_s, result.contradiction) == ((), 0.0, None)
    assert result.calling_s == pytest.approx(clock.now + 0.25)
    # A batch that the host queues late is made again, behind a hold that is long enough.
    head.slow_us = [0.0] * 3 + [1_000.0]
    result, late_us = alone(), 1.5 * 1_200 + 200
    made = [one for one in heard if one[0] in ("base", "head")]
    assert made.count(("head", 20, late_us)) == (8 if on_gpu else 0)
    assert rounded(result)["head"] == {50}
    # Where calls wait for the device, no hold is long enough: there is none, and each batch counts.
    head.waits, base.waits = True, True
    result = alone()
    made = [one for one in heard if one[0] in ("base", "head") and one[1] == 20]
    assert {one[2] for one in made[-4:]} == {0.0}
    assert len(made) <= 2 * (count + 2) + 2 * (IN_A_ROW + 2), "those are made again by which it is found out"
    assert rounded(result) == {"base": {100}, "head": {50}}
    alone(record.Note(code="host_waits", text=f"{CASE.id}: calls wait"))
    assert {one[2] for one in heard if one[0] in ("base", "head") and len(one) == 3} == {0.0}, "where that is known"
    head.waits, base.waits = False, False
    head.wrong_us = 199.0  # 150 µs and 5% of the shorter batch, of 1000 µs, are allowed
    assert alone().contradiction is None
    head.wrong_us = 201.0
    said = alone().contradiction
    assert (said is not None) is on_gpu, "on a CPU there is one clock"
    assert said is None or said.startswith("here: timed alone, a batch of head takes 201 µs longer by the clock")
    # Results that calls return are copied afterwards: a kernel that is twice as fast is so beside copies of any size …
    head.wrong_us = 0.0
    for one in (base, head):
        one.returns, one.copying_us = True, 4_000.0
    result = alone()
    assert rounded(result) == {"base": {100}, "head": {50}}
    assert result.contradiction is None
    # … and one that leaves its work to the copying is seen to.
    head.call_us, head.copying_us = 5.0, 5_000.0
    assert "a batch of head takes 1000 µs longer" in (alone().contradiction or "")
