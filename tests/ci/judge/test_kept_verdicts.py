"""Kept records are judged as before, to the digit: tests/data/kept_verdicts.json.

The file holds what the judge said of records drawn from the traces of an H200 and of the kept paired comparisons, alone
and against both baselines. A deliberate change of the statistics rewrites it, and says so:
`python -m tests.ci.judge.keep_verdicts`.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Role
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import draw
from tests.runs import case, on, process, run_record

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
KEPT = json.loads((DATA / "kept_verdicts.json").read_text(encoding="utf-8"))
OF_TRACE = {name: list(group) for name, group in groupby(KEPT["traces"], lambda one: one["trace"])}
SAME = 1e-12
"""Relative; near 0, what another processor rounds otherwise may be as much in percentage points."""


@pytest.fixture(scope="module")
def rules() -> Policy:
    return policy.load(ROOT / ".ci" / "kernelgate.toml")


def figure(verdict: CaseVerdict, key: str) -> Any:
    """What the file has under this key."""
    if key == "findings":
        return [finding.code for finding in verdict.findings]
    if key == "per_process":
        return [(one.change_pct, one.low_pct, one.high_pct) for one in verdict.per_process]
    return getattr(verdict, key)


def assert_same(verdict: CaseVerdict, kept: dict[str, Any]) -> None:
    for key, before in kept.items():
        found = figure(verdict, key)
        if isinstance(before, str) or before is None or key == "findings":
            assert found == before, key
        else:
            np.testing.assert_allclose(found, before, rtol=SAME, atol=SAME, err_msg=key)


def judge_trace(kept: dict[str, Any], rules: Policy) -> CaseVerdict:
    """The verdict on the record that this entry was drawn as."""
    trace: str = kept["trace"]
    role: Role = "paired" if trace.endswith("inter") else "block"
    rng = np.random.default_rng([sum(map(ord, trace)), kept["head"], kept["processes"]])
    drawn = draw(rng, trace, kept["head"], kept["processes"])
    processes = [process({"base": base, "head": head}, role) for base, head in zip(*drawn, strict=True)]
    (verdict,) = judge(run_record([case("one", processes)], on("NVIDIA H200")), rules).cases
    return verdict


def judge_kept(kept: dict[str, Any], rules: Policy) -> RecordVerdict:
    run = record.read(DATA / "comparisons" / f"{kept['record']}.json")
    return judge(run, rules, record.read(ROOT / kept["baseline"]) if kept["baseline"] else None)


@pytest.mark.parametrize("trace", OF_TRACE)
def test_records_drawn_from_traces_are_judged_as_before(trace: str, rules: Policy) -> None:
    for kept in OF_TRACE[trace]:
        verdict = judge_trace(kept, rules)
        assert_same(verdict, {key: kept[key] for key in kept if key not in ("trace", "head", "processes")})


@pytest.mark.parametrize("kept", KEPT["records"], ids=lambda kept: f"{kept['record']}, {kept['baseline'] or 'base'}")
def test_kept_records_are_judged_as_before(kept: dict[str, Any], rules: Policy) -> None:
    verdict = judge_kept(kept, rules)
    assert (verdict.verdict, verdict.refused) == (kept["verdict"], kept["refused"])
    for case_, before in zip(verdict.cases, kept["cases"], strict=True):
        assert_same(case_, before)
