"""What the verbs of a session print with --json: one object of the published schema, with the same exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import beginning, folder, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Opened, TriedChange
from tests import miniature
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

    monkeypatch.setattr(beginning, "begin", begin)
    monkeypatch.setattr(trying, "run", measured)
    monkeypatch.setattr(trying, "sources", lambda *_: ("csrc",))
    monkeypatch.chdir(root)
    return root


def answered(capsys: pytest.CaptureFixture[str], words: Sequence[str], code: int = 0) -> Any:
    """The object that the verb printed, alone on standard output."""
    assert cli.run(["session", *words, "--json"]) == code, capsys.readouterr().err
    name = "step index" if words[0] == "review" else f"session {words[0]}"
    return validated(name, capsys.readouterr().out)


def test_every_verb_answers_what_its_schema_says(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun = answered(capsys, ["new", "faster", "--name", "one", "--card", "toy", "--template", "baseline"])
    assert begun["folder"] == ".ci/sessions/one"
    assert answered(capsys, ["next"])["command"] == begun["command"]
    for gate in ("environment", "build", "correctness", "performance"):
        gated = answered(capsys, ["gate", gate, "--skip", "by hand"])
        assert (gated["passed"], gated["said"]) == (True, [f"{gate}: skipped: by hand"])
    assert answered(capsys, ["try", "wider", "reuse"])["advised"] == "keep"
    assert answered(capsys, ["keep"])["kept"] is True
    answered(capsys, ["try", "wider", "reuse"])
    (checkout / "csrc/toy.cpp").write_text("2\n")
    reverted = answered(capsys, ["revert"])
    assert (reverted["kept"], reverted["patch"]) == (False, ".ci/sessions/one/try-2-reverted.patch")
    assert (checkout / "csrc/toy.cpp").read_text() == "1\n"
    assert answered(capsys, ["note", "why?", "--kind", "question"])["kind"] == "question"
    assert answered(capsys, ["cost", "1.5", "assistant"])["usd"] == 1.5
    assert [one["number"] for one in answered(capsys, ["status"])["tries"]] == [1, 2]
    assert "why?" in answered(capsys, ["submit", "--dry-run"])["text"]
    page = answered(capsys, ["page", "-o", "page.html"])
    assert (page["file"], (checkout / "page.html").exists()) == ("page.html", True)
    closed = answered(capsys, ["close", "--learnt", "much"])
    assert all((checkout / name).exists() for name in closed["files"])
    assert [one["name"] for one in answered(capsys, ["metrics"])["measured"]] == ["one"]


def test_a_session_whose_money_is_spent_answers_so(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(capsys, ["new", "faster", "--name", "one", "--usd", "1"])
    assert answered(capsys, ["cost", "2", "gpu"], code=4)["stop"] == "cost"
    for words in (["next"], ["status"], ["try", "wider", "reuse"]):
        assert answered(capsys, words, code=4)["stop"] == "cost", words
    assert not (checkout / ".ci/sessions/one/try-1.patch").exists()


@pytest.mark.usefixtures("checkout")
def test_a_name_that_is_no_text_is_still_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """A file may be named in another encoding than the terminal's."""
    answered(capsys, ["new", "faster", "--name", "one"])
    assert answered(capsys, ["page", "-o", "caf\udce9.html"])["file"] == "caf\udce9.html"
