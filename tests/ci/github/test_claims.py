"""Claims beside measurements: supported, not supported, contradicted, not measured."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Case, RunRecord
from kernelgate.ci.github.claims import Support, assess, cases_of, read_claims
from kernelgate.ci.judge.case import CaseVerdict, Outcome
from kernelgate.ci.judge.validity import Finding as Trouble
from kernelgate.ci.policy.policy import Gates
from tests.ci.report_examples import case, faster, judge, noisy, record, same, slower

ONE = case(512, 32, 321.4, 0.0)
OTHER = case(1024, 32, 900.0, 0.0, causal=True)


@pytest.mark.parametrize(
    ("claim", "verdicts", "finding"),
    [
        ("10% faster", [faster(ONE, -12.8)], Support.SUPPORTED),
        ("10% faster", [faster(ONE, -6.0)], Support.NOT_SUPPORTED),
        # 1.33 times as fast is 33% more speed, and 24.8% less time.
        ("33% faster", [faster(ONE, -25.0)], Support.SUPPORTED),
        ("33% less time", [faster(ONE, -25.0)], Support.NOT_SUPPORTED),
        ("10% faster", [same(ONE, 0.1)], Support.CONTRADICTED),
        ("10% faster", [noisy(ONE, 1.0, 8.0)], Support.NOT_SUPPORTED),
        ("no change", [same(ONE, 0.1)], Support.SUPPORTED),
        ("no change", [slower(ONE, 4.9)], Support.CONTRADICTED),
        ("10% faster", [noisy(ONE, 1.0, 8.0, (Trouble("drift", "it drifted", True),))], Support.NOT_MEASURED),
        ("S=512: 12% faster", [faster(ONE, -12.8), same(OTHER, 0.0)], Support.SUPPORTED),
        ("all cases: 12% faster", [faster(ONE, -12.8), same(OTHER, 0.0)], Support.CONTRADICTED),
        ("S=640: 12% faster", [faster(ONE, -12.8), same(OTHER, 0.0)], Support.NOT_MEASURED),
    ],
)
def test_what_the_measurement_says(claim: str, verdicts: list[CaseVerdict], finding: Support) -> None:
    claims, _ = read_claims(claim)
    cases = (ONE, OTHER)[: len(verdicts)]
    [assessed] = assess(claims, record(cases), judge(Outcome.EQUIVALENT, *verdicts), Gates())
    assert assessed.finding is finding


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("- S=512: −10%", -10.0),
        ("S=512: +2.5 %", 2.5),
        ("1.25x faster", -20.0),
        ("**S=1024**: unchanged.", 0.0),
        ("20% slower", 20.0),
        ("100% faster", None),
        ("0.9x faster", None),
        ("S=1024: 10%", None),
        ("10% faster or 20% faster", None),
        ("throughput +25%", None),
        ("up to 15% faster", None),
    ],
)
def test_a_line_ends_with_its_effect_on_the_time_or_is_named(line: str, change: float | None) -> None:
    claims, unread = read_claims(f"some prose\n{line}")
    assert [one.change_pct for one in claims] == ([] if change is None else [change])
    assert bool(unread) is (change is None)


CASES = (
    Case(card="norm", id="a", axes={"M": 4, "bias": True, "dtype": "fp16"}),
    Case(card="norm", id="b", axes={"M": 8, "bias": 0.0, "dtype": "torch.bfloat16"}),
    Case(card="gemm", id="a", axes={"K": 4, "mode": "Fast"}),
)


@pytest.mark.parametrize(
    ("about", "cases"),
    [
        ("norm/a", {"norm/a"}),
        ("A", {"norm/a", "gemm/a"}),
        ("norm, M=8.0", {"norm/b"}),
        ("K=4 mode=FAST", {"gemm/a"}),
        ("M=4 K=4", set()),
        ("bf16", {"norm/b"}),
        ("dtype=half", {"norm/a"}),
        ("bias", {"norm/a"}),
        ("bias=false", {"norm/b", "gemm/a"}),
        ("nowhere", set()),
    ],
)
def test_a_claim_is_about_the_cases_that_all_its_words_fit(about: str, cases: set[str]) -> None:
    [claim], _ = read_claims(f"{about}: 10% faster")
    assert {f"{key.card}/{key.id}" for key in cases_of(claim, RunRecord(cases=CASES))} == cases
