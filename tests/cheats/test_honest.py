"""Honest changes are not accused: one kernel written in fifty ways, each compared with another one.

How the ways differ in time is their own affair; no output is wrong, and the witness contradicts nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats import honest, libraries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.guards("bench/", "ci/judge/", "tests/cheats/")]
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


def test_honest_changes_are_not_accused(tmp_path: Path) -> None:
    honest.check(honest.changes(KNOBS, seed=11), tmp_path, "M=48, N=256", libraries.compiled())
