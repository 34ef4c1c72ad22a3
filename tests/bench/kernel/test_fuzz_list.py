"""What is fuzzed: attention's list as it always was, and how values are drawn for an axis."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.system.environment import DeviceKind
from tests import faulty, registered

DISTRIBUTIONS = {"normal", "uniform", "large", "tiny", "mixed", "peaked"}


def attention(seed: int, device: DeviceKind) -> dict[str, Trial]:
    return {trial.id: trial for trial in fuzz_trials.trials(seed, faulty.card(), device)}


@pytest.mark.parametrize(("device", "dtypes"), [("cuda", {"fp16", "bf16"}), ("cpu", {"fp32", "fp16", "bf16"})])
@pytest.mark.parametrize("seed", [0, 4])
def test_every_combination_is_run_every_time(device: DeviceKind, dtypes: set[str], seed: int) -> None:
    trials = attention(seed, device).values()
    seen = {(trial.axes["dtype"], trial.axes["causal"], trial.distribution) for trial in trials}
    assert seen == set(product(dtypes, (False, True), DISTRIBUTIONS))


def test_a_seed_repeats_the_list_and_another_one_does_not() -> None:
    assert attention(3, "cpu") == attention(3, "cpu")
    assert attention(3, "cpu") != attention(4, "cpu")
    (alone,) = fuzz_trials.select(3, faulty.card(), "cpu", None, ["s512_b32_h8"])
    assert alone == attention(3, "cpu")["s512_b32_h8"], "alone it is the same as among all"


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


def test_a_card_that_names_no_axes_is_fuzzed_on_the_cases_that_are_timed(tmp_path: Path) -> None:
    trials = drawn(tmp_path, "fuzz = {}")
    assert [(trial.id, trial.case_id) for trial in trials] == [
        ("m4_n8_fp16", "m4_n8_fp16"),
        ("m8_n8_bf16_fast", "m8_n8_bf16_fast"),
    ]
    assert len({trial.distribution for trial in trials}) == 2


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
