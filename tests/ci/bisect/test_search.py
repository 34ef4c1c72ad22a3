"""The posterior over commits, what is measured next, and when a search ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.ci.bisect import posterior, rounds
from kernelgate.ci.bisect.posterior import CommitTime, Search
from kernelgate.ci.bisect.rounds import standing


def read(times_pct: Mapping[int, float], noise_pct: float = 0.02, seed: int = 1) -> dict[int, CommitTime]:
    """One process: commits and by how much each is slower than any number."""
    rng = np.random.default_rng(seed)
    return {
        at: CommitTime(3.0 + math.log1p(pct / 100) + rng.normal(0, noise_pct / 100), (noise_pct / 100) ** 2)
        for at, pct in times_pct.items()
    }


def measured(search: Search, *processes: Mapping[int, float]) -> Search:
    """With processes of exact times."""
    return replace(search, processes=tuple(read(one, seed=at) for at, one in enumerate(processes)))


def test_before_anything_is_measured_every_commit_is_as_likely() -> None:
    found = posterior.of(Search(64))
    assert found.none == pytest.approx(posterior.NONE)
    assert found.culprit[1:] == pytest.approx(np.full(64, (1 - posterior.NONE) / 64))
    assert standing(Search(64)).kind == "open"


def test_the_first_commit_with_the_new_time_is_the_culprit() -> None:
    search = measured(Search(4), *[{0: 0.0, 1: 0.0, 2: 1.0, 3: 1.0, 4: 1.0}] * 2)
    now = standing(search)
    assert (now.kind, now.culprits) == ("found", (2,))
    assert 100 * math.expm1(now.effect) == pytest.approx(1.0, abs=3 * 100 * now.error)
    assert standing(measured(Search(3), *[{0: 5.0, 1: 5.0, 2: 0.0, 3: 0.0}] * 2)).culprits == (2,), "also if faster"


def test_nothing_between_two_equal_libraries_is_the_culprit() -> None:
    search = measured(Search(8, same=frozenset({(2, 4)})), *[{0: 0.0, 2: 0.0, 5: 1.0, 8: 1.0}] * 2)
    assert standing(search).culprits == (5,)
    assert posterior.of(Search(8, same=frozenset({(0, 8)}))).none == 1.0, "equal ends need no measurement"


def test_what_varies_from_process_to_process_is_not_taken_for_a_change() -> None:
    """One process alone shows a change of 0.3%; where the others do not, there is none."""
    one, other = {0: 0.0, 4: 0.3, 8: 0.3}, {0: 0.3, 4: 0.0, 8: 0.0}
    assert standing(measured(Search(8), one, other)).kind == "open"


def test_the_first_round_splits_the_range_evenly_and_no_two_processes_measure_the_same() -> None:
    search = Search(64)
    chosen = rounds.next_processes(search)
    assert [len(one) for one in chosen] == [rounds.LIBRARIES] * rounds.PROCESSES
    assert all(one[0] == 0 and one[-1] == 64 for one in chosen)
    inner = sorted(at for one in chosen for at in one[1:-1])
    assert len(set(inner)) == len(inner)
    assert max(np.diff([0, *inner, 64])) <= 8


def test_processors_that_round_differently_choose_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, noise = rounds._entropy, np.random.default_rng(1)
    chosen = rounds.next_processes(Search(15))
    monkeypatch.setattr(rounds, "_entropy", lambda *told: exact(*told) + noise.normal(0, 1e-14))
    assert [rounds.next_processes(Search(15)) for _ in range(5)] == [chosen] * 5


def test_what_is_left_open_is_measured_again() -> None:
    unclear = [{0: 0.0, 30: 0.0, 31: 0.3, 32: 1.0, 64: 1.0}, {0: 0.0, 30: 0.0, 31: 0.7, 32: 1.0, 64: 1.0}]
    search = measured(Search(64), *unclear)
    for one in rounds.next_processes(search):
        assert 31 in one
