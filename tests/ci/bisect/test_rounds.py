"""A search with somebody who builds and measures in a moment: what is asked, what is stepped over, when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.measure.bisect import MeasuredCommits
from kernelgate.bench.record import Timing
from kernelgate.ci.bisect import answers, rounds
from kernelgate.ci.bisect.answers import TimedAnswer
from kernelgate.ci.bisect.posterior import Search
from kernelgate.ci.bisect.rounds import Rounds
from kernelgate.ci.commands.options import shown
from tests.ci.answered import validated


@dataclass
class FakeCommits:
    """What a search asks of `bench.measure.bisect.BuiltCommits`, by place, the good end first."""

    of_each: Sequence[float]
    """What is made up of each commit: its time, or how often it fails."""
    broken: Mapping[int, str] = field(default_factory=dict)
    libraries: Mapping[int, str] = field(default_factory=dict)
    """Those that are the same have the same name."""
    unchanged: frozenset[int] = frozenset()
    range = SimpleNamespace(subject=lambda _: "Tile by 128", submodule="")
    card, case = SimpleNamespace(name="scale"), SimpleNamespace(id="n")

    @property
    def shas(self) -> tuple[str, ...]:
        return tuple(f"{at:012x}{0:028x}" for at in range(len(self.of_each)))

    def build(self, place: int) -> str | None:
        return self.broken.get(place)

    def same(self, one: int, other: int) -> bool:
        return self.libraries.get(one, one) == self.libraries.get(other, other)

    def untouched(self) -> frozenset[int]:
        return self.unchanged


@dataclass
class FakeBench(FakeCommits):
    """Commits of known times, in microseconds, on a machine that is quiet."""

    wrong: Mapping[int, str] = field(default_factory=dict)
    wrong_from: int = 1
    """The process from which on their results are wrong."""
    apart: bool = False
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def measure(self, places: Sequence[int], number: int) -> MeasuredCommits:
        self.asked.append(tuple(places))
        rng = np.random.default_rng(number)
        clock = np.exp(rng.normal(0, 0.02, 40))  # what meets a round meets every commit
        samples = {
            f"commit:{self.shas[at]}": tuple((self.of_each[at] * clock * np.exp(rng.normal(0, 1e-3, 40))).tolist())
            for at in places
        }
        timing = Timing(card="scale", case="n", samples_us=samples)
        faults = {at: self.wrong[at] for at in places if at in self.wrong and number >= self.wrong_from}
        right = tuple(at for at in places if at not in faults)
        return MeasuredCommits(timing, right, faults, not self.apart)


def searched(bench: FakeBench) -> tuple[TimedAnswer, Search, list[str]]:
    said: list[str] = []
    search = Search(len(bench.of_each) - 1, spread_pct=rounds.TOGETHER_PCT)
    going = Rounds(bench, said.append, search, rounds.APART_PCT)
    return going.run(), going.search, said


def slower(commits: int, culprit: int, pct: float = 2.0) -> list[float]:
    return [100.0 * (1 + pct / 100 * (at >= culprit)) for at in range(commits)]


def test_the_culprit_is_found_and_named() -> None:
    bench = FakeBench(slower(65, 40))
    found, _, said = searched(bench)
    assert (found.exit_code, found.culprits) == (0, (bench.shas[40],))
    text = answers.text(found)
    assert text.startswith("scale/n: 1.99% slower (1.")
    assert f"\n  {bench.shas[40][:12]} Tile by 128\n" in text
    assert f"of 65 commits, {len(bench.asked)} times side by side." in text
    assert all({0, 64} <= set(asked) and len(asked) <= rounds.LIBRARIES for asked in bench.asked)
    assert said[-1].startswith("round ")
    content = validated("bisect", shown(found))
    assert (content["found"], content["culprits"]) == ("found", [f"{40:012x}{0:028x}"])
    assert content["interval_pct"][0] < content["change_pct"] < content["interval_pct"][1]


def test_what_cannot_be_built_or_is_wrong_is_stepped_over_and_said() -> None:
    bench = FakeBench(slower(9, 4), broken={3: "does not compile"}, wrong={5: "its results are wrong"})
    found, _, said = searched(bench)
    assert found.culprits == bench.shas[3:5]
    text = answers.text(found)
    assert "(stepped over: does not compile)" in text
    assert "cannot be told apart" in text
    assert f"Stepped over {5:012x}: its results are wrong" in text
    assert sum("is stepped over" in line for line in said) == 2
    assert searched(FakeBench(slower(5, 2), broken={1: "b", 2: "b", 3: "b"}))[0].culprits == bench.shas[1:5]
    quiet = FakeBench(slower(9, 4), unchanged=frozenset({1, 2, 3, 5, 6, 7, 8}))
    assert (searched(quiet)[0].culprits, {at for asked in quiet.asked for at in asked}) == (bench.shas[4:5], {0, 8})


@pytest.mark.parametrize(("fault", "place", "end"), [("broken", 0, "good"), ("wrong", 8, "bad")])
def test_an_end_that_cannot_be_measured_ends_the_search(fault: str, place: int, end: str) -> None:
    with pytest.raises(KernelgateError, match=rf"the {end} end, cannot be measured: it is broken; name another one"):
        searched(FakeBench(slower(9, 4), **{fault: {place: "it is broken"}}))


def test_ends_that_take_the_same_time_have_no_culprit() -> None:
    found, *_ = searched(FakeBench([100.0] * 9))
    assert found.exit_code == 2
    assert "take the same time (" in answers.text(found)
    built_alike = FakeBench([100.0] * 9, libraries=dict.fromkeys(range(9), "a"))
    found, *_ = searched(built_alike)
    assert (found.exit_code, built_alike.asked) == (2, [])
    assert answers.text(found).startswith(f"scale/n: {0:012x} and {8:012x} take the same time: what is built")


def test_two_changes_are_named_both() -> None:
    times = [100.0, 100.0, 105.0, 105.0, 105.0, 102.0, 102.0, 102.0]
    found, *_ = searched(FakeBench(times))
    assert found.exit_code == 0
    text = answers.text(found)
    assert "more than one commit changed the time" in text
    assert f"+4.99% between {1:012x} and {2:012x}" in text
    assert f"−2.85% between {4:012x} and {5:012x}" in text
