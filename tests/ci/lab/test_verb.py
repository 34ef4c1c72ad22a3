"""`kernelgate session page`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.commands import cli
from tests.ci.lab.checkouts import begun


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return begun(tmp_path)


def test_the_page_is_written_and_one_form_must_be_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["session", "page", "-o", "out/page.html"]) == 0
    assert "<title>one: faster</title>" in (checkout / "out/page.html").read_text(encoding="utf-8")
    for words in ([], ["-o", "page.html", "--serve"]):
        assert cli.run(["session", "page", *words]) == 64
        assert "give one of -o FILE" in capsys.readouterr().err


def test_a_broken_log_is_one_sentence(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (checkout / ".ci/sessions/one/log.jsonl").open("a") as file:
        file.write("nonsense\n")
    assert cli.run(["session", "page", "--session", "one", "-o", "page.html"]) == 3
    assert "log.jsonl:2 is no event of a session" in capsys.readouterr().err
    assert not (checkout / "page.html").exists()
