"""The variants: each applies to today's kernels and varies one thing; what comes of it is logged so that runs go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.variants import measure
from benchmarks.variants.__main__ import first_error
from benchmarks.variants.family import Family, diff
from benchmarks.variants.library import FAMILIES, select
from benchmarks.variants.logs import FamilyLog
from benchmarks.variants.measure import BaseProfile, TriedVariant
from kernelgate.bench import record
from kernelgate.bench.record import Device, Environment
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.lab.log import Closed, GateAttempt, Opened, TriedChange
from kernelgate.ci.policy import policy

DATA = Path(__file__).parents[2] / "data"
H200 = Environment(device=Device(name="NVIDIA H200", compute_capability="9.0"))
PROFILED = BaseProfile(
    kernel="norm",
    duration_us=20.0,
    bottleneck="barrier",
    strength=0.7,
    recommended=("narrower-barriers",),
    nvidia_gain_pct={"barrier": 31.0, "coalescing": 5.0},
    metrics={},
)
ONE = next(one for one in FAMILIES if one.name == "rmsnorm-narrow")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_variant_applies_and_has_a_known_action(family: Family) -> None:
    for number, variant in enumerate(family.variants, 1):
        assert diff(family.base, family.head(number)), variant.what
        assert variant.action in CATALOGUE
    assert len({variant.what for variant in family.variants}) == len(family.variants)


def test_there_are_enough_families_to_leave_one_out_and_enough_tries() -> None:
    assert len({one.name for one in select("cuda")}) >= 8
    assert sum(len(one.variants) for one in select("cuda")) >= 60


def test_an_edit_that_does_not_apply_is_named() -> None:
    twice = Family("twice", "rmsnorm", "cuda", "case", "", ONE.variants, ONE.variants[0].edits)
    with pytest.raises(ValueError, match=r"csrc/rmsnorm_kernel\.cu: 'kBytesPerLoad = 2;' stands there 0 times"):
        diff(twice.base, twice.head(1))


def test_the_log_goes_on_where_it_ended_and_keeps_what_failed(tmp_path: Path) -> None:
    one = FamilyLog(ONE, tmp_path)
    one.open(H200, PROFILED)
    one.tried(2, TriedVariant("error: expected a ';'", "build"))
    again = FamilyLog(ONE, tmp_path)
    again.open(H200, None)
    assert again.left() == (1, 3, 4, 5, 6, 7)
    opened, profiled, tried, _ = again.events()
    assert isinstance(opened, Opened)
    assert (opened.architecture, opened.gpu, opened.card) == ("sm_90", "NVIDIA H200", "rmsnorm")
    assert isinstance(profiled, GateAttempt)
    assert isinstance(tried, TriedChange)
    assert (tried.failed, tried.bottleneck, tried.recommended, tried.nvidia_gain_pct) == (
        "build",
        "barrier",
        False,
        5.0,
    )
    assert (tmp_path / ONE.name / "try-2.diff").read_text(encoding="utf-8").startswith("--- a/csrc/rmsnorm_kernel.cu")
    for number in again.left():
        again.tried(number, TriedVariant("", None))
    again.close()
    again.close()
    assert sum(isinstance(event, Closed) for event in again.events()) == 1


def test_what_was_recommended_is_known_by_the_profile(tmp_path: Path) -> None:
    one = FamilyLog(ONE, tmp_path)
    one.open(H200, PROFILED)
    one.tried(6, TriedVariant("faster"))
    tried = one.events()[-2]
    assert isinstance(tried, TriedChange)
    assert (tried.action, tried.recommended, tried.nvidia_gain_pct) == ("narrower-barriers", True, 31.0)


def test_a_record_is_judged_as_everywhere() -> None:
    made = measure.of_record(record.read(DATA / "comparisons" / "wgmma.json"), policy.load(), 12.0)
    assert made.failed is None
    target = next(one for one in made.outcomes if one.case == "s512_b32_h8_d64_fp16")
    assert target.status == "improved"
    assert target.change_pct == pytest.approx(-40.8, abs=0.2)
    assert 0 < target.error_pct < 0.2


def test_of_a_compiler_the_line_that_tells_is_kept() -> None:
    assert first_error("compiling\na.cu(3): error: no\n1 error detected") == "a.cu(3): error: no"
    assert first_error("") == "it did not build"
