"""What a report shows of the past comes from the index that its own environment names, and stops nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.record import CaseKey, Run, RunRecord
from kernelgate.ci.history import database, index
from kernelgate.ci.history.entry import CaseEntry, Entry, PointEntry
from kernelgate.ci.pipeline import prior
from kernelgate.ci.report.gpu import NightsByCase
from tests.ci.history.entries import H200, an_entry
from tests.runs import case, run_record

KEY = CaseKey("norm", "one")
PULL = run_record((case("one", card="norm"), case("two", card="norm")), H200, run=Run(repository=None))
SITE = "https://octo-org.github.io/kernels/history/"


def sha(number: int) -> str:
    return f"{number + 1:040x}"


def measured(number: int, us: float, finding: str | None = None) -> Entry:
    point = PointEntry(side="head", commit=sha(number), us=us, processes=5, rounds=500)
    one = CaseEntry(card="norm", case="one", points=(point,), finding=finding)
    made = Run(created_at=f"2026-08-{number % 28 + 1:02}T00:00:00Z", head_sha=sha(number))
    return an_entry(f"{number}", cases=(one,)).model_copy(update={"run": made})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """30 commits on the default branch, a pull request's between them, and one that nobody should believe."""
    opened = database.at(tmp_path / "index.sqlite")
    with database.writing(opened) as connection:
        for number in range(30):
            index.add(connection, measured(number, 100.0 + number))
        index.add(connection, measured(40, 900.0))
        index.add(connection, measured(30, 800.0, "throttled"))
        index.place(connection, [sha(number) for number in range(31)])
    opened.engine.dispose()
    return tmp_path / "index.sqlite"


def known(monkeypatch: pytest.MonkeyPatch, said: list[str], record: RunRecord = PULL, **named: str) -> NightsByCase:
    for name in (prior.DATABASE, prior.SITE):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv({"DATABASE": prior.DATABASE, "SITE": prior.SITE}[name], value)
    return prior.nights(said.append)(record)


def test_the_last_twenty_of_the_default_branch_and_the_page(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = known(monkeypatch, [], DATABASE=str(file), SITE=SITE)
    assert set(found) == {KEY}
    assert found[KEY].times_us == tuple(100.0 + number for number in range(10, 30))
    assert (found[KEY].first_day, found[KEY].last_day) == ("2026-08-11", "2026-08-02")
    assert (found[KEY].page or "").startswith(f"{SITE}series/norm-one-nvidia-h200-")


def test_without_a_dashboard_there_is_no_link(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for site in ("", "javascript:alert(1)"):
        assert known(monkeypatch, [], DATABASE=str(file), SITE=site)[KEY].page is None


def test_what_cannot_be_read_is_said_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert known(monkeypatch, said) == known(monkeypatch, said, DATABASE=str(tmp_path / "none")) == {}
    assert said == []
    (tmp_path / "broken").write_bytes(b"SQLite format 3\0 and no more")
    assert known(monkeypatch, said, DATABASE=str(tmp_path / "broken")) == {}
    assert len(said) == 1
    assert "the history is not shown" in said[0]
