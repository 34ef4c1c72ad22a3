"""Cheats on a GPU: none is called faster, and none that acted is called the same (tests/cheats)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats import judged, libraries, table
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
