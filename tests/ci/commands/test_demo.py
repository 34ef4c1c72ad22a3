"""`kernelgate demo` outside of a clone; tests/demo/test_demo.py runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.system.interpreter import ROOT
from kernelgate.ci.commands import cli, demo


def test_without_a_clone_it_says_where_the_demo_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    assert cli.run(["demo"]) == 64
    assert "clone it, run `make env` there, then `make demo`" in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 1])
def test_in_a_clone_it_ends_as_the_demo_does(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    ran: list[object] = []

    def run(words: list[str], cwd: Path, check: bool) -> subprocess.CompletedProcess[str]:
        ran.append((words[1:], cwd, check))
        return subprocess.CompletedProcess(words, code)

    monkeypatch.setattr(demo.subprocess, "run", run)
    assert cli.run(["demo"]) == code
    assert ran == [(["-m", "tests.demo"], ROOT, False)]
