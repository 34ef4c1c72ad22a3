"""Other tools' results, in the shapes that these tools write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.core.errors import RecordError, UsageError
from kernelgate.ci.history import foreign, keep
from kernelgate.ci.history.foreign import Told
from kernelgate.ci.history.keep import Archive
from tests.ci.history.entries import HEAD, contents

NOTHING_TOLD = Told()


def bench(name: str, value: float, unit: str, **more: object) -> dict[str, object]:
    return {"name": name, "value": value, "unit": unit, **more}


def data_js(tmp_path: Path, *benches: dict[str, object]) -> Path:
    """Of github-action-benchmark: a script that sets one variable."""
    commit = {"author": {"name": "a"}, "id": HEAD, "message": "m", "timestamp": "2026-08-01T02:00:00+02:00"}
    run = {"commit": commit, "date": 1785542400000, "tool": "cargo", "benches": list(benches)}
    content = {"lastUpdate": 1, "repoUrl": "https://github.com/o/r", "entries": {"Rust": [run]}}
    path = tmp_path / "data.js"
    path.write_text(f"window.BENCHMARK_DATA = {json.dumps(content, indent=2)}\n")
    return path


def asv(tmp_path: Path, **changed: object) -> Path:
    """Of asv 0.6: benchmarks.json, and a file for each commit and environment in a folder for each machine."""
    folder = tmp_path / "results"
    (folder / "node").mkdir(parents=True)
    result = {
        "commit_hash": HEAD,
        "env_name": "virtualenv-py3.12",
        "date": 1785542400000,
        "params": {"machine": "node", "os": "Linux", "cpu": "x"},
        "python": "3.12",
        "result_columns": ["result", "params", "version", "started_at", "duration", "stats_ci_99_a"],
        "results": {
            "bench.time_sort": [[0.002, None, 0.004], [["10", "20", "30"]], "v", 1, 0.4, [float("-inf"), None, 0.003]],
            "bench.time_one": [[4.8e-07], [], "v", 1, 0.4],
            "bench.peakmem_one": [[1000], [], "v"],
            "bench.time_broken": [None, [], "v"],
        },
        "version": 2,
        **changed,
    }
    (folder / "node" / "aaaaaaaa-env.json").write_text(json.dumps(result))
    (folder / "node" / "machine.json").write_text("{}")
    units = {name: {"unit": "seconds" if "time" in name else "bytes"} for name in result["results"]}  # type: ignore[attr-defined]
    (folder / "benchmarks.json").write_text(json.dumps({**units, "version": 2}))
    return folder


def times(found: foreign.ImportedRuns) -> dict[tuple[str, str], float]:
    return {(case.card, case.case): case.points[0].us for one in found.entries for case in one.cases}


def test_github_action_benchmark(tmp_path: Path) -> None:
    path = data_js(
        tmp_path,
        bench("sort", 1500, "ns/iter", range="± 30"),
        bench("parse", 2.0, "ms"),
        bench("rate", 4.0, "iter/sec", range="stddev: 0.1"),
        bench("size", 7.0, "MB/s"),
        bench("none", 0, "ns/iter"),
    )
    found = foreign.read(path, Told(gpu="NVIDIA L4"))
    assert times(found) == {("Rust", "sort"): 1.5, ("Rust", "parse"): 2000.0, ("Rust", "rate"): 250_000.0}
    assert (found.times, found.left_out) == (3, 2)
    (one,) = found.entries
    assert (one.run.head_sha, one.run.created_at, one.environment.device.name) == (
        HEAD,
        "2026-08-01T00:00:00Z",
        "NVIDIA L4",
    )
    assert one.cases[0].points[0].error is None, "samples of one process are no standard error between processes"


def test_asv(tmp_path: Path) -> None:
    found = foreign.read(asv(tmp_path), NOTHING_TOLD)
    assert times(found) == {
        ("bench.time_sort", "10"): 2000.0,
        ("bench.time_sort", "30"): 4000.0,
        ("bench.time_one", "-"): pytest.approx(0.48),
    }
    assert (found.times, found.left_out) == (3, 2)
    assert found.entries[0].environment.device.name == "node"


def test_bencher(tmp_path: Path) -> None:
    path = tmp_path / "bmf.json"
    path.write_text(json.dumps({"one": {"latency": {"value": 88.0, "lower_value": 87.4}, "size": {"value": 1}}}))
    found = foreign.read(path, Told(commit=HEAD, date="2026-08-01"))
    assert times(found) == {("one", "latency"): pytest.approx(0.088)}
    assert found.left_out == 1
    with pytest.raises(UsageError, match="give both, --commit and --date"):
        foreign.read(path, Told(commit=HEAD))


BROKEN: dict[str, Any] = {
    "neither": "hello",
    "a list": "[]",
    "words for numbers": '{"one": {"latency": {"value": "fast"}}}',
    "another script": "window.BENCHMARK_DATA = {};",
    "half a script": 'window.BENCHMARK_DATA = {"entries": ',
    "brackets": "[" * 100_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"file is (not|neither)"):
        foreign.read(path, Told(commit=HEAD, date="2026-08-01"))


def test_folders_and_files_that_are_not_asvs_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"has no benchmarks\.json: name the results folder of asv"):
        foreign.read(tmp_path, NOTHING_TOLD)
    with pytest.raises(RecordError, match=r"aaaaaaaa-env\.json is not a result of asv: TypeError"):
        foreign.read(asv(tmp_path, date=None), NOTHING_TOLD)
    with pytest.raises(RecordError, match=r"absent: cannot be read: No such file"):
        foreign.read(tmp_path / "absent", NOTHING_TOLD)


def test_a_past_is_brought_once_and_outlives_the_index(archive: Archive, tmp_path: Path) -> None:
    found = foreign.read(asv(tmp_path), NOTHING_TOLD)
    assert [keep.add_entry(archive, one) for one in (*found.entries, *found.entries)] == [True, False]
    before = contents(archive.database)
    assert len(before["points"]) == 3
    assert keep.rebuild(archive, pytest.fail) == 1
    assert contents(archive.database) == before
