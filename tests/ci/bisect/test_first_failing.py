"""The first commit at which a trial fails, with somebody who builds and runs in a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.measure.bisect import TrialRuns
from kernelgate.ci.bisect import answers
from kernelgate.ci.bisect.answers import FailingAnswer, NotSearched
from kernelgate.ci.bisect.first_failing import FirstFailing
from kernelgate.ci.commands.options import shown
from tests.ci.answered import validated
from tests.ci.bisect.test_rounds import FakeCommits


@dataclass
class FakeTrials(FakeCommits):
    """Commits that fail so often."""

    otherwise: Mapping[int, str] = field(default_factory=dict)
    seed: int = 1
    asked: list[int] = field(default_factory=list)
    name, repeat = "scale/n3", "kernelgate fuzz --seed 1 --case scale/n3"
    trial = SimpleNamespace(run_seed=1)

    def learn(self, times: int) -> TrialRuns:
        failed = self._failed(len(self.of_each) - 1, times)
        return TrialRuns(times, failed, "out[3] is NaN" if failed else None)

    def tried(self, place: int, times: int) -> TrialRuns:
        self.asked.append(place)
        failed = min(1, self._failed(place, times))
        return TrialRuns(times, failed, "out[3] is NaN" if failed else None, self.otherwise.get(place))

    def _failed(self, place: int, times: int) -> int:
        rng = np.random.default_rng((self.seed, place))
        return int((rng.random(times) < self.of_each[place]).sum())


def searched(trials: FakeTrials) -> FailingAnswer:
    return FirstFailing(trials, lambda _: None).run()


def failing(commits: int, culprit: int, share: float = 1.0) -> list[float]:
    return [share * (at >= culprit) for at in range(commits)]


@pytest.mark.parametrize("culprit", [1, 64])
def test_the_first_failing_commit_is_found(culprit: int) -> None:
    trials = FakeTrials(failing(65, culprit))
    found = searched(trials)
    assert (found.exit_code, found.culprits) == (0, (trials.shas[culprit],))
    assert found.chance > 0.99
    assert len(trials.asked) <= 7
    text = answers.text(found)
    assert text.startswith("scale/n3 (seed 1): fails since, probability 99.")
    assert f"\n  {trials.shas[culprit][:12]} Tile by 128\n  out[3] is NaN\n  repeat: kernelgate fuzz" in text


def test_what_fails_sometimes_is_run_until_chance_is_excluded() -> None:
    """A fifth of the runs fail; among 100 searches the culprit is missed as rarely as is said."""
    found = [searched(FakeTrials(failing(33, 20, 0.2), seed=seed)) for seed in range(100)]
    learned = [one for one in found if one.found != "none"]
    right = [one for one in learned if one.culprits == (FakeTrials([0] * 33).shas[20],)]
    assert len(learned) >= 95, "0.8 ** 20 of them do not fail in the first 20 runs"
    assert len(right) >= 0.97 * len(learned)
    assert all(one.passes > 20 for one in learned)


def test_what_cannot_be_tried_is_stepped_over_and_named() -> None:
    otherwise = {5: "it fails in another way: the process hung"}
    trials = FakeTrials(failing(9, 4), broken={3: "does not compile"}, otherwise=otherwise)
    found = searched(trials)
    text = answers.text(found)
    assert "(stepped over: does not compile)" in text
    assert "These cannot be told apart" in text
    said = validated("bisect", shown(found))
    assert said["culprits"] == [trials.shas[3], trials.shas[4]]
    assert (said["found"], said["failed"], said["runs"], said["inside"]) == ("found", 20, 20, None)


def test_commits_that_touch_nothing_are_neither_tried_nor_named() -> None:
    trials = FakeTrials(failing(9, 4), unchanged=frozenset({1, 2, 3, 5, 6, 8}), libraries={4: "x", 7: "x"})
    assert searched(trials).culprits == (trials.shas[4],)
    assert set(trials.asked) <= {0, 4}
    found = searched(FakeTrials(failing(5, 2), unchanged=frozenset(range(1, 5))))
    assert (found.exit_code, found.culprits) == (3, ())
    assert "no commit touches what the kernel is built from" in answers.text(found)


def test_ends_that_say_nothing() -> None:
    assert searched(FakeTrials([0.0] * 5)).exit_code == 2
    for trials, why in (
        (FakeTrials(failing(5, 0)), "the good end, fails as well: name an older one"),
        (FakeTrials(failing(5, 2), broken={0: "it has no card s"}), "the good end, cannot be tried: it has no card s"),
        (FakeTrials(failing(5, 2), broken={4: "does not compile"}), "the bad end, cannot be tried: does not compile"),
    ):
        with pytest.raises(KernelgateError, match=why):
            searched(trials)


def test_a_search_in_a_submodule_is_said_with_the_commit_that_moves_it() -> None:
    outer = searched(FakeTrials(failing(3, 1)))
    inner = searched(FakeTrials(failing(9, 8))).model_copy(update={"submodule": "third_party/inner"})
    text = answers.text(outer.model_copy(update={"inside": inner}))
    assert "\nIt moves the submodule third_party/inner:\n  scale/n3 (seed 1): fails since" in text
    assert "\n    000000000008 Tile by 128\n" in text
    why = outer.model_copy(update={"inside": NotSearched(why="its history is not whole")})
    assert "not known: its history is not whole" in answers.text(why)
    assert validated("bisect", shown(why))["inside"] == {"why": "its history is not whole"}
