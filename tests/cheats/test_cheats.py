"""None of the cheats is called faster, and none that acted is called the same.

Each is a real library in real processes: `kernelgate bench`, then `kernelgate compare`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats import forged, honest, judged, libraries, table
from tests.cheats.judged import acted, name, words
from tests.cheats.libraries import Tally
from tests.cheats.table import Cheat

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.guards("bench/", "ci/judge/", "tests/cheats/")]


@pytest.mark.parametrize("cheat", table.NATIVE, ids=name)
def test_a_library_that_cheats(cheat: Cheat, tmp_path: Path) -> None:
    tally = Tally.at(tmp_path / "tally")
    forged.write(tmp_path / "forged.jsonl", cheat.rounds)
    base = libraries.native(tmp_path / "base")
    head = libraries.native(tmp_path / "head", words(cheat, tmp_path, tally))
    done = judged.judge(judged.repository(tmp_path / "repository"), base, head, judged.SMALL[1], cheat.rounds)
    judged.check(cheat, done, acted(cheat, tally))


@pytest.mark.parametrize("cheat", table.PACKAGE, ids=name)
def test_a_package_that_cheats(cheat: Cheat, tmp_path: Path) -> None:
    tally = Tally.at(tmp_path / "tally")
    base = libraries.package(tmp_path / "base", "none", Tally.at(tmp_path / "of base"))
    head = libraries.package(tmp_path / "head", cheat.name, tally)
    repo = judged.repository(tmp_path / "repository", package=True)
    done = judged.judge(repo, base, head, judged.SMALL[1], cheat.rounds)
    # Of a package calls are not counted: what cheats at all does so in most.
    judged.check(cheat, done, 1.0 if acted(cheat, tally) else 0.0)


@pytest.mark.parametrize("cheat", [one for one in table.PACKAGE if one.name.startswith("when_timed")], ids=name)
def test_a_package_that_cheats_only_where_it_is_timed_passes_fuzzing(cheat: Cheat, tmp_path: Path) -> None:
    """So that what becomes of it above is the verifier's doing."""
    tally = Tally.at(tmp_path / "tally")
    head = libraries.package(tmp_path / "head", cheat.name, tally)
    repo = judged.repository(tmp_path / "repository", package=True)
    done = judged.run(repo, ["fuzz", "--library", str(head.folder)], {"CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(repo)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert tally.cheated == 0


@pytest.mark.parametrize("package", [False, True], ids=["extension", "package"])
def test_the_same_code_without_a_cheat_is_not_accused(package: bool, tmp_path: Path) -> None:
    if package:
        base = libraries.package(tmp_path / "base", "none", Tally.at(tmp_path / "of base"))
        head = libraries.package(tmp_path / "head", "none", Tally.at(tmp_path / "of head"))
    else:
        base, head = libraries.native(tmp_path / "base"), libraries.native(tmp_path / "head")
    repo = judged.repository(tmp_path / "repository", package)
    done = judged.judge(repo, base, head, judged.SMALL[1])
    assert done.outcome in ("same", "undecided", "slower", "faster"), done
    assert not done.codes, done


KNOBS = {  # in the order of Knobs in the C++
    "lanes": (1, 4, 8, 16),
    "block": (1, 4, 16, 64),
    "backward": (0, 1),
    "wide": (0, 1),
    "temporary": (0, 1),
    "passes": (1, 2),
    "sigmoid": (0, 1, 2),
    "parallel": (0, 1),
}


def test_an_honest_gain_of_the_same_size_is_faster(tmp_path: Path) -> None:
    honest.check_gain(KNOBS, {"sigmoid": 1}, tmp_path, "M=96, N=512", libraries.compiled())


def test_an_honest_gain_of_a_package_is_faster(tmp_path: Path) -> None:
    def once(number: int) -> judged.Judgement:
        base, head = (
            libraries.package(tmp_path / f"{side}{number}", code, Tally.at(tmp_path / f"of {side}"))
            for side, code in (("base", "slowed(none)"), ("head", "none"))
        )
        repo = judged.repository(tmp_path / f"repository{number}", package=True)
        return judged.judge(repo, base, head, judged.SMALL[1])

    judged.check_faster(once)


def test_honest_changes_are_not_accused(tmp_path: Path) -> None:
    """One kernel written in fifty ways, each compared with another one; how they differ in time is their own affair."""
    honest.check(honest.changes(KNOBS, seed=11), tmp_path, "M=48, N=256", libraries.compiled())
