"""The run record: what is accepted, what is refused and how, and that it survives a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.errors import RecordError

MINIMAL = {
    "schema": "kernelgate.run/1",
    "cases": [{"id": "anything", "launches": [{"samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5]}}]}],
}


def changed(**changes: object) -> str:
    return json.dumps({**MINIMAL, **changes})


def test_a_record_survives_the_round_trip() -> None:
    first = record.from_json(json.dumps(MINIMAL))
    assert first.cases[0].launches[0].samples_us["head"] == (1.5, 2.5)
    assert record.from_json(record.to_json(first)) == first


def test_what_a_producer_cannot_know_may_be_null() -> None:
    known = record.from_json(json.dumps(MINIMAL))
    unknown = record.from_json(
        changed(
            subject=None,
            environment={"device": None, "torch": None},
            build=[],
            fuzz=None,
            cases=[
                {
                    "id": "anything",
                    "params": None,
                    "work": {"flops": None, "bytes": None},
                    "launches": [
                        {
                            "order": "interleaved",
                            "samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5], "oracle": None},
                            "inner_repeats": None,
                            "telemetry": {"sm_mhz": None, "throttle_reasons": None},
                        }
                    ],
                }
            ],
        )
    )
    assert unknown.cases[0].launches[0].samples_us == known.cases[0].launches[0].samples_us
    assert unknown.environment == known.environment


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "Invalid JSON"),
        ("[]", "the file"),
        (changed(schema="kernelgate.run/2"), "schema"),
        (changed(surprise=1), "surprise"),
        ('{"schema":"kernelgate.run/1","cases":[{"id":"x","launches":[{"samples_us":{"head":[NaN]}}]}]}', "head.0"),
        (
            '{"schema":"kernelgate.run/1","cases":[{"id":"x","launches":[{"samples_us":{"head":[Infinity]}}]}]}',
            "head.0",
        ),
        ('{"schema":"kernelgate.run/1","cases":[{"id":"x","launches":[{"samples_us":{"head":[-1.0]}}]}]}', "head.0"),
        (changed(cases=[{"id": "x", "launches": [{"samples_us": {"base": [1], "head": [1, 2]}}]}]), "one length"),
        (changed(cases=[{"id": "x"}, {"id": "x"}]), "x"),
    ],
)
def test_a_broken_record_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(RecordError, match=named):
        record.from_json(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"missing\.json: cannot be read"):
        record.read(tmp_path / "missing.json")


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    old = record.from_json(json.dumps(MINIMAL))
    record.write(old, path)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kernelgate.bench.record.os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        record.write(old.model_copy(update={"notes": ("new",)}), path)
    assert record.read(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_the_published_schema_is_current() -> None:
    published = json.loads(Path("docs/run-record.schema.json").read_text(encoding="utf-8"))
    assert published == record.json_schema(), "renew it: see CONTRIBUTING.md"
