"""One figure, one source: a case's times and its ratio to the reference are the same number wherever they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record as records
from kernelgate.bench.record import RunRecord, Side, TimedCase, rates, timed_cases
from kernelgate.ci.document import formatting, render
from kernelgate.ci.judge.verdict import as_json, judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import page
from kernelgate.ci.report.build import of_verdict
from tests import runs
from tests.ci.records import noise

ROOT = Path(__file__).parent.parent.parent
FAST = ("cards/swiglu_slower", "causes/spills", "comparisons/identical", "comparisons/slower_5pct", "traces/contended")
KEPT = sorted(
    str(path.relative_to(ROOT / "data").with_suffix(""))
    for folder in ("cards", "causes", "comparisons", "timing", "traces")
    for path in (ROOT / "data" / folder).glob("*.json")
)
UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


def contradictions(record: RunRecord) -> list[tuple[str, str, str]]:
    """Every time and ratio of a case in page and comment that is not what the verdict's JSON says: where, and both."""
    verdict = judge(record, Policy())
    built = of_verdict(record, verdict, Policy())
    told = {(one["card"], one["id"]): one for one in json.loads(as_json(verdict))["cases"]}
    cases = [(one, told[one.case.card, one.case.id]) for gpu in built.gpus for one in gpu.cases]
    html, comment = page.write(built, Policy().gates), render.comment(built.report, 10**9)
    (held,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    read = [
        ("page's data", repr(one[key]), repr(told[one["card"], one["id"]][key]))
        for one in json.loads(held)["cases"]
        for key in ("base_us", "head_us")
    ]
    drawn = sorted(re.findall(r'<span class="times">(\d.*?)</span>', html))
    pairs = [[us for us in (one["base_us"], one["head_us"]) if us is not None] for _, one in cases]
    read.append(("page", str(drawn), str(sorted(" → ".join(formatting.durations(*us)) for us in pairs))))
    changes = re.findall(r"[\d.,]+ → [\d.,]+ [nµm]?s", comment)
    for _, one in cases:
        base, head = formatting.durations(one["base_us"], one["head_us"])
        change = f"{base.rpartition(' ')[0]} → {head}"
        read.append(("comment", change if change in changes else str(changes), change))
    cells = re.sub(r"<[^>]+>", "", re.sub(r"</t[dh]><t[dh][^>]*>", " | ", html))
    by_key = {case.key: case for case in timed_cases(record)}
    sides = [
        (one, held_by, side)
        for (one, held_by), side in product(cases, rates.SIDES)
        if any(each.samples_us.get(side) for each in by_key[one.case.key].processes)
    ]
    for where, text in (("comment", comment), ("page", cells)):
        for (one, held_by, side), (row_side, time, ratio) in zip(sides, _speed(text), strict=True):
            us, beside, (number, unit) = held_by[f"{side}_us"], held_by["reference_us"], time.replace(",", "").split()
            digits = len(number.partition(".")[2])
            spoilt = side == "reference" or beside is None or one.case.disqualifying
            meant = f"{side} {us / UNITS[unit]:.{digits}f} {'—' if spoilt else f'{beside / us:.2f}'}"
            read.append((where, f"{row_side} {number} {ratio}", meant))
    return [one for one in read if one[1] != one[2]]


def _speed(text: str) -> Iterator[tuple[str, str, str]]:
    """Side, time and ratio of each row of the table of speeds in Markdown."""
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if len(cells) == 10 and cells[1] in rates.SIDES:
            yield cells[1], cells[2], cells[5]


def two_speeds() -> RunRecord:
    """Of five processes two were throttled, and had four times as many rounds: the median of all samples is theirs."""
    rng = np.random.default_rng(30)
    base, head = noise(rng, 0.0, 5, 40, 0.002)
    factors, repeats = (1.0, 1.0, 1.0, 1.8, 1.8), (1, 1, 1, 4, 4)
    processes = [
        runs.process({"base": np.tile(b * f, n), "head": np.tile(h * f, n), "reference": np.tile(b * f / 2, n)})
        for b, h, f, n in zip(base, head, factors, repeats, strict=True)
    ]
    return runs.run_record([runs.case("one", processes)])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in KEPT], ids=str
)
def test_every_place_has_the_same_time_and_ratio(name: str) -> None:
    assert contradictions(records.read(ROOT / "data" / f"{name}.json")) == []


def test_a_second_estimator_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: one table takes the median of all samples."""
    assert contradictions(two_speeds()) == []
    rate = rates.rate

    def pooled(case: TimedCase, side: Side, _: float | None = None) -> rates.Rate | None:
        samples = [us for one in case.processes for us in one.samples_us.get(side, ())]
        return rate(case, side, float(np.median(samples))) if samples else None

    monkeypatch.setattr(rates, "rate", pooled)
    assert {where for where, *_ in contradictions(two_speeds())} == {"comment", "page"}
