"""The run record: what it can say, what is refused and how and that it survives a crash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from kernelgate.bench import record
from kernelgate.bench.core.errors import OutputError, RecordError
from kernelgate.bench.record import RunRecord

ROOT = Path(__file__).parents[2]


def example(form: Any, metadata: Sequence[Any] = ()) -> Any:
    """A value of this type as JSON has it: of a model, one with every field."""
    origin, parts = get_origin(form), get_args(form)
    if origin is Annotated:
        return example(parts[0], (*metadata, *parts[1:]))
    if isinstance(form, type) and issubclass(form, BaseModel):
        fields = {one.alias or name: example(one.annotation, one.metadata) for name, one in form.model_fields.items()}
        return fields | NAMED.get(form, {})
    if origin in (Union, UnionType):
        return example(parts[0], metadata)
    if origin is Literal:
        return parts[0]
    if origin is tuple:
        return [example(one) for one in parts if one is not ...]
    if origin is dict:
        return {example(parts[0]): example(parts[1])}
    texts = ("text", "head", "8.9")
    return next(value for value in (False, 1, 1.0, *texts) if type(value) is form and _fits(form, metadata, value))


def _fits(form: Any, metadata: Sequence[Any], value: Any) -> bool:
    with suppress(ValidationError):
        TypeAdapter(Annotated[form, *metadata] if metadata else form).validate_python(value)
        return True
    return False


NAMED: dict[Any, dict[str, Any]] = {record.Check: {"status": "failed"}, record.FuzzResult: {"timed": True}}
"""What one field says of another."""
WHOLE = example(RunRecord)
"""Every field that a record may have, also one that is added tomorrow."""

TIMED = {"case": "anything", "samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5]}}
MINIMAL: dict[str, Any] = {
    "schema": "kernelgate.run/2",
    "cases": [{"id": "anything"}],
    "processes": [{"id": "1", "timings": [TIMED]}],
}


def changed(**changes: object) -> str:
    return json.dumps({**MINIMAL, **changes})


def timing(**changes: object) -> str:
    """The minimal record with other fields in its one timing."""
    made = deepcopy(MINIMAL)
    made["processes"][0]["timings"][0] |= changes
    return json.dumps(made)


def sampled(**hot_spots: object) -> str:
    """The minimal record with a profile of a hundred samples."""
    return changed(profile=[{"case": "anything", "side": "head", "hot_spots": {"samples": 100, **hot_spots}}])


@pytest.mark.parametrize("content", [MINIMAL, WHOLE], ids=["minimal", "whole"])
def test_a_record_survives_the_round_trip(content: dict[str, Any]) -> None:
    first = record.from_json(json.dumps(content))
    assert record.from_json(record.to_json(first)) == first


def test_a_record_holds_all_that_it_was_given() -> None:
    """Nothing is dropped or renamed on the way, apart from a case's null: before the first sample nothing ran."""
    read = record.from_json(json.dumps(WHOLE)).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert read == WHOLE


def test_what_a_producer_cannot_know_may_be_null() -> None:
    known = record.from_json(json.dumps(MINIMAL))
    content = deepcopy(MINIMAL) | dict.fromkeys(("run", "expected", "environments", "checks"))
    content["cases"][0] |= {"axes": None, "work": {"flops": None, "bytes": None}}
    content["processes"][0] |= {"role": None, "seed": None}
    content["processes"][0]["timings"][0] |= {
        "samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5], "reference": None},
        "inner_repeats": None,
        "telemetry": {"sm_mhz": None, "throttle_reasons": None},
    }
    unknown = record.from_json(json.dumps(content))
    assert unknown.processes[0].timings[0].samples_us == known.processes[0].timings[0].samples_us
    assert unknown.environment == known.environment


def test_two_cards_may_share_a_case_id() -> None:
    cases = [{"card": "attention", "id": "x"}, {"card": "norm", "id": "x"}]
    timings = [{"card": "norm", "case": "x", "samples_us": {"head": [2.0]}}]
    read = record.from_json(changed(cases=cases, processes=[{"id": "1", "timings": timings}]))
    attention, norm = record.timed_cases(read)
    assert (attention.key.card, attention.processes) == ("attention", ())
    assert [process.samples_us for process in norm.processes] == [{"head": (2.0,)}]


def test_canaries_and_their_like_are_not_compared() -> None:
    timings = MINIMAL["processes"][0]["timings"]
    roles = ["paired", "alternating", "block", "witness", "canary", "bisect"]
    processes = [{"id": role, "role": role, "timings": timings} for role in roles]
    (found,) = record.timed_cases(record.from_json(changed(processes=processes)))
    assert [timed.role for timed in found.processes] == ["paired", "alternating", "block"]


@pytest.mark.parametrize(("written", "read"), [("true", True), ("1", 1.0), ("0", 0.0), ('"1"', "1")])
def test_an_axis_keeps_its_kind(written: str, read: object) -> None:
    """True is not 1: a boolean axis is named where it is true, and a number with its value."""
    made = record.from_json(f'{{"cases":[{{"id":"x","axes":{{"a":{written}}}}}]}}')
    for found in (made, record.from_json(record.to_json(made))):
        value = found.cases[0].axes["a"]
        assert (value, type(value)) == (read, type(read))


def test_a_plan_has_the_same_hash_wherever_it_is_measured() -> None:
    known = {"cards": [{"name": "norm"}], "cases": [{"id": "x", "axes": {"M": 1}}], "checks": ["fuzz"], "processes": 2}

    def expected(**changes: object) -> record.Expected:
        return record.Expected.model_validate({**known, **changes})

    plan = record.expected_hash(expected())
    assert len(plan) == 64
    for same in ({"label": "l4", "target": "8.9"}, {"hash": "0"}, {"cases": [{"id": "x", "axes": {"M": 1.0}}]}):
        assert record.expected_hash(expected(**same)) == plan
    for other in (
        {"cards": [{"name": "norm", "hash": "1"}]},
        {"cases": [{"id": "x", "axes": {"M": True}}]},
        {"cases": [{"id": "x", "label": "X", "axes": {"M": 1}}]},
        {"checks": []},
        {"processes": 3},
    ):
        assert record.expected_hash(expected(**other)) != plan


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (timing(previous={"reference": ["base", None]}), "previous needs one entry .* reference"),
        (timing(started_us={"head": [0.0, 1.0, 2.0]}), "started_us needs one entry .* head"),
        (timing(sm_mhz={"head": []}), "sm_mhz needs one entry .* head"),
        (timing(samples_us={"commit:HEAD": [1.0]}), "samples_us.commit:HEAD"),
        (changed(environments=[{}, {}]), "environment ids must be unique"),
        (sampled(lines=[{"file": "a.cu", "line": 1, "samples": 51}] * 2), "its lines hold 102 samples, of 100"),
        (sampled(lines=[{"file": "a.cu", "line": 1, "text": "x" * 201, "samples": 1}]), "at most 200 characters"),
    ],
)
def test_a_broken_record_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(RecordError, match=named):
        record.from_json(text)


def test_what_does_not_fit_is_one_short_line_whatever_its_keys_hold() -> None:
    strange = {f"{number}\n::error::{'x' * 5000}": 1 for number in range(20)}
    with pytest.raises(RecordError, match=r"; and \d+ more$") as refused:
        record.from_json(json.dumps(strange))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


PASSED, FAILED = ({"id": "a", "seed": 1, "passed": passed} for passed in (True, False))


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"status": "skipped", "results": [PASSED]}, "it says skipped, and 0 of its 1 results failed"),
        ({"status": "failed", "results": [PASSED]}, "it says failed, and 0 of its 1 results failed"),
        (
            {"status": "failed", "failed": 2, "results": [PASSED, FAILED]},
            "it says that 2 failed, and 1 of its results did",
        ),
        ({"kind": "sanitizer", "status": "skipped", "findings": [{"text": "a race"}]}, "it says skipped, and 1 of its"),
    ],
)
def test_a_check_agrees_with_what_it_holds(check: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError, match=said):
        record.from_json(changed(checks=[{"kind": "fuzz", **check}]))


def test_the_fuzz_results_of_several_cards_are_asked_for_together() -> None:
    """Of two cards, one of which was cut short, not all has passed."""
    whole = {"kind": "fuzz", "card": "a", "status": "passed", "asked": 1, "run": 1, "results": [PASSED]}
    short = {"kind": "fuzz", "card": "b", "status": "passed", "asked": 9, "run": 1, "results": [PASSED]}
    for checks in ([whole, short], [short, whole]):
        found = record.from_json(changed(checks=checks)).fuzz
        assert found is not None
        assert (found.asked, found.run, len(found.results)) == (10, 2, 2)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"missing\.json: cannot be read"):
        record.read(tmp_path / "missing.json")


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    old = record.from_json(json.dumps(MINIMAL))
    record.write(old, path)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kernelgate.bench.core.files.os.fsync", full_disk)
    with pytest.raises(OutputError, match=r"run\.json cannot be written: no space left"):
        record.write(old.model_copy(update={"notes": (record.Note(text="new"),)}), path)
    assert record.read(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_the_published_schema_is_current() -> None:
    published = json.loads((ROOT / "docs/run-record.schema.json").read_text(encoding="utf-8"))
    assert published == record.json_schema(), "renew it: see CONTRIBUTING.md"
