"""What the verifier draws: where inputs and references lie, whether they belong together, and which a call reads."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.kernel import operands
from kernelgate.bench.system import worker
from kernelgate.bench.timing import pool, verifier
from kernelgate.bench.timing.pool import ALIGNMENT, Layout, Order, PoolSize, footprint
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, IN_PLACE, ROWS, SUM, TWO_OUTPUTS, VerifiedCase

ROOT = Path(__file__).parents[3]
REPOSITORIES = ROOT / "tests" / "repositories"
ATTENTION = ROOT / ".ci" / "kernels" / "attention.py"


def adopted(name: str) -> Path:
    return REPOSITORIES / name / ".ci" / "kernels" / f"{name}.py"


REAL: dict[str, tuple[Path, dict[str, Any]]] = {
    "attention": (ATTENTION, {"S": 9, "B": 2, "H": 3, "D": 64, "dtype": "fp16", "causal": True}),
    "rmsnorm of odd rows": (adopted("rmsnorm"), {"M": 7, "N": 33, "dtype": "bf16"}),
    "int8_gemm": (adopted("int8_gemm"), {"M": 4, "N": 6, "K": 40, "dtype": "int8"}),
}
ODD = """
cases = [dict(M=6, dtype="fp32")]
def inputs(self, case, draw):
    parts = [draw(case.M), draw(1).expand(case.M), draw(2, case.M).T[:, 1]]
    pair = (draw(case.M), int(draw.integers(0, 9, 1)[0]))
    return dict(parts=parts, pair=pair, factor=float(draw.uniform(1, 2, 1)[0]), word="and", nothing=None,
                indices=draw.integers(0, case.M, case.M), mask=draw(case.M, dtype="bool"))
def outputs(self, case, **given):
    return Output(case.M)
def oracle(self, case, parts, pair, factor, word, nothing, indices, mask):
    return (factor * sum(parts) + pair[0] * pair[1])[indices] * mask
"""
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "sets": (SUM, AXES),
    "windows": (ROWS, AXES),
    "sets in place": (SUM + "in_place = ['x']\n", AXES),
    "windows in place": (IN_PLACE, AXES),
    "several outputs": (TWO_OUTPUTS, AXES),
    "lists, numbers and views": (ODD, {"M": 6, "dtype": "fp32"}),
    "8-bit floats": (ROWS, {**AXES, "dtype": "fp8_e4m3"}),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools of few windows, as of large inputs."""
    monkeypatch.setattr(pool, "CHEAP_BYTES", 1 << 14)
    monkeypatch.setattr(pool, "MANY", 24)


@pytest.fixture(params=[*REAL, *WRITTEN])
def card(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    if request.param in REAL:
        return REAL[request.param]
    body, axes = WRITTEN[request.param]
    return verified.write(tmp_path, body), axes


def references_are_right(case: VerifiedCase) -> None:
    """For each window, as far as it was planned: those of the pool, and what the oracle says of what is mapped."""
    planned = case.plan(min(case.pool.size.windows, case.verifier.slots))
    assert len(set(planned.windows)) == len(planned.windows)
    references = case.verifier.references
    assert references.complete
    for window, slot in zip(planned.windows, planned.slots, strict=True):
        _, values = references.right_of(window)
        for name, right in case.right(window, slot).items():
            atol, rtol = references.limits[name]
            wide = values[name].double().reshape(right.shape)
            torch.testing.assert_close(wide, right.double(), atol=atol / 4 + 1e-12, rtol=rtol / 4, msg=f"{window}")


@pytest.mark.usefixtures("small")
def test_inputs_and_references_of_a_card(card: tuple[Path, dict[str, Any]]) -> None:
    """Nothing lies over something else, what a call reads looks like fresh tensors, and what is right belongs to it,
    also after entries changed places and were drawn anew."""
    with verified.opened(*card) as case:
        is_apart(case)
        looks_fresh(case)
        references_are_right(case)
        before = contents(case)
        order = case.pool.shuffle()
        if order is not None:
            case.verifier.references.follow(order)
            assert contents(case) != before
        references_are_right(case)
        before = contents(case)
        case.plan(0, "new")
        assert contents(case) != before
        references_are_right(case)


def is_apart(case: VerifiedCase) -> None:
    """Inputs, outputs and probes, each from its first index to its last."""
    places = [item for given in case.prepared.inputs for item in given.items if hasattr(item, "offset")]
    if case.kernel.in_place:
        places = [place for place in places if place not in case.pool.outputs.values()]
    written = [*case.pool.outputs.values(), case.prepared.probes]
    for lying, shared in ((places, case.prepared.memory), (written, case.prepared.written)):
        spans = sorted((one.offset, one.offset + one.step * (one.count - 1) + one.bytes) for one in lying)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        assert not spans or spans[-1][1] <= shared.bytes


def looks_fresh(case: VerifiedCase) -> None:
    fresh = case.pool.first
    planned = case.plan(min(case.pool.size.windows, 8))
    for window, slot in zip(planned.windows, planned.slots, strict=True):
        given = case.given(window, slot)
        assert list(given) == list(fresh)
        for name, value in fresh.items():
            assert type(given[name]) is type(value)
            assert not isinstance(value, list | tuple) or len(given[name]) == len(value)
        for (_, mapped), (name, new) in zip(operands.tensors(given), operands.tensors(fresh), strict=True):
            assert (mapped.shape, mapped.stride(), mapped.dtype) == (new.shape, new.stride(), new.dtype), name
            assert mapped.data_ptr() % ALIGNMENT == 0, name
        for name, out in case.outs(slot).items():
            assert out.data_ptr() % ALIGNMENT == 0, name
            assert out.is_contiguous()


def contents(case: VerifiedCase) -> bytes:
    """All that windows are made of."""
    arena = case.pool.arena
    assert arena.data is not None
    kept = b"".join(bytes(golden.flatten().view(torch.uint8).numpy()) for golden in case.pool.golden.values())
    return bytes(arena.data.numpy()) + kept


@pytest.mark.parametrize(
    "changed",
    [
        "independent = dict(x=0, y=0)\n",  # of an output nothing is said
        "independent = dict(x=1, y=1, out=1)\n",
        "independent = dict(x=0, y=0, out=0)\ndef inputs(self, case, draw):\n"
        "    return dict(x=draw(case.N, case.M).T, y=draw(case.M, case.N))\n",
    ],
)
def test_what_cannot_be_cut_is_kept_in_whole_sets(tmp_path: Path, changed: str) -> None:
    with verified.opened(verified.write(tmp_path, SUM + changed), AXES) as case:
        assert case.pool.whole
        references_are_right(case)


@pytest.mark.parametrize("body", [SUM, ROWS], ids=["sets", "windows"])
def test_fresh_calls_share_nothing(tmp_path: Path, body: str) -> None:
    axes = {**AXES, "M": 7, "N": 33}
    with verified.opened(verified.write(tmp_path, body), axes, fresh_calls=5) as case:
        assert case.pool.size.windows == case.prepared.slots == 5
        for name in ("x", "y"):
            tensors = sorted((case.given(window)[name] for window in range(5)), key=torch.Tensor.data_ptr)
            starts = [tensor.data_ptr() for tensor in tensors]
            assert all(one + footprint(tensors[0]) <= other for one, other in pairwise(starts))
            assert all(start % ALIGNMENT == 0 for start in starts)
            assert len({bytes(tensor.numpy()) for tensor in tensors}) == 5
        references_are_right(case)


def test_fresh_calls_are_no_more_than_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verifier.MAX_BYTES, "cpu", 3_000)
    with verified.opened(verified.write(tmp_path, SUM), AXES, fresh_calls=50) as case:
        assert case.prepared.slots == case.pool.size.windows == 3


def test_what_is_no_window_has_copies_that_the_cache_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of a small case: the same values at other addresses."""
    path, axes = adopted("rmsnorm"), {"M": 6, "N": 48, "dtype": "fp16"}
    with verified.opened(path, axes, cache_bytes=3_000) as case:
        weights = [case.given(window)["weight"] for window in range(10)]
        assert len({weight.data_ptr() for weight in weights}) == 3_000 // (7 * 96) + 2
        assert all(torch.equal(weight, weights[0]) for weight in weights)
    monkeypatch.setattr(pool, "MANY", 2)
    with verified.opened(path, axes, cache_bytes=3_000) as case:
        assert len({case.given(window)["weight"].data_ptr() for window in range(10)}) == 2


def test_equal_seeds_draw_equal_pools_and_others_do_not(tmp_path: Path) -> None:
    card = verified.write(tmp_path, ROWS)
    made = []
    for seed in ("a", "a", "b"):
        with verified.opened(card, AXES, seed=seed) as case:
            made.append((contents(case), case.plan(30).windows))
    assert made[0] == made[1]
    assert made[0][0] != made[2][0]
    assert made[0][1] != made[2][1]


def order(count: int, apart: int, seed: int) -> Order:
    made = Order(count, apart, random.Random(seed))
    made.renew()
    return made


@given(st.integers(1, 700), st.integers(1, 400), st.integers())
def test_each_window_comes_once_before_any_comes_again(count: int, apart: int, seed: int) -> None:
    taken = order(count, apart, seed)
    for _ in range(2):
        assert taken.left == count
        first = [taken.take() for _ in range(count)]
        assert sorted(first) == list(range(count))
        assert taken.left == 0
        assert [taken.take() for _ in range(count)] == first, "not renewed, the same order begins again"
        taken.renew()


@given(st.integers(1, 200), st.integers(0, 300), st.integers())
def test_consecutive_windows_share_nothing_where_three_lie_side_by_side(apart: int, more: int, seed: int) -> None:
    count = 2 * apart + 1 + more
    taken = order(count, apart, seed)
    numbers = [taken.take() for _ in range(count)]
    assert all(abs(one - other) >= apart for one, other in pairwise(numbers))


def test_the_order_is_another_one_each_time_that_it_is_renewed() -> None:
    taken = order(1000, 10, 5)
    seen = set()
    for _ in range(20):
        start, second = taken.take(), taken.take()
        seen.add((start, (second - start) % 1000))
        taken.renew()
    assert len({start for start, _ in seen}) > 15
    assert len({step for _, step in seen}) > 3


@given(
    st.integers(1, 5_000),
    st.lists(st.integers(1, 1 << 20), min_size=1, max_size=4),
    st.integers(0, 1 << 27),
    st.integers(0, 1 << 14),
)
def test_a_pool_has_a_window_at_least_and_is_no_larger_than_it_may_be(
    length: int, entry_bytes: list[int], cache: int, most: int
) -> None:
    bounded = pool.pool_size(length, entry_bytes, cache, most)
    assert bounded.windows >= 1
    assert bounded.start(bounded.windows - 1) + length <= bounded.entries < bounded.start(bounded.windows) + length
    assert bounded.entries <= max(most, length)
    free = pool.pool_size(length, entry_bytes, cache, 1 << 62)
    assert bounded.entries == max(length, min(most, free.entries))
    assert free.windows >= 2 * free.apart + 1, "three side by side"
    between = (free.entries - length) * sum(entry_bytes)
    full = free.entries == pool.MANY * length
    assert full or between >= cache, "what is read before a window comes back fills the cache"


# Memory that two processes see


def test_a_tensor_takes_the_bytes_from_its_first_element_to_its_last() -> None:
    assert pool.footprint(torch.empty(3, 5, dtype=torch.float16).T) == 30
    assert pool.footprint(torch.empty(1).expand(7, 9)) == 4
    assert pool.footprint(torch.empty(4, 10)[:, 2:5]) == 4 * 33
    assert (pool.footprint(torch.empty(0, 8)), pool.footprint(torch.tensor(1.0))) == (0, 4)


def test_both_ends_see_the_same_tensors() -> None:
    layout = Layout()
    place = layout.place(torch.empty(2, 3), count=4)
    with worker.memory_file() as fd:
        mine = pool.create("cpu", layout.bytes, fd, shared=True)
        theirs = pool.open_shared(mine.memory)
        mine.view(place, 3).copy_(torch.arange(6.0).view(2, 3))
        assert theirs.view(place, 3).flatten().tolist() == [0, 1, 2, 3, 4, 5]
        assert torch.equal(theirs.view(place, 7), mine.view(place, 3)), "indices begin again"
        pool.close(mine, owner=True)
        with pytest.raises(ValueError, match="the memory is closed"):
            mine.view(place, 0)
        assert theirs.view(place, 3)[1, 2] == 5, "the other end has its own"


def test_a_file_in_memory_is_never_cut() -> None:
    """A process that still maps its end would be killed."""
    with worker.memory_file() as fd:
        pool.create("cpu", 8192, fd, shared=True)
        pool.create("cpu", 4096, fd, shared=True)
        assert os.fstat(fd).st_size == 8192


def test_the_sizes_of_pools() -> None:
    """Numbers of both formulas at their bounds."""
    assert pool.pool_size(10, [1 << 20], 0, 1 << 30) == PoolSize(74, 10, 1)
    assert pool.pool_size(1, [4], 1 << 30, 1 << 40) == PoolSize(1024, 1, 64)
    assert [PoolSize(99, 10, grain).apart for grain in (1, 4, 5, 16)] == [10, 3, 2, 1], "windows that share nothing"
    sizes = [((1 << 20, 100 << 20, 1 << 40), 102), ((1 << 20, 0, 1 << 40), 64), ((0, 0, 1 << 40), pool.MANY)]
    sizes += [((1 << 20, 100 << 20, 5 << 20), 5), ((1 << 20, 100 << 20, 0), 2)]
    assert [pool.set_count(*asked) for asked, _ in sizes] == [count for _, count in sizes]
