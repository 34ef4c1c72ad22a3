"""`kernelgate history site`, as it is typed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder
from kernelgate.ci.report import dashboard_write
from tests.ci.history.entries import a_record
from tests.ci.lab import session_events


def git(*words: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *named, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_the_dashboard_is_written_with_the_newest_tag_as_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("STORE", "DATABASE"):
        monkeypatch.delenv(f"KERNELGATE_HISTORY_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "main")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "kernelgate.toml").write_text("[gates]\nregression_pct = 3.0\n")
    for name in ("one", "two"):
        git("commit", "-q", "--allow-empty", "-m", name)
        run = record.Run(base_sha="b" * 40, head_sha=git("rev-parse", "HEAD"), created_at="2026-08-01")
        record.write(a_record(run=run), tmp_path / f"{name}.json")
    folder.create(tmp_path, session_events.opened(name="wider-loads"))
    git("tag", "v7", "HEAD~1")
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    words = ["history", "site", "-o", "out"]
    assert cli.run(words) == 3
    assert "there is no history" in capsys.readouterr().err
    assert cli.run(["history", "add", "one.json", "two.json"]) == 0
    assert cli.run(words) == 0
    assert capsys.readouterr().out.endswith("out/index.html: 1 case\n")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "(v7)" in page
    assert "≈ 0.00%" in page, "both were measured alike, and one of them is the release"
    assert "wider-loads" in (tmp_path / "out" / "sessions.html").read_text()
    assert cli.run([*words, "--release", "v8"]) == 3
    assert "has no commit 'v8'" in capsys.readouterr().err
