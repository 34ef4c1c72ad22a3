"""From a record to its entry, and from the index to what the judge is told of a record's cases."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelgate.bench.record import Calls, CaseKey, Run, RunRecord
from kernelgate.ci.history import database, index, judging, past
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry, PointEntry
from kernelgate.ci.history.past import AskedCases
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.pipeline import prior
from kernelgate.ci.policy.policy import DecidingNumber, Gates, Measure, Policy, every_constant
from kernelgate.ci.report.gpu import NightsByCase
from tests import runs
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import BASE, H200, HEAD, a_record, an_entry, put, write
from tests.ci.records import case, noise
from tests.test_architecture import imports, modules


def test_an_entry_says_what_the_verdict_says() -> None:
    made = a_record(change=0.02, processes=4)
    (case,) = judging.judged("n", made, QUICK).cases
    (comparison,) = case.comparisons
    (verdict,) = judge(made, QUICK).cases
    assert (comparison.base, comparison.head, comparison.status) == (BASE, HEAD, verdict.status.name.lower())
    assert 100 * math.expm1(comparison.effect) == pytest.approx(verdict.change_pct)
    assert comparison.interval_pct == verdict.interval_pct
    points = {one.side: one for one in case.points}
    assert points["head"].us == pytest.approx(102, rel=1e-3)
    assert (points["base"].commit, points["head"].commit) == (BASE, HEAD)
    assert (points["head"].processes, points["head"].rounds) == (4, 80)


def test_a_commit_that_ran_beside_is_compared_round_by_round() -> None:
    """Processes jump by 10%, and the ratio of each does not show it."""
    rng = np.random.default_rng(1)
    pinned = "c" * 40
    processes = []
    for level in (100, 110, 121):
        times = level * np.exp(rng.normal(0, 0.001, 40))
        processes.append(runs.process({"head": times * 1.03, f"commit:{pinned}": times}))
    made = runs.run_record((runs.case("one", processes),), H200, run=Run(head_sha=HEAD))
    (case,) = judging.judged("n", made, QUICK).cases
    (comparison,) = case.comparisons
    assert (comparison.base, comparison.head, comparison.status) == (pinned, HEAD, None)
    assert 100 * math.expm1(comparison.effect) == pytest.approx(3.0, abs=1e-6)
    assert comparison.spread_pct == pytest.approx(0, abs=1e-6)
    assert comparison.noise_pct == pytest.approx(0, abs=1e-6)
    assert {one.side: one.commit for one in case.points} == {"head": HEAD, f"commit:{pinned}": pinned}


def test_a_pinned_commit_whose_results_are_wrong_is_compared_with_nothing() -> None:
    calls = {"commit:" + "c" * 40: Calls(made=3, compared=3, failed=1)}
    timed = runs.process({"head": (100.0,) * 3, "commit:" + "c" * 40: (90.0,) * 3}, calls=calls)
    made = runs.run_record((runs.case("one", (timed,)),), H200, run=Run(head_sha=HEAD))
    (case,) = judging.judged("n", made, QUICK).cases
    assert case.comparisons == ()


def test_times_that_nobody_should_believe_say_why() -> None:
    rng = np.random.default_rng(1)
    cases = (case(*noise(rng, processes=3), "fine"), case(*noise(rng, processes=1), "alone"))
    fine, alone = judging.judged("n", runs.run_record(cases, H200), QUICK).cases
    assert (fine.finding, alone.finding) == (None, "1 process of base and head with at least 20 rounds; it takes 2")
    assert [one.error for one in alone.points] == [None, None]


def test_the_rules_are_what_a_verdict_depends_on() -> None:
    """All sections that judging reads count, and no other: a change of what is measured judges no record again."""
    read: set[str] = set()

    class Watched(Policy):
        def __getattribute__(self, name: str) -> object:
            if name in Policy.model_fields:
                read.add(name)
            return super().__getattribute__(name)

    watched = Watched()
    read.clear()  # of what made it valid
    judge(a_record(processes=4), watched)
    assert read <= judging.JUDGING
    assert judging.rules_of(Policy(gates=Gates(margin_pct=0.5))) != judging.rules_of(Policy())
    assert judging.rules_of(Policy(measure=Measure(skip_labels=()))) == judging.rules_of(Policy())


def computed_by(module: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """This module of ci/judge, and those that it imports, directly or not."""
    known |= {module}
    for name in imports(modules()[f"ci.judge.{module}"]):
        package, _, other = name.rpartition(".")
        if package == "kernelgate.ci.judge" and other not in known:
            known = computed_by(other, known)
    return known


@pytest.mark.parametrize(("module", "counts"), [("prior", True), ("static", False), ("sentences", False)])
def test_only_a_number_that_verdicts_are_computed_from_judges_the_history_again(
    module: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, numbers = judging.rules_of(Policy()), every_constant()
    added = DecidingNumber(name="ROUNDING", value=0.01, source=f"ci/judge/{module}.py", reason="")
    monkeypatch.setattr(judging, "every_constant", lambda: (*numbers, added))
    assert (judging.rules_of(Policy()) != rules) is counts
    assert computed_by("verdict") == judging.JUDGES | {"baseline_age", "sentences"}, "the last two only word it"


KEY = CaseKey("norm", "one")
PLACE = ("NVIDIA H200", KEY)
LATER = "2026-09-01T00:00:00Z"


def compared(day: int, spread_pct: float = 0.05, processes: int = 3, us: float = 100.0, **parts: Any) -> Entry:
    """A comparison of one case, whose base took so long."""
    change = ComparisonEntry(
        base=BASE, head=HEAD, effect=0.02, error=0.001, spread_pct=spread_pct, noise_pct=0.01, processes=processes
    )
    point = PointEntry(side="base", commit=BASE, us=us, processes=processes, rounds=60)
    cases = (CaseEntry(card=KEY.card, case=KEY.id, points=(point,), comparisons=(change,)),)
    return an_entry(f"{day} {parts}", day=day, **{"cases": cases, **parts})


def known(index_at: Database, *keys: CaseKey, **parts: Any) -> History:
    wanted = {"gpu": "NVIDIA H200", "repository": "", "before": LATER, **parts}
    return past.of_database(index_at, AskedCases(keys=frozenset(keys or (KEY,)), **wanted))


@pytest.mark.parametrize(
    "other",
    [
        {"gpu": "NVIDIA L4"},
        {"keys": frozenset({CaseKey("norm", "on")})},
        {"keys": frozenset({CaseKey("%", "one")})},
        {"repository": "somebody/else"},
    ],
)
def test_a_history_is_of_one_kind_of_gpu_one_case_and_one_repository(index_at: Database, other: dict[str, Any]) -> None:
    put(index_at, compared(1, run=Run(repository="o/r", created_at="2026-08-01")))
    wanted = {"gpu": "NVIDIA H200", "repository": "o/r", "before": None, "keys": frozenset({KEY})}
    assert past.of_database(index_at, AskedCases(**wanted)).spreads
    assert past.of_database(index_at, AskedCases(**{**wanted, **other})) == NO_HISTORY


def test_a_new_driver_does_not_forget_and_another_card_does_not_push_out(index_at: Database) -> None:
    newer = H200.model_copy(update={"device": H200.device.model_copy(update={"driver": "600.1"})})
    put(index_at, compared(1), compared(2, environment=newer))
    others = [an_entry(f"other {n}", day=3, cases=(CaseEntry(card="normal", case="one"),)) for n in range(120)]
    put(index_at, *others)
    assert known(index_at).spreads[PLACE].comparisons == 2


def test_the_history_is_read_from_the_environment_alone(
    index_at: Database, where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index_at, *(compared(day) for day in (1, 2, 3)))
    index_at.engine.dispose()
    record, said = a_record(day=20), []
    record = record.model_copy(update={"cases": tuple(one.model_copy(update={"card": "norm"}) for one in record.cases)})
    for name in (prior.DATABASE, prior.STORE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # a checkout that brings a history of its own
    (tmp_path / ".kernelgate").mkdir()
    (tmp_path / ".kernelgate" / "history").symlink_to(tmp_path)
    assert prior.past(said.append)(record) == NO_HISTORY
    monkeypatch.setenv(prior.DATABASE, str(where))
    assert prior.past(said.append)(record).spreads[PLACE].comparisons == 3
    assert said == []


def _torn(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)


def _older(path: Path) -> None:
    database.at(path).engine.dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE kernelgate_history SET version_num = '0001'")


@pytest.mark.parametrize("broken", [Path.mkdir, lambda _: None, _torn, _older], ids=["folder", "none", "torn", "older"])
def test_a_broken_history_is_said_once_and_stops_nothing(
    broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, said = tmp_path / "index of mine.sqlite", []
    broken(index)
    before = index.read_bytes() if index.is_file() else None
    monkeypatch.setenv(prior.DATABASE, str(index))
    ask = prior.past(said.append)
    assert [ask(a_record()), ask(a_record(day=2))] == [NO_HISTORY, NO_HISTORY]
    (one,) = said
    assert one.endswith("; judged without a history, which takes more processes")
    assert index.name in one
    assert (index.read_bytes() if index.is_file() else None) == before


PULL = runs.run_record((runs.case("one", card="norm"), runs.case("two", card="norm")), H200, run=Run(repository=None))
SITE = "https://octo-org.github.io/kernels/history/"


def sha(number: int) -> str:
    return f"{number + 1:040x}"


def a_time(number: int, us: float, finding: str | None = None) -> Entry:
    point = PointEntry(side="head", commit=sha(number), us=us, processes=5, rounds=500)
    one = CaseEntry(card="norm", case="one", points=(point,), finding=finding)
    made = Run(created_at=f"2026-08-{number % 28 + 1:02}T00:00:00Z", head_sha=sha(number))
    return an_entry(f"{number}", cases=(one,)).model_copy(update={"run": made})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """30 commits on the default branch, a pull request's between them, and one that nobody should believe."""
    opened = database.at(tmp_path / "index.sqlite")
    times = [a_time(number, 100.0 + number) for number in range(30)]
    put(opened, *times, a_time(40, 900.0), a_time(30, 800.0, "throttled"))
    write(opened, index.place, [sha(number) for number in range(31)])
    opened.engine.dispose()
    return tmp_path / "index.sqlite"


def shown(monkeypatch: pytest.MonkeyPatch, said: list[str], record: RunRecord = PULL, **named: str) -> NightsByCase:
    for name in (prior.DATABASE, prior.SITE):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv({"DATABASE": prior.DATABASE, "SITE": prior.SITE}[name], value)
    return prior.nights(said.append)(record)


def test_the_last_twenty_of_the_default_branch_and_the_page(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, [], DATABASE=str(file), SITE=SITE)
    assert set(found) == {KEY}
    assert found[KEY].times_us == tuple(100.0 + number for number in range(10, 30))
    assert (found[KEY].first_day, found[KEY].last_day) == ("2026-08-11", "2026-08-02")
    assert (found[KEY].page or "").startswith(f"{SITE}series/norm-one-nvidia-h200-")


def test_what_cannot_be_read_is_said_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert shown(monkeypatch, said) == shown(monkeypatch, said, DATABASE=str(tmp_path / "none")) == {}
    assert said == []
    (tmp_path / "broken").write_bytes(b"SQLite format 3\0 and no more")
    assert shown(monkeypatch, said, DATABASE=str(tmp_path / "broken")) == {}
    assert len(said) == 1
    assert "the history is not shown" in said[0]
