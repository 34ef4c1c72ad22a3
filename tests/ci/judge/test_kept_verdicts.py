"""Kept records are judged as before, to the digit: tests/data/kept_verdicts.json.

The file holds what the judge said of records drawn from the traces of an H200 and of the kept paired comparisons, alone
and against both baselines. After a deliberate change of the statistics, write it anew and read the difference:
`KERNELGATE_GOLDEN=write .venv/bin/pytest tests/ci/judge/test_kept_verdicts.py`.
"""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Role
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy import policy
from tests.ci.records import draw
from tests.runs import case, on, process, run_record

ROOT = Path(__file__).parents[3]
FILE = ROOT / "tests" / "data" / "kept_verdicts.json"
RULES = policy.load(ROOT / ".ci" / "kernelgate.toml")
SAME = 1e-12
"""Relative; near 0, what another processor rounds otherwise may be as much in percentage points."""


def figure(verdict: CaseVerdict, key: str) -> Any:
    if key == "findings":
        return [finding.code for finding in verdict.findings]
    if key == "per_process":
        return [(one.change_pct, one.low_pct, one.high_pct) for one in verdict.per_process]
    return getattr(verdict, key)


def trace_now(kept: dict[str, Any]) -> dict[str, Any]:
    """The entry as it is today: of the record that it was drawn as."""
    trace: str = kept["trace"]
    role: Role = "paired" if trace.endswith("inter") else "block"
    rng = np.random.default_rng([sum(map(ord, trace)), kept["head"], kept["processes"]])
    drawn = draw(rng, trace, kept["head"], kept["processes"])
    processes = [process({"base": base, "head": head}, role) for base, head in zip(*drawn, strict=True)]
    (verdict,) = judge(run_record([case("one", processes)], on("NVIDIA H200")), RULES).cases
    drawn_as = ("trace", "head", "processes")
    return {key: kept[key] if key in drawn_as else figure(verdict, key) for key in kept}


def record_now(kept: dict[str, Any]) -> dict[str, Any]:
    run = record.read(FILE.parent / "comparisons" / f"{kept['record']}.json")
    verdict = judge(run, RULES, record.read(ROOT / kept["baseline"]) if kept["baseline"] else None)
    pairs = zip(verdict.cases, kept["cases"], strict=True)
    cases = [{key: figure(one, key) for key in before} for one, before in pairs]
    return {**kept, "verdict": verdict.verdict, "refused": verdict.refused, "cases": cases}


def assert_same(now: dict[str, Any], kept: dict[str, Any]) -> None:
    for key, before in kept.items():
        if isinstance(before, str) or before is None or key == "findings":
            assert now[key] == before, key
        elif key != "cases":
            np.testing.assert_allclose(now[key], before, rtol=SAME, atol=SAME, err_msg=key)


def written(kept: dict[str, Any]) -> str:
    made = {"traces": map(trace_now, kept["traces"]), "records": map(record_now, kept["records"])}
    parts = (f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(one)}" for one in part) for name, part in made.items())
    return "{\n" + "\n  ],\n".join(parts) + "\n  ]\n}\n"


KEPT = json.loads(FILE.read_text(encoding="utf-8"))
if os.environ.get("KERNELGATE_GOLDEN") == "write":
    FILE.write_text(written(KEPT), encoding="utf-8")
    KEPT = json.loads(FILE.read_text(encoding="utf-8"))
OF_TRACE = {name: list(group) for name, group in groupby(KEPT["traces"], lambda one: one["trace"])}


@pytest.mark.slow
@pytest.mark.parametrize("trace", OF_TRACE)
def test_records_drawn_from_traces_are_judged_as_before(trace: str) -> None:
    for kept in OF_TRACE[trace]:
        assert_same(trace_now(kept), kept)


@pytest.mark.parametrize("kept", KEPT["records"], ids=lambda kept: f"{kept['record']}, {kept['baseline'] or 'base'}")
def test_kept_records_are_judged_as_before(kept: dict[str, Any]) -> None:
    now = record_now(kept)
    assert_same(now, kept)
    for one, before in zip(now["cases"], kept["cases"], strict=True):
        assert_same(one, before)
