"""The parts of the tests that CI's machines share."""

from __future__ import annotations

from tests.conftest import share


def test_every_test_is_in_exactly_one_part() -> None:
    names = [f"test_{number // 3}" for number in range(100)]
    parts = [share(names, part, 6) for part in range(1, 7)]
    assert sorted(name for part in parts for name in part) == sorted(set(names))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
