"""The run record: what it can say, what is refused and how and that it survives a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernelgate.bench import record
from kernelgate.bench.core.errors import OutputError, RecordError

ROOT = Path(__file__).parents[2]

SHA, OTHER_SHA = "a" * 40, "b" * 40
WHOLE: dict[str, Any] = {
    "schema": "kernelgate.run/2",
    "run": {
        "id": "run-7",
        "producer": "kernelgate",
        "version": "0.1.0",
        "plan_hash": "5f0c",
        "repository": "org/kernels",
        "pull_request": 12,
        "event": "pull_request",
        "base_sha": SHA,
        "head_sha": OTHER_SHA,
        "merge_base_sha": SHA,
        "run_id": 77,
        "run_attempt": 2,
        "gpu": "l4",
        "shard": {"index": 1, "count": 2},
        "resumed_from": "run-6",
        "ended": "preempted",
        "created_at": "2026-08-01T12:00:00Z",
    },
    "expected": {
        "label": "l4",
        "target": "8.9",
        "cards": [{"name": "attention"}],
        "cases": [{"card": "attention", "id": "s512"}],
        "checks": ["fuzz", "sanitizer", "outputs", "witness", "accuracy"],
        "processes": 5,
        "hash": "5f0c",
    },
    "environments": [
        {
            "id": "machine",
            "device": {
                "name": "NVIDIA L4",
                "compute_capability": "8.9",
                "uuid": "GPU-0",
                "driver": "580.95",
                "memory_bytes": 23_574_085_632,
                "sm_count": 58,
                "l2_bytes": 50_331_648,
                "power_limit_w": 72.0,
                "max_sm_mhz": 2040.0,
                "max_memory_mhz": 6251.0,
                "ecc": True,
                "mig": False,
                "pcie": "gen4 x16",
            },
            "torch": "2.13.0",
            "cuda": "13.0",
            "triton": "3.4.0",
            "python": "3.12.1",
            "os": "Linux",
            "host": "runner-1",
            "clock_policy": "locked 1500 MHz",
            "numerics": {
                "matmul": "ieee",
                "convolution": "ieee",
                "deterministic": True,
                "variables": ["CUBLAS_WORKSPACE_CONFIG=:4096:8"],
            },
        }
    ],
    "cards": [
        {
            "name": "attention",
            "label": "Attention",
            "hash": "c4d5",
            "source": "default branch",
            "build": "extension",
            "reference": "PyTorch",
        }
    ],
    "builds": [
        {
            "card": "attention",
            "side": "head",
            "sha": OTHER_SHA,
            "key": "0123",
            "call_hash": "c4d5",
            "tree": "clean",
            "seconds": 12.5,
            "cached": False,
            "targets": ["sm_89"],
            "library_sha256": "e" * 64,
            "kernels": [
                {
                    "target": "sm_89",
                    "name": "forward",
                    "registers": 168,
                    "spill_bytes": 0,
                    "static_shared_bytes": 0,
                    "dynamic_shared_bytes": 49_152,
                    "stack_bytes": 0,
                    "threads": 128,
                    "occupancy_pct": {"L4": 16.7},
                    "occupancy_limits": {"L4": "shared memory"},
                    "instructions": {"HMMA": 64, "total": 1000},
                }
            ],
            "warnings": [{"file": "csrc/attention/a.cu", "line": 12, "text": "unused variable 'x'"}],
        }
    ],
    "cases": [
        {
            "card": "attention",
            "id": "s512",
            "label": "S=512, causal",
            "axes": {"S": 512.0, "dtype": "fp16", "causal": True, "bias": False},
            "work": {"flops": 1e9, "bytes": 1e6},
            "tolerance": {"atol": 2e-3, "rtol": 1e-3},
        }
    ],
    "processes": [
        {
            "id": "1",
            "environment": "machine",
            "role": "paired",
            "loaded": ["head", "base"],
            "seed": "5/0",
            "started_at": "2026-08-01T12:00:01Z",
            "gpu_seconds": 2.5,
            "wall_seconds": 9.5,
            "exit": 0,
            "timings": [
                {
                    "card": "attention",
                    "case": "s512",
                    "samples_us": {"base": [321.0, 322.0], "head": [300.0, 301.0], f"commit:{SHA}": [310.0, 311.0]},
                    "positions": {"base": [0, 2], "head": [1, 0]},
                    "previous": {"base": [None, "head"], "head": ["base", "reference"]},
                    "started_us": {"base": [0.0, 640.0], "head": [330.0, 980.0]},
                    "sm_mhz": {"base": [1500.0, 1500.0], "head": [1500.0, 1485.0]},
                    "inner_repeats": 4,
                    "pause_us": 10.0,
                    "clock_step_us": 0.032,
                    "graph_us": {"head": 298.0},
                    "calls": {"head": {"made": 40, "compared": 3, "failed": 1, "repeated": 2}},
                    "errors": {"head": {"maximum": 0.4, "mean": 1e-4, "bias_ulp": -0.5}},
                    "autotuned": {"head": "BLOCK_M=128"},
                    "memory_bytes": {"head": 16777216, "reference": 33554432},
                    "telemetry": {
                        "sm_mhz": 1500.0,
                        "max_sm_mhz": 2040.0,
                        "memory_mhz": 6251.0,
                        "temperature_c": 60.0,
                        "power_w": 70.0,
                        "throttle_reasons": ["sw_power_cap"],
                        "throttle_shares": {"sw_power_cap": 0.25},
                    },
                }
            ],
        },
        {
            "id": "2",
            "environment": "machine",
            "role": "canary",
            "timings": [
                {
                    "card": "attention",
                    "case": "s512",
                    "condensed": {
                        "head": {
                            "count": 100,
                            "location_us": 300.5,
                            "variance": 1e-6,
                            "autocorrelation": [0.1, 0.05],
                            "quantiles_us": {"50": 300.5},
                            "mode_shares": [0.9, 0.1],
                        }
                    },
                }
            ],
        },
    ],
    "checks": [
        {
            "kind": "accuracy",
            "card": "attention",
            "status": "passed",
            "accuracies": [
                {
                    "case": "s512",
                    "output": "out",
                    "distribution": "normal",
                    "base": {
                        "mean": [0.25, 0.26],
                        "maximum": [0.5, 0.5],
                        "bias": [0.0, 0.01],
                        "outward": [0.0, -0.01],
                    },
                    "head": {
                        "mean": [0.5, 0.51],
                        "maximum": [1.0, 1.0],
                        "bias": [0.0, 0.01],
                        "outward": [-0.25, -0.26],
                    },
                    "identical": 0,
                    "elements": 4096,
                    "not_finite": 3,
                }
            ],
        },
        {
            "kind": "fuzz",
            "card": "attention",
            "status": "failed",
            "reason": "one configuration was wrong",
            "asked": 38,
            "run": 1,
            "failed": 1,
            "seed": 5,
            "tolerance": {"atol": 2e-3, "rtol": 1e-3},
            "results": [
                {
                    "id": "s512_b32_h8",
                    "seed": 5,
                    "axes": {"S": 512.0},
                    "passed": False,
                    "max_abs_error": 0.4,
                    "error_ratio": 200.0,
                    "message": "error 0.4",
                    "note": "refused by name: q",
                    "repeatable": True,
                    "runs": 5,
                    "failed_runs": 5,
                    "smallest": "s37_b1_h1_d64_fp16_distribution-normal_way-plain",
                    "repeat": "kernelgate fuzz --seed 5 --case s512_b32_h8",
                }
            ],
            "findings": [
                {
                    "text": "out of bounds",
                    "kernel": "forward",
                    "file": "csrc/kernel.cu",
                    "line": 40,
                    "tool": "memcheck",
                    "times": 3,
                    "on_base": False,
                }
            ],
            "tools": ["memcheck"],
            "cases": ["s512"],
            "unreached": ["backward"],
        },
    ],
    "profile": [
        {
            "card": "attention",
            "case": "s512",
            "side": "head",
            "metrics": {"dram_pct": 40.0, "limiter": "latency"},
            "hot_spots": {
                "samples": 2000,
                "lines": [
                    {"file": "csrc/kernel.cu", "line": 40, "text": "s += a * b;", "samples": 900, "stall": "barrier"}
                ],
                "instructions": [
                    {
                        "sass": "FFMA R0, R1, R2, R0",
                        "file": "csrc/kernel.cu",
                        "line": 40,
                        "samples": 800,
                        "stall": "wait",
                    }
                ],
            },
            "report": "head.ncu-rep",
            "report_sha256": "f" * 64,
        }
    ],
    "costs": [{"phase": "bench", "gpu_seconds": 30.0, "retried": True}],
    "notes": [{"code": "seed", "card": "attention", "text": "seed 5 from process 1 on"}],
    "summary": {
        "source": "main",
        "release": "v1.4",
        "cases": {
            "s512": {
                "median_us": 300.5,
                "interval_us": [299.0, 302.0],
                "gflops": 57170.9,
                "samples": 100,
                "processes": 5,
                "days": [{"measured": "2026-11-22", "code": "a1b2", "median_us": 300.5}],
                "measured": "2026-11-22",
                "commit": SHA,
            }
        },
    },
}
"""Every fact that docs/architecture.md and the design name, in one record."""

MINIMAL: dict[str, Any] = {
    "schema": "kernelgate.run/2",
    "cases": [{"id": "anything"}],
    "processes": [
        {"id": "1", "timings": [{"case": "anything", "samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5]}}]}
    ],
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


def head(samples: str) -> str:
    """A record whose head has these samples, which may be what json.dumps would not write."""
    timings = f'[{{"case":"x","samples_us":{{"head":{samples}}}}}]'
    return f'{{"schema":"kernelgate.run/2","cases":[{{"id":"x"}}],"processes":[{{"id":"1","timings":{timings}}}]}}'


# ---- what it can say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [MINIMAL, WHOLE], ids=["minimal", "whole"])
def test_a_record_survives_the_round_trip(content: dict[str, Any]) -> None:
    first = record.from_json(json.dumps(content))
    assert record.from_json(record.to_json(first)) == first


def test_a_record_holds_all_that_it_was_given() -> None:
    """Nothing is dropped or renamed on the way, apart from a case's null: before the first sample nothing ran."""
    read = record.from_json(json.dumps(WHOLE)).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert read == WHOLE


def models(value: object) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from models(getattr(value, name))
    elif isinstance(value, dict):
        for inner in value.values():
            yield from models(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from models(inner)


def test_the_whole_record_uses_every_field() -> None:
    """A field that is added stands in WHOLE too, where the round trip is tested."""
    used: dict[type[BaseModel], set[str]] = {}
    for model in models(record.from_json(json.dumps(WHOLE))):
        used.setdefault(type(model), set()).update(model.model_fields_set)
    missing = {
        f"{model.__name__}.{name}" for model, names in used.items() for name in model.model_fields.keys() - names
    }
    assert not missing
    every = {one for one in vars(record).values() if isinstance(one, type) and issubclass(one, record.Model)}
    assert every - {record.Model} <= used.keys()


def test_what_a_producer_cannot_know_may_be_null() -> None:
    known = record.from_json(json.dumps(MINIMAL))
    unknown = record.from_json(
        changed(
            run=None,
            expected=None,
            environments=None,
            builds=[],
            checks=None,
            cases=[{"id": "anything", "axes": None, "work": {"flops": None, "bytes": None}}],
            processes=[
                {
                    "id": "1",
                    "role": None,
                    "seed": None,
                    "timings": [
                        {
                            "case": "anything",
                            "samples_us": {"base": [1.0, 2.0], "head": [1.5, 2.5], "reference": None},
                            "inner_repeats": None,
                            "telemetry": {"sm_mhz": None, "throttle_reasons": None},
                        }
                    ],
                }
            ],
        )
    )
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


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("true", True),
        ("false", False),
        ("1", 1.0),
        ("0", 0.0),
        ("1.0", 1.0),
        ("512", 512.0),
        ('"true"', "true"),
        ('"1"', "1"),
    ],
)
def test_an_axis_keeps_its_kind(written: str, read: object) -> None:
    """True is not 1: a boolean axis is named where it is true, and a number with its value."""
    made = record.from_json(f'{{"cases":[{{"id":"x","axes":{{"a":{written}}}}}]}}')
    for found in (made, record.from_json(record.to_json(made))):
        value = found.cases[0].axes["a"]
        assert (value, type(value)) == (read, type(read))


def test_a_plan_has_the_same_hash_wherever_it_is_measured() -> None:
    def expected(**changes: object) -> record.Expected:
        known = {
            "cards": [{"name": "norm"}],
            "cases": [{"id": "x", "axes": {"M": 1}}],
            "checks": ["fuzz"],
            "processes": 2,
        }
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


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "Invalid JSON"),
        ("[]", "the file"),
        (changed(schema="kernelgate.run/3"), "schema"),
        (changed(surprise=1), "surprise"),
        (head("[NaN]"), "head.0"),
        (head("[Infinity]"), "head.0"),
        (head("[-1.0]"), "head.0"),
        (head("[0]"), "head.0"),
        (head('["1.0"]'), "head.0: Input should be a valid number"),
        (head("[true]"), "head.0: Input should be a valid number"),
        (head('"1.0"'), "samples_us.head"),
        (timing(samples_us={"base": [1], "head": [1, 2]}), "one length"),
        (timing(positions={"base": [0]}), "positions needs one entry for each sample; not so for base"),
        (timing(previous={"reference": ["base", None]}), "previous needs one entry .* reference"),
        (timing(started_us={"head": [0.0, 1.0, 2.0]}), "started_us needs one entry .* head"),
        (timing(sm_mhz={"head": []}), "sm_mhz needs one entry .* head"),
        (timing(samples_us={"oracle": [1.0]}), "samples_us.oracle"),
        (timing(samples_us={"commit:HEAD": [1.0]}), "samples_us.commit:HEAD"),
        (timing(case="another"), "process 1 timed 'another', which is not among the cases"),
        (timing(card="norm"), "process 1 timed 'anything', which is not among the cases"),
        (changed(cases=[{"id": "x"}, {"id": "x"}], processes=[]), "case ids must be unique; duplicates: x"),
        (changed(cases=[{"card": "c", "id": "x"}] * 2, processes=[]), "duplicates: c/x"),
        (changed(cases=[{"id": ""}]), "cases.0.id"),
        (changed(processes=MINIMAL["processes"] * 2), "process ids must be unique; duplicates: 1"),
        (changed(processes=[{"id": "1", "timings": MINIMAL["processes"][0]["timings"] * 2}]), "duplicates: anything"),
        (changed(environments=[{}, {}]), "environment ids must be unique"),
        (sampled(lines=[{"file": "a.cu", "line": 1, "samples": 1}] * 21), "hot_spots.lines: .* at most 20"),
        (sampled(instructions=[{"sass": "NOP", "samples": 1}] * 31), "hot_spots.instructions: .* at most 30"),
        (sampled(lines=[{"file": "a.cu", "line": 1, "samples": 51}] * 2), "its lines hold 102 samples, of 100"),
        (sampled(lines=[{"file": "a.cu", "line": 1, "text": "x" * 201, "samples": 1}]), "at most 200 characters"),
    ],
)
def test_a_broken_record_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(RecordError, match=named):
        record.from_json(text)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every number and truth value, and where it stands. An axis and a metric may also be text."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    elif isinstance(value, bool | int | float):
        yield path, value


def put(path: tuple[str | int, ...], value: object) -> str:
    """WHOLE with another value there."""
    content = deepcopy(WHOLE)
    place: Any = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(content)


def test_no_text_and_no_truth_value_is_a_number_nor_the_other_way_round() -> None:
    accepted = []
    for path, value in leaves(WHOLE):
        others: list[object] = [1, 0.0, "true", "yes"] if isinstance(value, bool) else [True, False, str(value)]
        for other in others:
            if path[-2] == "axes" or (path[-2] == "metrics" and isinstance(other, str)):
                continue
            with suppress(RecordError):
                record.from_json(put(path, other))
                accepted.append((path, other))
    assert not accepted


PASSED, FAILED = ({"id": "a", "seed": 1, "passed": passed} for passed in (True, False))


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"status": "passed", "results": [PASSED, FAILED]}, "it says passed, and 1 of its results failed"),
        ({"status": "passed", "failed": 1}, "it says passed, and 1 of its results failed"),
        ({"status": "skipped", "results": [FAILED]}, "it says skipped, and 1 of its results failed"),
        ({"status": "skipped", "results": [PASSED]}, "it says skipped, and 0 of its 1 results failed"),
        ({"status": "failed", "results": [PASSED]}, "it says failed, and 0 of its 1 results failed"),
        (
            {"status": "failed", "failed": 2, "results": [PASSED, FAILED]},
            "it says that 2 failed, and 1 of its results did",
        ),
        ({"status": "passed", "run": 3, "results": [PASSED]}, "it says that 3 ran, and has 1 results"),
        ({"kind": "sanitizer", "status": "passed", "findings": [{"text": "a race"}]}, "it says passed, and 1 of its"),
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


# ---- files -----------------------------------------------------------------------------------------------------------


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
