"""Claims beside measurements: supported, not supported, contradicted, not measured."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Card, Case, RunRecord
from kernelgate.ci.github.claims import Support, assess, cases_of, read_claims
from kernelgate.ci.judge.case import CaseVerdict, Outcome
from kernelgate.ci.judge.validity import Finding as Trouble
from kernelgate.ci.policy.policy import Gates
from tests.ci.report_examples import case, faster, judge, noisy, record, same, slower

ONE = case(512, 32, 321.4, 0.0)
OTHER = case(1024, 32, 900.0, 0.0, causal=True)


def found(claim: str, *verdicts: CaseVerdict) -> Support:
    [read], _ = read_claims(claim)
    cases = tuple(one for one in (ONE, OTHER) if one.id in {verdict.id for verdict in verdicts})
    [assessed] = assess([read], record(cases), judge(Outcome.EQUIVALENT, *verdicts), Gates())
    return assessed.finding


@pytest.mark.parametrize(
    ("claim", "verdict", "finding"),
    [
        ("10% faster", faster(ONE, -12.8), Support.SUPPORTED),
        ("10% faster", faster(ONE, -6.0), Support.NOT_SUPPORTED),
        # 1.33 times as fast is 33% more speed, and 24.8% less time.
        ("33% faster", faster(ONE, -25.0), Support.SUPPORTED),
        ("33% less time", faster(ONE, -25.0), Support.NOT_SUPPORTED),
        ("10% faster", same(ONE, 0.1), Support.CONTRADICTED),
        ("10% faster", noisy(ONE, 1.0, 8.0), Support.NOT_SUPPORTED),
        ("no change", same(ONE, 0.1), Support.SUPPORTED),
        ("no change", slower(ONE, 4.9), Support.CONTRADICTED),
        ("10% faster", noisy(ONE, 1.0, 8.0, (Trouble("drift", "it drifted", True),)), Support.NOT_MEASURED),
    ],
)
def test_one_case(claim: str, verdict: CaseVerdict, finding: Support) -> None:
    assert found(claim, verdict) is finding


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("S=512: −10%", -10.0),
        ("about 3,5% less time", -3.5),
        ("1.25x faster", -20.0),
        ("S=1024: unchanged within 1%", 0.0),
        ("10% faster or 20% faster", None),
        ("100% faster at S=1", None),
        # What is less or more decides, not the words alone.
        ("throughput +25%", -20.0),
        ("throughput drops by 20%", 25.0),
        ("throughput: 20% slower", 20.0),
        ("0.9x the time", -10.0),
        ("1.25x speedup of the time", -20.0),
        ("latency increases by 20%", 20.0),
        ("reduces registers by 20%", None),
        ("10% faster with fewer registers", -10.0),
        # Another thing that stays the same takes the claim not back.
        ("5% faster, no change in numerics", -5.0),
        ("no slowdown of more than 2%", 0.0),
        ("no change (1.02x)", 0.0),
        # Two times, and ranges.
        ("reduces latency from 50us to 45us", -10.0),
        ("45.0 ms -> 50.0 ms", 11.11),
        ("50us to 45us, then 45us to 40us", None),
        ("50 µs -> 0.045 ms", None),
        ("between 10 and 15% faster", -10.0),
        ("1.25-1.5x faster", -20.0),
        ("up to 15% faster", None),
        ("twice as fast", -50.0),
        ("half the time", -50.0),
        ("speedup of 1.25", -20.0),
        ("8 pct faster", -8.0),
    ],
)
def test_what_a_line_claims_of_the_time(line: str, change: float | None) -> None:
    claims, unread = read_claims(line)
    assert [round(one.change_pct, 2) for one in claims] == ([] if change is None else [change])
    assert bool(unread) is (change is None and line != "50 µs -> 0.045 ms")


@pytest.mark.parametrize(
    ("claim", "finding"),
    [
        ("s512_b32_h8_d64_fp16: 12% faster", Support.SUPPORTED),
        ("s1024_b32_h8_d64_fp16_causal: 12% faster", Support.CONTRADICTED),
        ("causal: 12% faster", Support.CONTRADICTED),
        ("causal: no change", Support.SUPPORTED),
        ("S=640: 12% faster", Support.NOT_MEASURED),
    ],
)
def test_a_claim_is_about_every_case_that_it_names(claim: str, finding: Support) -> None:
    assert found(claim, faster(ONE, -12.8), same(OTHER, 0.0)) is finding


def about(claim: str, *cases: Case, cards: tuple[Card, ...] = ()) -> set[str]:
    [read], _ = read_claims(claim)
    return {f"{key.card}/{key.id}" for key in cases_of(read, RunRecord(cases=cases, cards=cards)).cases}


OLD = (Case(id="a", axes={"S": 512, "causal": 0.0, "B": 1.0}), Case(id="b", axes={"S": 512, "causal": 1.0, "B": 1.0}))
NEW = (
    Case(id="a", axes={"S": 512, "causal": False}),
    Case(id="b", axes={"S": 512, "causal": True}),
    Case(id="c", axes={"S": 64}),
)


@pytest.mark.parametrize(
    ("claim", "old", "new"),
    [
        ("causal: 10% faster", "b", "b"),
        ("not causal: 10% faster", "a", "ac"),
        ("causal=2: 10% faster", "", ""),
        ("causally: 10% faster", "ab", "abc"),
        ("S=512 non-causal and B=1: no change", "a", ""),
    ],
)
def test_an_axis_is_on_or_off_whatever_its_name(claim: str, old: str, new: str) -> None:
    """Old records have 1 and 0; a case that leaves such an axis out means off. NEW has no axis B."""
    assert about(claim, *OLD) == {f"/{id_}" for id_ in old}
    assert about(claim, *NEW) == {f"/{id_}" for id_ in new}


KERNELS = (
    Case(card="rms_norm", id="m4_fp16", axes={"M": 4, "use_bias": True, "dtype": "fp16"}),
    Case(card="rms_norm", id="m8_bf16", axes={"M": 8, "use_bias": False, "dtype": "bf16"}),
    Case(card="norm", id="m4_fp16", axes={"M": 4, "eps": 1e-6, "layout": "row-major", "dtype": "fp16"}),
    Case(card="gemm", id="k4", axes={"K": 4, "mode": "fast"}),
    Case(card="group", id="g4", axes={"G": 4}),
)
KERNEL_CARDS = (
    Card(name="rms_norm", label="RMSNorm"),
    Card(name="norm", label="Layer norm"),
    Card(name="gemm"),
    Card(name="group", label="Group layer norm"),
)


@pytest.mark.parametrize(
    ("claim", "cases"),
    [
        ("norm/m4_fp16: 10% faster", {"norm/m4_fp16"}),
        ("M=4: 10% faster", {"rms_norm/m4_fp16", "norm/m4_fp16"}),
        ("K=4 mode=FAST: 10% faster", {"gemm/k4"}),
        ("M=4 K=4: 10% faster", set()),
        ("without use_bias: 10% faster", {"rms_norm/m8_bf16"}),
        ("dtype=torch.bfloat16: 10% faster", {"rms_norm/m8_bf16"}),
        ("rms_norm: 10% faster", {"rms_norm/m4_fp16", "rms_norm/m8_bf16"}),
        ("Layer norm: 10% faster", {"norm/m4_fp16"}),
        ("everything: 10% faster", {f"{case.card}/{case.id}" for case in KERNELS}),
    ],
)
def test_a_claim_follows_the_cards(claim: str, cases: set[str]) -> None:
    assert about(claim, *KERNELS, cards=KERNEL_CARDS) == cases
