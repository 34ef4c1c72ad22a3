"""What the verifier plans, compares and keeps to itself."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernelgate.bench.kernel.operands import Inputs, Tensors
from kernelgate.bench.system import worker
from kernelgate.bench.timing import pool, protocol, verifier
from kernelgate.bench.timing.process import VERIFIER
from kernelgate.bench.timing.references import CallError, References
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, IN_PLACE, ROWS, SUM, VerifiedCase, nothing


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


def test_no_two_calls_read_the_same_inputs(case: VerifiedCase) -> None:
    """Neither in one batch nor in several, whatever their size."""
    seen: set[bytes] = set()
    made = 0
    for count in (1, 3, 7, 20, 1, 20, 20, 13, 20, 20):
        count = min(count, case.pool.size.windows)
        seen |= {content(case, *call) for call in pairs(case.plan(count))}
        made += count
        case.check(("head",) * count)
    assert made > 3 * case.pool.size.windows, "the pool was exhausted several times"
    assert len(seen) == made
    assert case.verifier.close().calls["head"].repeated == 0


def test_calls_that_read_inputs_again_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whole sets, where drawing others would take too long."""
    monkeypatch.setitem(verifier.LEAST_US, "cpu", 0.0)
    monkeypatch.setattr(verifier, "BUDGET", 0.0)
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        sets = case.pool.size.windows
        seen: set[bytes] = set()
        for count in (sets - 1, 5, 2 * sets, 1):
            seen |= {content(case, *call) for call in pairs(case.plan(count))}
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


def pairs(planned: protocol.Planned) -> list[tuple[int, int]]:
    return list(zip(planned.windows, planned.slots, strict=True))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slots whose outputs are compared, in the order in which calls were made."""
    found: list[int] = []
    compare = References.compare

    def spy(self: References, calls: list[tuple[int, int]]) -> list[CallError]:
        found.extend(slot for _, slot in calls)
        return compare(self, calls)

    monkeypatch.setattr(References, "compare", spy)
    return found


def test_which_calls_are_compared_depends_on_the_seed(tmp_path: Path, looked_at: list[int]) -> None:
    """Of one call alone, that is."""
    chosen = []
    for seed in ("a", "a", "b"):
        with verified.opened(verified.write(tmp_path, ROWS), AXES, seed=seed) as case:
            looked_at.clear()
            for count in (20, 20, 20, 1):
                case.turn(case.work, count)
            assert len(looked_at) == 16
            chosen.append(tuple(looked_at))
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_whoever_writes_outside_of_an_output_is_wrong_and_not_its_neighbour(tmp_path: Path) -> None:
    """Before it or behind it, by one number, where a page further another call's output lies."""
    with verified.opened(verified.write(tmp_path, ROWS), {**AXES, "N": 15}) as case:
        place = case.pool.outputs["out"]
        for where in (-4, place.bytes):
            for window, slot in pairs(case.plan(8)):
                case.work(case.given(window, slot), case.outs(slot), 0)
            at = place.offset + 3 * place.step + where
            case.written.part(at, 4).view(torch.float32).fill_(float("nan"))
            case.check(("base", "base", "base", "head", "base", "base", "base", "base"))
            assert case.turn(case.work, 8, "base") == 0, "what was written there is gone"
        checked = case.verifier.close()
        assert (checked.calls["base"].failed, checked.calls["head"].failed) == (0, 2)
        assert [note.text for note in checked.notes] == ["2 calls of head wrote before or behind their outputs"]


def test_nobody_but_the_verifier_can_write_to_an_input(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        fd = case.prepared.memory.fd
        for again in (fd, os.open(f"/proc/self/fd/{fd}", os.O_RDWR)):
            with pytest.raises(PermissionError):
                mmap.mmap(again, 4096)
            with pytest.raises(PermissionError):
                os.pwrite(again, b"x", 0)
        before = case.given(0)["x"].clone()
        case.plan(0, "new")
        assert not torch.equal(case.given(0)["x"], before), "the verifier can"


@pytest.mark.parametrize("body", [SUM, ROWS], ids=["sets", "windows"])
def test_an_input_lies_elsewhere_beside_the_same_first_one(tmp_path: Path, body: str) -> None:
    """A kernel that keeps addresses by that of its first input reads of the others what lay there before."""
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        known: dict[int, torch.Tensor] = {}

        def keeps(given: Inputs, outs: Tensors, _: int) -> None:
            x, y = given["x"], given["y"]
            outs["out"].copy_(x + known.setdefault(x.data_ptr(), y))

        windows = case.pool.size.windows
        assert case.turn(keeps, windows) == 0
        assert case.turn(keeps, windows) > 0, "all windows were read, so that they changed"
        case.turn(keeps, windows)
        case.plan(0, "new")
        assert case.turn(keeps, windows) > 0
        known.clear()
        assert case.turn(case.work, windows) == 0


@pytest.mark.parametrize("when", ["before a new draw", "before the end", "never"])
def test_an_input_that_was_changed_where_memory_cannot_be_sealed_is_said(tmp_path: Path, when: str) -> None:
    """As on a GPU: whoever sets an input to zero, and computes what is right for zeros, is right by no reference."""
    with verified.opened(verified.write(tmp_path, ROWS), AXES, shared=False) as case:
        assert not case.prepared.memory.sealed
        case.turn(case.work, 8)
        if when != "never":
            case.given(0)["y"][0, 0] += 1
        if when == "before a new draw":
            case.plan(0, "new")
        case.turn(case.work, case.pool.size.windows)
        case.turn(case.work, 8)  # which begins with a shuffle
        disturbed = case.verifier.close().disturbed
        assert (disturbed is None) == (when == "never"), disturbed
        assert "an input was changed" in (disturbed or "an input was changed")


def preparing(card: Path, fds: tuple[int, int]) -> protocol.PrepareCase:
    return protocol.PrepareCase(id="here", card_file=card, axes=AXES, device="cpu", cache_bytes=0, seed="s", fds=fds)


@pytest.mark.slow
def test_a_verifier_that_was_stopped_says_so(tmp_path: Path) -> None:
    """By whoever may: a process of its user, such as the one that is measured."""
    card = verified.write(tmp_path, ROWS)
    with worker.worker_pool() as workers, workers.take(VERIFIER) as one:
        for stopped in (False, True):
            one.ask(preparing(card, workers.fds), protocol.CasePrepared, 60)
            if stopped:
                one.pause()
                one.go_on()
            closed = one.ask(protocol.CloseCase(), protocol.CaseChecked, 60)
            assert ("the verifier was stopped" in (closed.disturbed or "")) == stopped


def test_where_comparing_takes_long_fewer_calls_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        case.turn(case.work, 32)
        monkeypatch.setitem(verifier.LEAST_US, "cpu", 0.0)
        monkeypatch.setattr(verifier, "BUDGET", 0.0)
        for _ in range(10):
            case.turn(case.work, 32)
        assert case.verifier.close().calls["head"].compared == 8 + 10 * 32 // 4 // verifier.FEWER


def test_what_the_call_before_has_written_is_no_result(case: VerifiedCase) -> None:
    """Neither whole, nor where poison has not come."""
    for _ in range(3):
        assert case.turn(case.work, 20) == 0
    assert case.turn(nothing, 20) == 5


@pytest.mark.parametrize("body", [ROWS, SUM])
def test_where_both_sides_read_the_same_inputs_neither_finds_what_the_other_wrote(tmp_path: Path, body: str) -> None:
    """As the witness's two processes do in turn: what is right stands in memory that both of them map."""
    with verified.opened(verified.write(tmp_path, body), {**AXES, "N": 200}, fresh_calls=4) as case:
        for inputs in ("new", "again"):  # as of base, then of head
            planned = case.plan(4, "new" if inputs == "new" else "again")
            for slot in planned.slots:
                assert all(bool(out.isnan().all()) for out in case.outs(slot).values()), inputs
            for number, (window, slot) in enumerate(pairs(planned)):
                case.work(case.given(window, slot), case.outs(slot), number)
            assert case.check(("head",) * 4) == 0


def test_poison_comes_to_each_byte_in_the_end(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), {**AXES, "N": 200}) as case:
        reached = torch.zeros(6 * 200 * 4, dtype=torch.bool)
        for _ in range(60):
            case.plan(1)
            case.pool.written.rows(case.pool.outputs["out"]).zero_()
            case.check(("reference",))
            now = case.pool.written.rows(case.pool.outputs["out"])[0, : len(reached)] == 0xFF
            assert 0 < int(now.sum()) < len(reached) / 2, "a part each time"
            reached |= now
        assert bool(reached.all())


def test_two_probes_tell_how_long_it_took_and_on_one_multiprocessor_the_clock() -> None:
    """Nanoseconds, cycles and the number of the multiprocessor, before and after."""
    here = verifier._probed((5_000, 100, 3, 7_000, 3_100, 3), 1_000)
    assert (here.started_us, here.us, here.sm_mhz) == (4.0, 2.0, 1500.0)
    assert verifier._probed((5_000, 100, 3, 7_000, 3_100, 4), 1_000).sm_mhz is None
    assert verifier._probed((5_000, 100, 3, 7_000, 90, 3), 1_000).sm_mhz is None, "a counter that began anew"


@pytest.mark.parametrize("base_too", [False, True])
def test_what_base_does_in_a_graph_alike_is_no_wrong_result(tmp_path: Path, base_too: bool) -> None:
    """A kernel that launches on the default stream is in no graph, whose replay leaves the outputs as they were."""
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        for side in ("base", "head"):
            assert case.turn(case.work, 4, side) == 0
            case.turn(nothing if base_too or side == "head" else case.work, 4, side, graph=True)
        checked = case.verifier.close()
    assert checked.graphs is not base_too, "their times are of nothing"
    assert checked.calls["base"].failed == 0
    assert bool(checked.calls["head"].failed) is not base_too
    assert [note.code for note in checked.notes if note.code == "no_graphs"] == ["no_graphs"] * base_too
