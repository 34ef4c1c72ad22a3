"""Baselines that are none, and what is said of them: nothing is judged against what cannot be read or does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.commands import cli

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "baseline_h200.json"
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"

Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> str:
    content = json.loads(STORED.read_text(encoding="utf-8"))
    change(content)
    return json.dumps(content)


BROKEN: dict[str, Callable[[], str | bytes]] = {
    "empty": lambda: "",
    "half a file": lambda: STORED.read_text(encoding="utf-8")[:1000],
    "binary": lambda: bytes(range(256)),
    "UTF-16": lambda: STORED.read_text(encoding="utf-8").encode("utf-16"),
    "a page of GitHub's": lambda: "<!DOCTYPE html><title>Unicorn!</title>",
    "a pointer of git's LFS": lambda: "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
    "with marks of a merge": lambda: "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> topic\n",
    "of another schema": lambda: changed(lambda content: content.update(schema="kernelgate.run/9")),
    "an odd key": lambda: changed(lambda content: content.update(odd=1)),
    "a time below zero": lambda: changed(
        lambda content: content["processes"][0]["timings"][0]["samples_us"].update(head=[-1.0])
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_baseline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    text = BROKEN[kind]()
    path = tmp_path / "baseline.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for verb in ("compare", "report") if kind == "empty" else ("compare",):
        assert cli.run([verb, str(RECORD), "--baseline", str(path)]) == 3
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"kernelgate: {path} is not a kernelgate.run/2 record: ")
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    path = tmp_path if kind == "a folder" else tmp_path / "missing.json"
    assert cli.run(["compare", str(RECORD), "--baseline", str(path)]) == 3
    assert capsys.readouterr().err.startswith(f"kernelgate: {path}: cannot be read: ")


def test_a_baseline_of_another_gpu_judges_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = json.loads(STORED.read_text(encoding="utf-8"))
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(other).replace("H200", "L4"), encoding="utf-8")
    assert cli.run(["compare", str(RECORD), "--baseline", str(path)]) == 3
    assert "L4" in capsys.readouterr().out


def test_a_baseline_without_these_cases_judges_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "baseline.json"
    path.write_text("{}", encoding="utf-8")
    assert cli.run(["compare", str(RECORD), "--baseline", str(path)]) == 3
    assert "Cannot be judged" in capsys.readouterr().out
