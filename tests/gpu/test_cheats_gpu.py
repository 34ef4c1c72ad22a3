"""Cheats on a GPU: none is called faster, and none that acted is called the same (tests/cheats). Honest changes are not
accused: one kernel written in fifty ways (tests/cheats/honest.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats import honest, judged, libraries, table
from tests.cheats.judged import acted, name, words
from tests.cheats.libraries import Tally
from tests.cheats.table import Cheat

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cheat", table.CUDA, ids=name)
def test_a_library_that_cheats(cheat: Cheat, tmp_path: Path) -> None:
    tally = Tally.at(tmp_path / "tally")
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", words(cheat, tmp_path, tally), original=original)
    case, id_ = judged.LONG if cheat.long else judged.LARGE
    repo = judged.repository(tmp_path / "repository", case=case, reference=not cheat.long)
    done = judged.judge(repo, base, head, id_, cheat.rounds, cuda=True)
    judged.check(cheat, done, acted(cheat, tally))


def test_the_same_code_without_a_cheat_is_not_accused(tmp_path: Path) -> None:
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", original=original)
    repo = judged.repository(tmp_path / "repository", case=judged.LARGE[0])
    done = judged.judge(repo, base, head, judged.LARGE[1], cuda=True)
    assert done.outcome in ("same", "undecided", "slower", "faster"), done
    assert not done.codes, done


KNOBS = {  # in the order of Knobs in the C++
    "threads": (128, 256, 512),
    "rows": (1, 2, 4),
    "vector": (1, 2, 4),
    "unroll": (1, 4, 8),
    "terms": (96, 128, 160),
    "wide": (0, 1),
    "backward": (0, 1),
    "passes": (1, 2),
}


def test_honest_changes_are_not_accused(tmp_path: Path) -> None:
    honest.check(honest.changes(KNOBS, seed=12), tmp_path, "M=1024, N=2048", libraries.compiled_for_gpu())


def test_an_honest_gain_of_the_same_size_is_faster(tmp_path: Path) -> None:
    slow = {"terms": 160, "passes": 2}
    honest.check_gain(KNOBS, slow, tmp_path, "M=1024, N=2048", libraries.compiled_for_gpu())
