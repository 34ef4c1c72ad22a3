"""Claims beside measurements: supported, not supported, contradicted, not measured."""

from __future__ import annotations

import pytest

from kernelgate.ci.document.render import markdown_line
from kernelgate.ci.github.claims import Support, assess
from kernelgate.ci.github.description import read_claims
from kernelgate.ci.judge.policy import Gates, Template
from kernelgate.ci.judge.verdict import CaseVerdict, Outcome
from kernelgate.ci.judge.verdict import Finding as Trouble
from tests.ci.report_examples import below_gate, case, faster, judge, noisy, record, same, slower

ONE = case(512, 32, 321.4, 0.0)
OTHER = case(1024, 32, 900.0, 0.0, causal=True)


def found(claim: str, *verdicts: CaseVerdict) -> Support:
    [read], _ = read_claims(claim)
    cases = tuple(one for one in (ONE, OTHER) if one.id in {verdict.id for verdict in verdicts})
    [assessed] = assess([read], record(cases), judge(Outcome.EQUIVALENT, *verdicts), Gates(), Template())
    return assessed.finding


@pytest.mark.parametrize(
    ("claim", "verdict", "finding"),
    [
        ("10% faster", faster(ONE, -12.8), Support.SUPPORTED),
        ("10% faster", faster(ONE, -9.4), Support.SUPPORTED),
        ("10% faster", faster(ONE, -6.0), Support.NOT_SUPPORTED),
        ("10% faster", below_gate(ONE, -2.0), Support.NOT_SUPPORTED),
        ("10% faster", same(ONE, 0.1), Support.CONTRADICTED),
        ("10% faster", slower(ONE, 4.9), Support.CONTRADICTED),
        ("1% faster", same(ONE, -0.6), Support.NOT_SUPPORTED),
        ("10% faster", noisy(ONE, 1.0, 8.0), Support.NOT_SUPPORTED),
        ("5% slower", slower(ONE, 4.9), Support.SUPPORTED),
        ("5% slower", faster(ONE, -12.0), Support.CONTRADICTED),
        ("no change", same(ONE, 0.1), Support.SUPPORTED),
        ("no change", slower(ONE, 4.9), Support.CONTRADICTED),
        ("no change", faster(ONE, -12.0), Support.CONTRADICTED),
        ("no change", noisy(ONE, 1.0, 8.0), Support.NOT_SUPPORTED),
        ("10% faster", noisy(ONE, 1.0, 8.0, (Trouble("drift", "it drifted", True),)), Support.NOT_MEASURED),
    ],
)
def test_one_case(claim: str, verdict: CaseVerdict, finding: Support) -> None:
    assert found(claim, verdict) is finding


@pytest.mark.parametrize(
    ("claim", "finding"),
    [
        ("s512_b32_h8_d64_fp16: 12% faster", Support.SUPPORTED),
        ("S512_B32_H8_D64_FP16: 12% faster", Support.SUPPORTED),
        ("s1024_b32_h8_d64_fp16_causal: 12% faster", Support.CONTRADICTED),
        ("S=512: 12% faster", Support.SUPPORTED),
        ("S=512 B=32 H=8 float16 non-causal: 12% faster", Support.SUPPORTED),
        ("causal: 12% faster", Support.CONTRADICTED),
        ("causal: no change", Support.SUPPORTED),
        ("fp16: 12% faster", Support.CONTRADICTED),
        ("12% faster", Support.CONTRADICTED),
        ("S=640: 12% faster", Support.NOT_MEASURED),
        ("bf16: 12% faster", Support.NOT_MEASURED),
        ("s9_b9_h9_d64_fp16: no change", Support.NOT_MEASURED),
    ],
)
def test_a_claim_is_about_every_case_that_it_names(claim: str, finding: Support) -> None:
    assert found(claim, faster(ONE, -12.8), same(OTHER, 0.0)) is finding


def test_the_line_shows_the_claim_and_the_number() -> None:
    read, _ = read_claims("S=512: 10% faster @octocat")
    [assessed] = assess(read, record((ONE,)), judge(Outcome.REGRESSED, slower(ONE, 4.9)), Gates(), Template())
    assert markdown_line(assessed.line) == (
        "⚠️ claim `S=512: 10% faster @octocat` is contradicted: `s512_b32_h8_d64_fp16` +4.9% [+4.8, +5.0]"
    )
