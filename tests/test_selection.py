"""Which tests CI runs: one part of them on each machine, and those that guard a part where it changed."""

from __future__ import annotations

from tests.conftest import LONG_S, ROOT, SLOW_S, folders_below, is_touched, share, taken


def test_every_test_is_in_exactly_one_part() -> None:
    names = [f"test_{number // 3}" for number in range(100)]
    parts = [share(names, part, 6) for part in range(1, 7)]
    assert sorted(name for part in parts for name in part) == sorted(set(names))


def test_a_slow_test_of_a_package_runs_where_that_or_what_it_uses_changed() -> None:
    timing = folders_below("bench.timing")
    touching = ("bench/timing/paired.py", "bench/core/errors.py", "csrc/scale.cu", "constraints.txt")
    assert all(is_touched(timing, [one]) for one in touching)
    assert not is_touched(timing, ["ci/judge/gate.py"])
    assert folders_below("ci") == folders_below("workflows") == [], "of several packages: such tests always run"


def test_within_a_bound_every_file_has_a_turn_and_what_changed_comes_first() -> None:
    """One file alone would spend the time; then a change of what one file guards."""
    cheats = [(f"cheat {number}", "cheats/test_cheats.py", False) for number in range(100)]
    others = [(f"other {file}", f"bench/test_{file}.py", False) for file in range(20)]
    kept = taken([*cheats, *others], 20 * SLOW_S + 3 * LONG_S["cheats/test_cheats.py"])
    assert kept == {"cheat 0", "cheat 1", "cheat 2"} | {name for name, *_ in others}
    changed = [(name, file, True) for name, file, _ in others]
    assert taken([*cheats, *changed], 20 * SLOW_S) == {name for name, *_ in others}
    assert not [file for file in LONG_S if not (ROOT / "tests" / file).is_file()], "renamed, it would count as short"
