"""What the verbs make of their words, where it is not the business of one module alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import record, verbs
from bench.errors import UsageError

HEAD = record.Subject(head_sha="a" * 40)


def test_fuzz_results_are_taken_over_from_a_record_of_the_same_head(tmp_path: Path) -> None:
    done = record.Fuzz(status="passed", seed=7)
    record.write(record.RunRecord(subject=HEAD, fuzz=done), tmp_path / "run.json")
    assert verbs.fuzz_results(tmp_path / "run.json", HEAD) == done


def test_fuzz_results_of_another_head_are_refused(tmp_path: Path) -> None:
    record.write(record.RunRecord(subject=record.Subject(head_sha="b" * 40)), tmp_path / "run.json")
    with pytest.raises(UsageError, match="is about commit bbbb"):
        verbs.fuzz_results(tmp_path / "run.json", HEAD)
