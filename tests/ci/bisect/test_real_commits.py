"""Searches over 16 real commits on an H200, one of which slows a kernel by about 1%: their measurements, replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.measure.bisect import MeasuredCommits
from kernelgate.bench.record import RunRecord
from kernelgate.ci.bisect import rounds
from kernelgate.ci.bisect.posterior import Search
from kernelgate.ci.bisect.rounds import Rounds
from tests.ci.bisect.test_rounds import FakeCommits

DATA = Path(__file__).parents[2] / "data" / "bisect"
COMMITS = 16
ASKED = (
    ((0, 1, 3, 4, 6, 7, 9, 15), (0, 2, 5, 8, 11, 13, 14, 15)),
    ((0, 2, 3, 8, 9, 10, 11, 15), (0, 1, 4, 5, 6, 13, 14, 15)),
    ((0, 2, 3, 8, 9, 10, 11, 15), (0, 1, 4, 5, 6, 13, 14, 15)),
    ((0, 12, 15), (0, 12, 15)),
    ((0, 12, 15), (0, 12, 15)),
)
"""What the search chose then for the processes of a round, each time that it was asked."""


@dataclass
class ReplayedBench:
    """Builds and measures as the record says; commits have the places at which the search asked for them first."""

    made: RunRecord
    broken: int | None
    places: dict[int, str] = field(default_factory=dict)
    measured: int = 0
    range, card, case = FakeCommits.range, FakeCommits.card, FakeCommits.case

    @property
    def shas(self) -> tuple[str, ...]:
        return tuple(self.places.get(at, f"{at:040x}") for at in range(COMMITS))

    def build(self, place: int) -> str | None:
        if place == self.broken:
            return "does not compile"
        self.places[place] = self.made.builds[len(self.places)].sha or ""
        return None

    def same(self, one: int, other: int) -> bool:
        library = {built.sha: built.library_sha256 for built in self.made.builds}
        return library[self.places[one]] == library[self.places[other]]

    def untouched(self) -> frozenset[int]:
        return frozenset()

    def measure(self, places: Sequence[int], number: int) -> MeasuredCommits:
        assert number == self.measured + 1
        process = self.made.processes[self.measured]
        self.measured = number
        assert {f"commit:{self.places[at]}" for at in places} == set(process.loaded)
        return MeasuredCommits(process.timings[0], tuple(places), {}, together=True)


def test_the_slowed_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ReplayedBench(record.read(DATA / "wgmma-12.json"), broken=7)
    asked = iter(ASKED)
    monkeypatch.setattr(rounds, "next_processes", lambda _: next(asked))
    going = Rounds(bench, lambda _: None, Search(COMMITS - 1, spread_pct=rounds.TOGETHER_PCT), rounds.APART_PCT)

    found = going.run()

    assert (found.found, found.culprits) == ("found", (bench.shas[12],))
    low, high = found.interval_pct
    assert 1.09 <= low <= high <= 1.26
    assert bench.measured == len(bench.made.processes) <= 4, "no process was measured for nothing"
