"""A search with somebody who builds and measures in a moment: what is asked, what is stepped over, when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.measure.bisect import MeasuredCommits
from kernelgate.bench.record import Timing
from kernelgate.ci.bisect import rounds, words
from kernelgate.ci.bisect.posterior import Search
from kernelgate.ci.bisect.rounds import Rounds
from kernelgate.ci.bisect.words import SearchResult
from kernelgate.ci.document.answer import shown
from tests.ci.answered import validated
from tests.ci.bisect.fake_commits import FakeCommits


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


def searched(bench: FakeBench) -> tuple[SearchResult, list[str]]:
    said: list[str] = []
    search = Search(len(bench.of_each) - 1, spread_pct=rounds.TOGETHER_PCT)
    going = Rounds(bench, said.append, search, rounds.APART_PCT, set())
    now = going.run()
    subjects = dict.fromkeys(bench.shas, "Tile by 128")
    return SearchResult(bench.shas, subjects, now, going.search, "scale/n"), said


def slower(commits: int, culprit: int, pct: float = 2.0) -> list[float]:
    return [100.0 * (1 + pct / 100 * (at >= culprit)) for at in range(commits)]


def test_the_culprit_is_found_and_named() -> None:
    bench = FakeBench(slower(65, 40))
    found, said = searched(bench)
    assert (found.exit_code, found.standing.culprits) == (0, (40,))
    text = words.timed_text(found)
    assert text.startswith("scale/n: 1.99% slower (1.")
    assert f"\n  {bench.shas[40][:12]} Tile by 128\n" in text
    assert f"of 65 commits, {len(bench.asked)} times side by side." in text
    assert all({0, 64} <= set(asked) and len(asked) <= rounds.LIBRARIES for asked in bench.asked)
    assert said[-1].startswith("round ")


def test_what_cannot_be_built_or_is_wrong_is_stepped_over_and_said() -> None:
    found, said = searched(FakeBench(slower(9, 4), broken={3: "does not compile"}, wrong={5: "its results are wrong"}))
    assert found.standing.culprits == (3, 4)
    text = words.timed_text(found)
    assert "(stepped over: does not compile)" in text
    assert "cannot be told apart" in text
    assert f"Stepped over {5:012x}: its results are wrong" in text
    assert sum("is stepped over" in line for line in said) == 2


@pytest.mark.parametrize("fault", ["broken", "wrong"])
@pytest.mark.parametrize(("place", "end"), [(0, "good"), (8, "bad")])
def test_an_end_that_cannot_be_measured_ends_the_search(fault: str, place: int, end: str) -> None:
    with pytest.raises(KernelgateError, match=rf"the {end} end, cannot be measured: it is broken; name another one"):
        searched(FakeBench(slower(9, 4), **{fault: {place: "it is broken"}}))


def test_commits_that_touch_nothing_are_neither_measured_nor_named() -> None:
    bench = FakeBench(slower(9, 4), unchanged=frozenset({1, 2, 3, 5, 6, 7, 8}))
    found, _ = searched(bench)
    assert found.standing.culprits == (4,)
    assert {at for asked in bench.asked for at in asked} == {0, 8}


def test_the_same_library_at_both_ends_is_said_without_measuring() -> None:
    bench = FakeBench([100.0] * 9, libraries=dict.fromkeys(range(9), "a"))
    found, _ = searched(bench)
    assert (found.exit_code, bench.asked) == (2, [])
    assert words.timed_text(found).startswith(f"scale/n: {0:012x} and {8:012x} take the same time: what is built")


def test_ends_that_take_the_same_time_have_no_culprit() -> None:
    found, _ = searched(FakeBench([100.0] * 9))
    assert found.exit_code == 2
    assert "take the same time (" in words.timed_text(found)


def test_what_was_read_of_a_commit_that_turns_out_wrong_counts_no_more() -> None:
    found, _ = searched(FakeBench(slower(5, 2), wrong={3: "its results are wrong"}, wrong_from=2))
    assert 3 in found.search.unmeasurable
    assert [at for read in found.search.processes for at in read if at == 3] == []


def test_two_changes_are_named_both() -> None:
    times = [100.0, 100.0, 105.0, 105.0, 105.0, 102.0, 102.0, 102.0]
    found, _ = searched(FakeBench(times))
    assert found.exit_code == 0
    text = words.timed_text(found)
    assert "more than one commit changed the time" in text
    assert f"+4.99% between {1:012x} and {2:012x}" in text
    assert f"−2.85% between {4:012x} and {5:012x}" in text


def test_what_was_measured_together_counts_no_more_once_processes_take_turns() -> None:
    found, _ = searched(FakeBench(slower(9, 4, pct=5.0), apart=True))
    assert found.search.spread_pct == rounds.APART_PCT
    assert found.standing.culprits == (4,)


def test_where_nothing_in_between_can_be_measured_all_are_named() -> None:
    found, _ = searched(FakeBench(slower(5, 2), broken={1: "b", 2: "b", 3: "b"}))
    assert found.standing.culprits == (1, 2, 3, 4)


def test_json_names_commits_in_full() -> None:
    found, _ = searched(FakeBench(slower(9, 4), broken={7: "does not compile"}))
    content = validated("bisect", shown(words.timed_answer(found)))
    assert content["found"] == "found"
    assert content["culprits"] == [f"{4:012x}{0:028x}"]
    assert content["interval_pct"][0] < content["change_pct"] < content["interval_pct"][1]
    assert set(content["stepped_over"]) <= {f"{7:012x}{0:028x}"}


@pytest.mark.parametrize(
    ("effect", "error", "said"),
    [(0.01, 0.0001, "1.01% slower (0.99 to 1.02%)"), (-0.2, 0.001, "18% faster (18 to 18%)")],
)
def test_a_change_in_words(effect: float, error: float, said: str) -> None:
    assert words.change(effect, error) == said
