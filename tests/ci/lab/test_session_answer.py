"""What the verbs of a session print with --json: one object of the published schema, with the same exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.lab import folder, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Opened, TriedChange
from tests import miniature
from tests.called import EndsWith
from tests.ci.answered import validated
from tests.ci.lab import session_events as made


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel in git; sessions begin, and tries are measured, without a compiler."""
    root = miniature.repository(tmp_path / "checkout", {"csrc/toy.cpp": "1\n"})

    def begin(_: Path, asked: Opened) -> Session:
        return folder.create(root, asked.model_copy(update={"at": folder.now(), "base": "HEAD"}))

    def measured(session: Session, *_: object) -> TriedChange:
        number = 1 + sum(isinstance(event, TriedChange) for event in session.events)
        event = made.tried(number, -8 if number == 1 else 2, head="HEAD").model_copy(update={"at": folder.now()})
        folder.append(session.folder, event)
        return event

    monkeypatch.setattr(trying, "begin", begin)
    monkeypatch.setattr(trying, "run", measured)
    monkeypatch.setattr(trying.cards, "paths", lambda _: ("csrc",))
    monkeypatch.setattr(trying, "_known_cards", lambda *_: None)
    monkeypatch.chdir(root)
    return root


def answered(ends_with: EndsWith, words: Sequence[str], code: int = 0) -> Any:
    """The object that the command printed, alone on standard output."""
    return validated(f"session {words[0]}", ends_with(code, "session", *words, "--json").out)


def test_every_command_answers_what_it_logged_and_wrote_and_what_is_next(checkout: Path, ends_with: EndsWith) -> None:
    def logged(*words: str) -> Any:
        return answered(ends_with, words)["logged"]

    begun = answered(ends_with, ["new", "faster", "--name", "one", "--card", "toy", "--template", "baseline"])
    assert (begun["files"], begun["logged"][0]["name"]) == ([".ci/sessions/one"], "one")
    assert answered(ends_with, ["next"])["next"]["command"] == begun["next"]["command"]
    for gate in ("environment", "build", "correctness", "performance"):
        if gate == "correctness":
            said = ends_with(64, "session", "gate", gate, "--skip", "by hand").err
            assert "correctness cannot be skipped" in said
            folder.append(checkout / ".ci/sessions/one", made.gate("correctness", 3, at=folder.now()))
            continue
        [attempt] = logged("gate", gate, "--skip", "by hand")
        assert (attempt["passed"], attempt["said"]) == (True, "skipped: by hand")
    [tried] = logged("try", "wider", "reuse")
    assert (tried["advised"], tried["gain_pct"]) == ("keep", pytest.approx(8))
    assert logged("keep")[0]["kept"] is True
    logged("try", "wider", "reuse")
    (checkout / "csrc/toy.cpp").write_text("2\n")
    reverted = answered(ends_with, ["revert"])
    assert (reverted["logged"][0]["kept"], reverted["files"]) == (False, [".ci/sessions/one/try-2-reverted.patch"])
    assert (checkout / "csrc/toy.cpp").read_text() == "1\n"
    assert logged("note", "why?", "--kind", "question")[0]["kind"] == "question"
    assert logged("cost", "1.5", "assistant")[0]["usd"] == 1.5
    assert [one["decision"] for one in answered(ends_with, ["status"])["tries"]] == ["kept", "reverted"]
    closed = answered(ends_with, ["close", "--learnt", "much"])
    assert all((checkout / name).exists() for name in closed["files"])
    assert [one["event"] for one in closed["logged"]] == ["note", "closed"]
    assert [one["opened"]["name"] for one in answered(ends_with, ["metrics"])["measured"]] == ["one"]


def test_a_review_is_a_file_that_is_never_written_over(checkout: Path, ends_with: EndsWith) -> None:
    answered(ends_with, ["new", "faster", "--name", "one"])
    assert answered(ends_with, ["review"])["files"] == [".ci/sessions/one/review.md"]
    path = checkout / ".ci/sessions/one/review.md"
    path.write_text("filled in", encoding="utf-8")
    assert "fill it in, or remove it first" in ends_with(64, "session", "review").err
    assert path.read_text() == "filled in"


def test_a_session_whose_report_cannot_be_written_stays_open(checkout: Path, ends_with: EndsWith) -> None:
    answered(ends_with, ["new", "faster", "--name", "one"])
    report = checkout / ".ci/sessions/one/report.md"
    report.mkdir()
    assert "report.md cannot be written" in ends_with(74, "session", "close").err
    report.rmdir()
    assert report in [checkout / name for name in answered(ends_with, ["close"])["files"]]


def test_a_session_whose_money_is_spent_answers_so(checkout: Path, ends_with: EndsWith) -> None:
    answered(ends_with, ["new", "faster", "--name", "one", "--usd", "1"])
    assert answered(ends_with, ["cost", "2", "gpu"], code=4)["stop"] == "cost"
    for words in (["next"], ["status"], ["try", "wider", "reuse"]):
        assert answered(ends_with, words, code=4)["stop"] == "cost", words
    assert not (checkout / ".ci/sessions/one/try-1.patch").exists()


def test_what_became_of_a_pattern_and_what_a_wrong_path_took_are_counted(checkout: Path, ends_with: EndsWith) -> None:
    ends_with(0, "session", "new", "faster", "--name", "one", "--card", "toy")
    said = "it was slower than torch all along"
    for words in (
        ("--pattern", "profile-before-optimise", "--how", "violated", "--minutes", 20),
        ("--pattern", "small-ones-first", "--how", "learnt"),
        ("--pattern", "baseline-first"),
        ("--kind", "mistake", "--minutes", 15),
    ):
        [logged] = answered(ends_with, ["note", said, *map(str, words)])["logged"]
        assert logged["said"] == said
    for words in (("--pattern", "base-line"), ()):
        refused = ends_with(64, "session", "note", said, "--how", "applied", *words).err
        assert "--how learnt, or one of cadence, " in refused or "baseline-first" in refused
    figures = answered(ends_with, ["status"])["figures"]
    assert figures["patterns"] == {
        "applied": ["baseline-first"],
        "learnt": ["small-ones-first"],
        "violated": ["profile-before-optimise"],
    }
    assert figures["minutes_lost"] == 35
    line = next(one for one in ends_with(0, "session", "metrics").out.splitlines() if one.startswith("  one: "))
    assert "1 pattern applied, 1 pattern learnt, 1 pattern violated, 35 min lost" in line
    overall = {one["name"]: one["n"] for one in answered(ends_with, ["metrics"])["overall"]}
    assert overall["time lost on wrong paths"] == overall["patterns learnt a session"] == 0, "it is still open"
    ends_with(0, "session", "gate", "environment", "--skip", "by hand")
    folder.append(checkout / ".ci/sessions/one", made.gate("build", 2, at=folder.now()))
    ends_with(0, "session", "close")
    assert (
        "profile-before-optimise, violated (20 min): it was slower"
        in (checkout / ".ci/sessions/one/report.md").read_text()
    )
    overall = {one["name"]: one["n"] for one in answered(ends_with, ["metrics"])["overall"]}
    assert overall["time lost on wrong paths"] == overall["patterns learnt a session"] == 1
