"""Honest changes on a GPU are not accused: one kernel written in fifty ways (tests/cheats/honest.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats import honest, libraries

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
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
