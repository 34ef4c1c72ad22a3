"""What past comparisons tell: learnt from records, kept in a file, and believed within limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kernelgate.bench import record
from kernelgate.bench.record import CaseKey, Device, Run, RunRecord
from kernelgate.ci.cli import cli
from kernelgate.ci.judge import history
from kernelgate.ci.judge.early_stop import undecided
from kernelgate.ci.judge.history import History, HistoryError, known_spread, learned
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.spread import KnownSpread
from kernelgate.ci.judge.verdict import Direction, judge
from tests.ci.records import case, heads, noise
from tests.runs import on, run_record

POLICY = Policy()
RULES = POLICY.spread
L4 = Device(name="NVIDIA L4")
KEY = CaseKey("", "one")
QUIET = KnownSpread(spread_pct=0.03, noise_pct=0.01, df=8, comparisons=8, last_seen="2026-08-01")


def made(changes_pct: Sequence[float], created: str | None = None, role: str = "paired") -> RunRecord:
    """A record whose processes change by so much."""
    rng = np.random.default_rng(3)
    base, _ = noise(rng, processes=len(changes_pct), spread=0.001)
    changes = [(1 + pct / 100) * np.exp(rng.normal(0, 2e-5, len(base[0]))) for pct in changes_pct]
    head = [samples * change for samples, change in zip(base, changes, strict=True)]
    return run_record((case(base, head, role=role),), on("NVIDIA L4"), run=Run(created_at=created))  # type: ignore[arg-type]


def of_one(known: KnownSpread) -> History:
    return History({("NVIDIA L4", KEY): known})


def only(found: History) -> KnownSpread:
    (one,) = found.spreads.values()
    return one


# ---- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed_pct", [0.0, 5.0, -30.0])
def test_changed_code_tells_the_spread_as_identical_code_does(changed_pct: float) -> None:
    one = only(learned(History(), made([changed_pct + scatter for scatter in (-0.1, 0.0, 0.1)], "2026-08-01"), POLICY))
    assert one.spread_pct == pytest.approx(0.1 / (1 + changed_pct / 100), rel=0.02)
    assert (one.df, one.comparisons, one.last_seen) == (2, 1, "2026-08-01")


def test_mean_squares_are_weighted_and_the_past_fades() -> None:
    old = KnownSpread(spread_pct=0.3, noise_pct=0.0, df=10, comparisons=20, last_seen="2026-08-01")
    one = only(learned(of_one(old), made([-0.1, 0.0, 0.1], "2026-08-02"), POLICY))
    assert one.df == RULES.history_memory_df
    assert one.spread_pct == pytest.approx(np.sqrt((8 * 0.3**2 + 2 * 0.1**2) / 10), rel=0.02)
    assert (one.comparisons, one.last_seen) == (21, "2026-08-02")


def test_a_record_is_learnt_once() -> None:
    first = learned(History(), made([0.0, 0.1], "2026-08-01"), POLICY)
    assert learned(first, made([0.0, 0.1], "2026-08-01"), POLICY) == first
    assert learned(first, made([0.0, 0.1], "2026-08-02"), POLICY) != first


def test_a_process_that_stands_alone_is_learnt_too() -> None:
    assert only(learned(History(), made([0.0, 0.0, 0.0, 0.0, 2.0]), POLICY)).spread_pct > 0.8


@pytest.mark.parametrize(
    "told",
    [heads([np.full(30, 9.0)] * 3), made([0.0, 0.1], role="block"), run_record()],
    ids=["alone", "block", "none"],
)
def test_what_is_no_paired_comparison_tells_nothing(told: RunRecord) -> None:
    assert learned(History(), told, POLICY) == History()


# ---- believing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("df", "believed"), [(RULES.history_df - 0.1, False), (RULES.history_df, True)])
def test_a_history_counts_once_there_is_enough_of_it(df: float, believed: bool) -> None:
    known = QUIET.model_copy(update={"df": df})
    assert known_spread(of_one(known), L4, KEY, RULES) == (known if believed else None)


def test_a_history_is_of_one_kind_of_gpu_and_of_one_case() -> None:
    assert known_spread(of_one(QUIET), Device(name="NVIDIA H200"), KEY, RULES) is None
    assert known_spread(of_one(QUIET), Device(), KEY, RULES) is None
    assert known_spread(of_one(QUIET), L4, CaseKey("norm", "one"), RULES) is None


def test_with_a_history_two_processes_are_enough_and_the_verdict_says_why() -> None:
    two = made([0.0, 0.02])
    assert undecided(two, POLICY) == {KEY}
    assert undecided(two, POLICY, of_one(QUIET)) == frozenset()
    (one,) = judge(two, POLICY, history=of_one(QUIET)).cases
    said = [finding.message for finding in one.findings if finding.code == "known_spread"]
    assert said == ["the spread between processes is known from 8 earlier comparisons: 0.03%"]
    (without,) = judge(two, POLICY).cases
    assert not [finding for finding in without.findings if finding.code == "known_spread"]


def test_with_a_history_two_processes_show_a_direction() -> None:
    two = made([2.0, 2.02])
    assert judge(two, POLICY).cases[0].direction is Direction.NONE
    assert judge(two, POLICY, history=of_one(QUIET)).cases[0].direction is Direction.SLOWER


def test_a_noisy_history_makes_no_process_odd() -> None:
    """What scatters as it always did is not named, and takes as many processes as it takes."""
    noisy = of_one(QUIET.model_copy(update={"spread_pct": 0.4}))
    apart = made([0.0, 0.5, -0.4])
    assert [finding.code for finding in judge(apart, POLICY).cases[0].findings] == ["processes_disagree"]
    assert [finding.code for finding in judge(apart, POLICY, history=noisy).cases[0].findings] == ["known_spread"]


# ---- the file --------------------------------------------------------------------------------------------------------


def test_the_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / ".ci" / "spreads.json"
    kept = History({("NVIDIA L4", CaseKey("é", "a/1")): QUIET, ("NVIDIA H200", KEY): QUIET})
    history.write(kept, path)
    assert history.read(path) == kept
    assert len(path.read_text(encoding="utf-8").splitlines()) == 4, "one case a line"


def holding(**wrong: object) -> str:
    """A file with one row, of which something is wrong."""
    row = {"gpu": "g", "card": "", "case": "x", "known": QUIET.model_dump() | wrong}
    return json.dumps({"schema": "kernelgate.spreads/1", "spreads": [row]})


BROKEN = {
    "empty": "",
    "a list": "[]",
    "a number": "3",
    "half a file": "{",
    "of another schema": '{"schema": "kernelgate.spreads/2", "spreads": []}',
    "without spreads": '{"schema": "kernelgate.spreads/1"}',
    "5,000 brackets": "[" * 5000,
    "5,000 digits": "1" * 5000,
    "a spread below zero": holding(spread_pct=-1),
    "a spread beyond belief": holding(spread_pct=1e9),
    "an infinite spread": holding(spread_pct=1e999),
    "a spread that is true": holding(spread_pct=True),
    "a noise in words": holding(noise_pct="62.1"),
    "no degrees of freedom": holding(df=0),
    "degrees of freedom in words": holding(df="many"),
    "an odd key": holding(odd=1),
    "no comparisons": holding(comparisons=0),
    "half a comparison": holding(comparisons=1.5),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named_and_stops_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spreads.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError, match=r"spreads\.json does not hold spreads: "):
        history.read(path)
    said: list[str] = []
    assert history.load(said.append, path) == History()
    assert len(said) == 1
    assert said[0].endswith("judged without a history, which takes more processes")


def test_processes_that_scatter_without_bounds_can_be_learnt(tmp_path: Path) -> None:
    history.write(learned(History(), made([-90.0, 1e6], "2026-08-01"), POLICY), tmp_path / "spreads.json")
    assert only(history.read(tmp_path / "spreads.json")).spread_pct == history.MOST_PCT


def test_a_missing_file_is_no_history_and_no_news(tmp_path: Path) -> None:
    said: list[str] = []
    assert history.load(said.append, tmp_path / "spreads.json") == History()
    assert said == []


# ---- the verbs -------------------------------------------------------------------------------------------------------


def test_records_are_learnt_into_the_file_and_used_by_the_next_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = []
    for day in range(1, 9):
        path = tmp_path / f"run{day}.json"
        record.write(made([0.0, 0.01 * day], f"2026-08-0{day}"), path)
        paths.append(str(path))
    before = CliRunner().invoke(cli, ["compare", "--details", paths[0]])
    assert "earlier comparison" not in before.output
    done = CliRunner().invoke(cli, ["spreads", *paths])
    assert done.output.strip() == ".ci/spreads.json: 1 case"
    assert only(history.read(tmp_path / ".ci" / "spreads.json")).comparisons == 8
    after = CliRunner().invoke(cli, ["compare", "--details", paths[0]])
    assert "known from 8 earlier comparisons" in " ".join(after.output.split())
