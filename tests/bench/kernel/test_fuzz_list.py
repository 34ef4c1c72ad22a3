"""What is fuzzed: attention's list as it always was, and how values are drawn for an axis."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.kernel import fuzz_risk, fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.system.environment import DeviceKind
from tests import faulty, registered

DISTRIBUTIONS = {"normal", "uniform", "large", "tiny", "mixed", "peaked"}
EDGES = {f"edge_s{seq}": seq for seq in (1, 4, 32, 63, 64, 65, 127, 128, 192, 256, 513, 1024)}
AROUND = {f"s{s}_b{b}_h{h}": (s, b, h) for s, b, h in product((448, 512, 640), (16, 32, 48), (4, 8, 16))}


def attention(seed: int, device: DeviceKind) -> dict[str, Trial]:
    return {trial.id: trial for trial in fuzz_trials.trials(seed, faulty.card(), device)}


# ----------------------------------------------------------------------------------------------------------------------
# Attention
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_list_is_the_27_configurations_and_the_12_edges(device: DeviceKind) -> None:
    trials = attention(7, device)
    assert set(trials) == set(AROUND) | set(EDGES)
    assert len(trials) == 27 + 12
    assert {name: trials[name].axes["S"] for name in EDGES} == EDGES
    assert {(trials[name].axes["B"], trials[name].axes["H"]) for name in EDGES} == {(2, 3)}


@pytest.mark.parametrize(("device", "dtypes"), [("cuda", {"fp16", "bf16"}), ("cpu", {"fp32", "fp16", "bf16"})])
@pytest.mark.parametrize("seed", range(5))
def test_every_combination_is_run_every_time(device: DeviceKind, dtypes: set[str], seed: int) -> None:
    trials = attention(seed, device).values()
    seen = {(trial.axes["dtype"], trial.axes["causal"], trial.distribution) for trial in trials}
    assert seen == set(product(dtypes, (False, True), DISTRIBUTIONS))


def test_lengths_are_ragged_and_scales_are_the_default_and_others() -> None:
    drawn = [attention(seed, "cuda")[name] for seed in range(5) for name in AROUND]
    away = [int(trial.axes["S"]) - AROUND[trial.id][0] for trial in drawn]
    assert 0 in away
    assert min(away) < -10
    assert max(away) > 10
    assert max(map(abs, away)) <= 40
    scales = {float(trial.axes["scale"]) for trial in drawn}
    assert 0.125 in scales
    assert len(scales) > 20
    assert all(1 / 32 <= scale <= 1 / 4 for scale in scales)


def test_a_seed_repeats_the_list_and_another_one_does_not() -> None:
    assert attention(3, "cpu") == attention(3, "cpu")
    assert attention(3, "cpu") != attention(4, "cpu")
    (alone,) = fuzz_risk.select(3, faulty.card(), "cpu", None, ["s512_b32_h8"])
    assert alone == attention(3, "cpu")["s512_b32_h8"], "alone it is the same as among all"


# ----------------------------------------------------------------------------------------------------------------------
# Any card
# ----------------------------------------------------------------------------------------------------------------------

BODY = """
cases = [dict(M=4, N=8, dtype="fp16"), dict(M=8, N=8, dtype="bf16", fast=True)]
cpu_cases = [dict(M=4, N=8, dtype="fp32")]
FUZZ
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
"""


def drawn(tmp_path: Path, fuzz: str, device: DeviceKind = "cuda", seed: int = 1) -> tuple[Trial, ...]:
    return fuzz_trials.trials(
        seed, registered.facts(registered.write_card(tmp_path, "any", BODY.replace("FUZZ", fuzz))), device
    )


def test_a_card_that_names_no_configurations_has_as_many_as_are_usual(tmp_path: Path) -> None:
    trials = drawn(tmp_path, "fuzz = dict(M=range(1, 600), N=(4, range(8, 9)), fast=(False, True))")
    assert [trial.id for trial in trials] == [f"fuzz_{number:02}" for number in range(32)]
    seen = {(one.axes["dtype"], one.axes["fast"], one.distribution) for one in trials}
    assert seen == set(product(("fp16", "bf16"), (False, True), DISTRIBUTIONS - {"peaked"})), "20 of 32"
    assert {one.axes["N"] for one in trials} == {4, 8}
    assert all(list(one.axes) == ["M", "N", "dtype", "fast", "distribution"] for one in trials)


def test_a_card_that_names_no_axes_is_fuzzed_on_the_cases_that_are_timed(tmp_path: Path) -> None:
    trials = drawn(tmp_path, "fuzz = {}")
    assert [(trial.id, trial.case_id) for trial in trials] == [
        ("m4_n8_fp16", "m4_n8_fp16"),
        ("m8_n8_bf16_fast", "m8_n8_bf16_fast"),
    ]
    assert len({trial.distribution for trial in trials}) == 2


# ----------------------------------------------------------------------------------------------------------------------
# One value
# ----------------------------------------------------------------------------------------------------------------------


@given(st.integers(-50, 3000), st.integers(1, 5000), st.integers(1, 7), st.integers(0, 99))
def test_ranges_give_what_is_in_them_and_their_ends_and_powers_of_two_more_often(
    start: int, length: int, step: int, seed: int
) -> None:
    whole = range(start, start + length, step)
    special = fuzz_trials.special(whole)
    assert {whole[0], whole[-1]} <= set(special) <= set(whole)
    powers = {2**n + near for n in range(40) for near in (-1, 0, 1)}
    assert set(special) == {value for value in whole if value in powers or value in (whole[0], whole[-1])}
    rng = random.Random(seed)
    found = [fuzz_trials.draw(rng, {"range": [start, start + length, step]}) for _ in range(200)]
    assert set(found) <= set(whole)
    assert sum(value in special for value in found) >= 60, "half of them, beside those by chance"


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6), st.integers(0, 99))
def test_between_positive_ends_it_is_even_by_logarithm(low: float, factor: float, seed: int) -> None:
    rng = random.Random(seed)
    high = low * factor
    found = [float(fuzz_trials.draw(rng, {"between": [low, high]})) for _ in range(200)]
    assert all(low * (1 - 1e-9) <= value <= high * (1 + 1e-9) for value in found)
    middle = low * factor**0.5
    assert factor < 1.01 or 50 < sum(value < middle for value in found) < 150


@given(st.integers(0, 99))
def test_choices_may_hold_ranges(seed: int) -> None:
    values: Any = {"choice": [7, {"range": [100, 200, 1]}, {"between": [0.25, 0.5]}, "word", True]}
    rng = random.Random(seed)
    found = [fuzz_trials.draw(rng, values) for _ in range(100)]
    kinds = {7: 0, "word": 0, True: 0}
    assert set(kinds) <= set(found)
    assert any(isinstance(one, int) and 100 <= one < 200 for one in found)
    assert any(isinstance(one, float) and 0.25 <= one <= 0.5 for one in found)
    assert fuzz_trials.draw(rng, 64) == 64
