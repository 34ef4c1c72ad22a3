"""Baselines that are none, and what is said of them: nothing is judged against what cannot be read or does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.commands import cli

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "baseline_h200.json"
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"

BROKEN = {
    "a pointer of git's LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
    "of another schema": STORED.read_bytes().replace(b"kernelgate.run/2", b"kernelgate.run/9"),
}
"""What else may be wrong with a record, tests/faults/test_records.py tries."""


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_baseline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(BROKEN[kind])
    for verb in ("compare", "report"):
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
    path = tmp_path / "baseline.json"
    path.write_bytes(STORED.read_bytes().replace(b"H200", b"L4"))
    assert cli.run(["compare", str(RECORD), "--baseline", str(path)]) == 3
    assert "L4" in capsys.readouterr().out


def test_a_baseline_without_these_cases_judges_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "baseline.json"
    path.write_text("{}", encoding="utf-8")
    assert cli.run(["compare", str(RECORD), "--baseline", str(path)]) == 3
    assert "Cannot be judged" in capsys.readouterr().out
