"""The past that a project brings: results of other tools, each run of one commit as an entry of its own.

Times alone are taken, in microseconds; what is no time is counted and left out. What these tools say of the scatter of
their samples is no standard error between processes, so that none is taken.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelgate.bench.core.errors import RecordError, UsageError
from kernelgate.bench.record import Device, Environment, Run
from kernelgate.ci.history import spreads_file
from kernelgate.ci.history.entry import CaseEntry, Entry, PointEntry, moment

UNITS = {"s": 1e6, "seconds": 1e6, "ms": 1e3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ns": 1e-3}
"""Microseconds of one, for the units that are written before the "/iter" or "/op" of a time of one call."""
PER_CALL = "iter/sec"
"""A rate that is the inverse of the mean time of a call, as pytest-benchmark has it."""
BENCHER_NS = 1e-3
"""Of Bencher's measure "latency", which is in nanoseconds."""
DATA_JS = "window.BENCHMARK_DATA"
SHORTEST_US, LONGEST_US = 1e-9, 1e15


@dataclass(frozen=True)
class Told:
    """What the user says of results whose files do not say it."""

    gpu: str | None = None
    commit: str | None = None
    date: str | None = None


@dataclass(frozen=True)
class ImportedRuns:
    entries: tuple[Entry, ...]
    times: int
    left_out: int
    """Results that are no times, or that failed."""
    spreads: int = 0
    """Cases of which it is known how far their processes scatter."""


def read(path: Path, told: Told) -> ImportedRuns:
    """What a data.js, a folder of asv's results, a file of spreads or one in Bencher Metric Format holds.

    Raises RecordError.
    """
    if path.is_dir():
        return _joined(_asv(path, told))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    script = text.lstrip("\ufeff \r\n\t").startswith(DATA_JS)
    if not script and spreads_file.is_one(text):
        known = spreads_file.entry(text, path)
        return ImportedRuns((known,), 0, 0, len(known.spreads))
    content = _json(text.partition("=")[2].strip().removesuffix(";") if script else text, path)
    try:
        return _joined(_data_js(content, told) if script else _bencher(content, told))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        tool = "github-action-benchmark's data.js" if script else "Bencher Metric Format"
        raise RecordError(f"{path} is not {tool}: {type(error).__name__}: {error}") from None


@dataclass(frozen=True)
class _Time:
    card: str
    case: str
    us: float


_Run = tuple[Run, Environment, list[_Time], int]
"""Who measured what where, its times, and how many results were left out."""


def _joined(runs: Iterator[_Run]) -> ImportedRuns:
    entries, times, left_out = [], 0, 0
    for run, where, found, out in runs:
        kept = [one for one in found if SHORTEST_US <= one.us <= LONGEST_US]
        times, left_out = times + len(kept), left_out + out + len(found) - len(kept)
        unique = {(one.card, one.case): one for one in kept}
        if unique:
            cases = tuple(_case(one, run.head_sha) for one in unique.values())
            entries.append(Entry(name="", run=run, environment=where, cases=cases))
    return ImportedRuns(tuple(entries), times, left_out)


def _case(time: _Time, commit: str | None) -> CaseEntry:
    point = PointEntry(side="head", commit=commit, us=time.us, processes=1, rounds=1)
    return CaseEntry(card=time.card, case=time.case, points=(point,))


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError(f"{path} is neither a data.js of github-action-benchmark nor JSON") from None


def _at_milliseconds(value: float) -> str:
    return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- github-action-benchmark -----------------------------------------------------------------------------------------


def _data_js(content: Mapping[str, Any], told: Told) -> Iterator[_Run]:
    where = Environment(device=Device(name=told.gpu))
    for suite, runs in content["entries"].items():
        for one in runs:
            run = Run(
                producer=f"github-action-benchmark {one.get('tool', '')}".strip(),
                head_sha=str(one["commit"]["id"]),
                created_at=_at_milliseconds(one["date"]),
            )
            times = [_of_bench(suite, bench) for bench in one["benches"]]
            known = [time for time in times if time]
            yield run, where, known, len(times) - len(known)


def _of_bench(suite: str, bench: Mapping[str, Any]) -> _Time | None:
    unit, value = str(bench.get("unit", "")).strip(), float(bench["value"])
    scale = UNITS.get(re.split(r"[/ ]", unit)[0])
    if not value > 0 or (scale is None and unit != PER_CALL):
        return None
    return _Time(suite, str(bench["name"]) or "?", 1e6 / value if scale is None else value * scale)


# ---- asv -------------------------------------------------------------------------------------------------------------


def _asv(folder: Path, told: Told) -> Iterator[_Run]:
    """Of asv's results folder, version 2: a folder for each machine, in it a file for each commit and environment."""
    listed = folder / "benchmarks.json"
    if not listed.is_file():
        raise RecordError(f"{folder} has no benchmarks.json: name the results folder of asv")
    benchmarks = _json(listed.read_text(encoding="utf-8"), listed)
    for file in sorted(folder.glob("*/*.json")):
        if file.name == "machine.json":
            continue
        try:
            content = _json(file.read_text(encoding="utf-8"), file)
            yield _of_asv(content, benchmarks, file.parent.name, told)
        except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            raise RecordError(f"{file} is not a result of asv: {type(error).__name__}: {error}") from None


def _of_asv(content: Mapping[str, Any], benchmarks: Mapping[str, Any], machine: str, told: Told) -> _Run:
    run = Run(
        producer=f"asv {content.get('env_name', '')}".strip(),
        head_sha=content["commit_hash"],
        created_at=_at_milliseconds(content["date"]),
    )
    params = content.get("params", {})
    where = Environment(device=Device(name=told.gpu or machine), python=content.get("python"), os=params.get("os"))
    times, left_out = [], 0
    for name, row in content["results"].items():
        cells = dict(zip(content["result_columns"], row, strict=False)) if isinstance(row, list) else {"result": [row]}
        values, axes = cells.get("result") or [], cells.get("params") or []
        is_time = (benchmarks.get(name) or {}).get("unit") == "seconds"
        for words, value in zip(itertools.product(*axes), values, strict=False):
            if is_time and isinstance(value, int | float) and math.isfinite(value) and value > 0:
                times.append(_Time(name, ", ".join(map(str, words)) or "-", value * 1e6))
            else:
                left_out += 1
    return run, where, times, left_out


# ---- Bencher Metric Format -------------------------------------------------------------------------------------------


def _bencher(content: Mapping[str, Any], told: Told) -> Iterator[_Run]:
    date = moment(told.date)
    if told.commit is None or date is None:
        raise UsageError(
            "a file in Bencher Metric Format names neither commit nor date: give both, --commit and --date"
        )
    run = Run(producer="Bencher Metric Format", head_sha=told.commit, created_at=date)
    times, left_out = [], 0
    for name, measures in content.items():
        for measure, metric in measures.items():
            value = float(metric["value"])
            if measure == "latency":
                times.append(_Time(name, measure, value * BENCHER_NS))
            else:
                left_out += 1
    yield run, Environment(device=Device(name=told.gpu)), times, left_out
