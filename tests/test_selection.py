"""Which tests CI runs: one part of them on each machine, and those that guard a part where it changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import LONG_S, ROOT, SLOW_S, changed_files, folders_below, is_touched, share, taken


def test_every_test_is_in_exactly_one_part() -> None:
    names = [f"test_{number // 3}" for number in range(100)]
    parts = [share(names, part, 6) for part in range(1, 7)]
    assert sorted(name for part in parts for name in part) == sorted(set(names))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_guard_runs_where_what_it_guards_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    git("init", "--quiet")
    for name in ("bench/one.py", "ci/two.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
        git("add", ".")
        git("commit", "--quiet", "-m", name)
    (tmp_path / "new.md").write_text("")
    since_first = changed_files("HEAD~1", tmp_path)
    assert set(since_first) == {"ci/two.py", "new.md"}
    assert (is_touched(["ci/"], since_first), is_touched(["bench/", "csrc/"], since_first)) == (True, False)
    assert "bench/one.py" in changed_files("1 day", tmp_path)


def test_a_slow_test_of_a_package_runs_where_that_or_what_it_uses_changed() -> None:
    timing = folders_below("bench.timing")
    for touched in (
        "bench/timing/paired.py",
        "bench/core/errors.py",
        "csrc/scale.cu",
        "tests/bench/timing/test_paired.py",
    ):
        assert is_touched(timing, [touched])
    for idle in ("ci/judge/gate.py", "bench/doctor/machine.py", "docs/timing.md"):
        assert not is_touched(timing, [idle])
    assert is_touched(folders_below("ci.judge"), ["bench/record/record.py"])
    assert not is_touched(folders_below("ci.judge"), ["ci/github/client.py"])
    assert is_touched(folders_below("ci.commands"), ["ci/github/client.py"])
    assert is_touched(timing, ["constraints.txt"]), "another version of what it computes with"
    assert folders_below("ci") == folders_below("workflows") == [], "of several packages: such tests always run"


def test_within_a_bound_every_file_has_a_turn_and_what_changed_comes_first() -> None:
    """Everything changed and one file alone would spend the time; then a change of what one file guards."""
    cheats = [(f"cheat {number}", "cheats/test_cheats.py", False) for number in range(100)]
    others = [(f"other {file}", f"bench/test_{file}.py", False) for file in range(20)]
    kept = taken([*cheats, *others], 20 * SLOW_S + 3 * LONG_S["cheats/test_cheats.py"])
    assert kept == {"cheat 0", "cheat 1", "cheat 2"} | {name for name, *_ in others}

    ends = [(f"end {number}", "workflows/test_end_to_end.py", False) for number in range(50)]
    kernels = [(f"kernel {number}", "csrc/test_kernel_cpu.py", True) for number in range(4)]
    assert taken([*ends, *kernels], 4 * SLOW_S) == {name for name, *_ in kernels}
    assert taken([*ends, *kernels], 4 * SLOW_S + 30) == {"end 0", *(name for name, *_ in kernels)}
    assert taken(ends, 29) == set()


def test_the_files_whose_tests_take_long_are_there() -> None:
    assert not [file for file in LONG_S if not (ROOT / "tests" / file).is_file()], "renamed, it would count as short"
