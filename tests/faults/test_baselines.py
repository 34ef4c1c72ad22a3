"""Baselines that are none, and what is said of them: nothing is judged against what cannot be read or does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.called import EndsWith

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "baseline_h200.json"
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"

BROKEN = {
    "a pointer of git's LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
    "of another schema": STORED.read_bytes().replace(b"kernelgate.run/2", b"kernelgate.run/9"),
}
"""What else may be wrong with a record, tests/faults/test_records.py tries."""


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_baseline_is_named(tmp_path: Path, ends_with: EndsWith, kind: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(BROKEN[kind])
    for verb in ("compare", "report"):
        printed = ends_with(3, verb, RECORD, "--baseline", path)
        assert printed.out == ""
        assert printed.err.startswith(f"kernelgate: {path} is not a kernelgate.run/2 record: ")
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path, ends_with: EndsWith, kind: str) -> None:
    path = tmp_path if kind == "a folder" else tmp_path / "missing.json"
    assert ends_with(3, "compare", RECORD, "--baseline", path).err.startswith(f"kernelgate: {path}: cannot be read: ")


def test_a_baseline_of_another_gpu_judges_nothing(tmp_path: Path, ends_with: EndsWith) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(STORED.read_bytes().replace(b"H200", b"L4"))
    assert "L4" in ends_with(3, "compare", RECORD, "--baseline", path).out


def test_a_baseline_without_these_cases_judges_nothing(tmp_path: Path, ends_with: EndsWith) -> None:
    path = tmp_path / "baseline.json"
    path.write_text("{}", encoding="utf-8")
    assert "Cannot be judged" in ends_with(3, "compare", RECORD, "--baseline", path).out
