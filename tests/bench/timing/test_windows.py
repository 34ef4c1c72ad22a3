"""Which inputs calls read: each window once before any comes back, and neighbours in time share nothing."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.timing import windows
from kernelgate.bench.timing.windows import ALIGNMENT, Order, PoolSize

SIZES = st.builds(
    windows.pool_size,
    length=st.integers(1, 5_000),
    entry_bytes=st.lists(st.integers(1, 1 << 20), min_size=1, max_size=4),
    cache_bytes=st.integers(0, 1 << 27),
    most_entries=st.integers(0, 1 << 14),
)


def apart(size: PoolSize) -> int:
    """Windows from one to the next that shares no entry with it."""
    return -(-size.length // size.grain)


def order(count: int, apart: int, seed: int) -> Order:
    made = Order(count, apart, random.Random(seed))
    made.renew()
    return made


# ----------------------------------------------------------------------------------------------------------------------
# The order
# ----------------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 700), st.integers(1, 400), st.integers())
def test_each_window_comes_once_before_any_comes_again(count: int, apart: int, seed: int) -> None:
    taken = order(count, apart, seed)
    for _ in range(2):
        assert taken.left == count
        assert sorted(taken.take() for _ in range(count)) == list(range(count))
        assert taken.left == 0
        taken.renew()


@given(st.integers(1, 200), st.integers(0, 300), st.integers())
def test_consecutive_windows_share_nothing_where_three_lie_side_by_side(apart: int, more: int, seed: int) -> None:
    count = 2 * apart + 1 + more
    taken = order(count, apart, seed)
    numbers = [taken.take() for _ in range(count)]
    assert all(abs(one - other) >= apart for one, other in pairwise(numbers))


def test_after_the_last_window_the_same_order_begins_again() -> None:
    taken = order(30, 4, 1)
    first = [taken.take() for _ in range(30)]
    assert [taken.take() for _ in range(30)] == first
    assert taken.left == -30


def test_starts_and_steps_are_drawn_anew() -> None:
    taken = order(1000, 10, 5)
    seen = set()
    for _ in range(20):
        first, second = taken.take(), taken.take()
        seen.add((first, (second - first) % 1000))
        taken.renew()
    assert len({start for start, _ in seen}) > 15
    assert len({step for _, step in seen}) > 3


# ----------------------------------------------------------------------------------------------------------------------
# The pool
# ----------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1 << 20), max_size=5), st.integers(0, 1000))
def test_every_window_of_every_tensor_is_aligned(entry_bytes: list[int], window: int) -> None:
    size = PoolSize(1 << 20, 3, windows.grain(entry_bytes))
    assert all(size.start(window) * entry % ALIGNMENT == 0 for entry in entry_bytes)


def test_the_grain_is_no_coarser_than_it_must_be() -> None:
    assert windows.grain([256, 1024]) == 1
    assert windows.grain([128, 512]) == 2
    assert windows.grain([6]) == 128
    assert windows.grain([]) == 1


@given(SIZES)
def test_a_pool_has_a_window_at_least_and_its_last_one_ends_in_it(size: PoolSize) -> None:
    assert size.windows >= 1
    assert size.start(size.windows - 1) + size.length <= size.entries < size.start(size.windows) + size.length


@given(
    st.integers(1, 5_000),
    st.lists(st.integers(1, 1 << 20), min_size=1, max_size=4),
    st.integers(0, 1 << 27),
    st.integers(0, 1 << 14),
)
def test_a_pool_is_no_larger_than_it_may_be(length: int, entry_bytes: list[int], cache: int, most: int) -> None:
    bounded = windows.pool_size(length, entry_bytes, cache, most)
    assert bounded.entries <= max(most, length)
    free = windows.pool_size(length, entry_bytes, cache, 1 << 62)
    assert bounded.entries == max(length, min(most, free.entries))
    assert free.windows >= 2 * apart(free) + 1, "three side by side"
    between = (free.entries - length) * sum(entry_bytes)
    full = free.entries == windows.MANY * length
    assert full or between >= cache, "what is read before a window comes back fills the cache"


@pytest.mark.parametrize(("length", "entry"), [(16, 4096), (1, 256)])
def test_a_small_case_has_many_windows(length: int, entry: int) -> None:
    assert windows.pool_size(length, [entry], 0, 1 << 40).windows >= windows.MANY


@given(st.integers(0, 1 << 34), st.integers(0, 1 << 28), st.integers(0, 1 << 33))
def test_whole_sets_fill_the_cache_as_far_as_memory_allows(set_bytes: int, cache: int, most: int) -> None:
    count = windows.set_count(set_bytes, cache, most)
    assert 2 <= count <= windows.MANY
    assert count == 2 or count * set_bytes <= most
    assert count in (windows.MANY, max(2, most // max(1, set_bytes))) or (count - 1) * set_bytes >= cache
