"""Every trial of a card's domain has an id that repeats it."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, WAY
from tests import faulty, registered

MIXED = """
cases = [dict(N=64, dtype="fp8_e4m3", mode="auto"), dict(N=65, dtype="fp16", mode="a.b-c")]
cpu_cases = cases
fuzz = dict(N=range(1, 600), window=range(0, 9), alpha=(1, 0.5, between(1e-9, 2)), mode=("auto", 2), flip=(False, True))
def inputs(self, case, draw):
    return dict(x=draw(case.N))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
def configurations(self, device):
    return {"all": {}, "beta": dict(beta=between(-1, 1))}
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> CardFacts:
    """Axes beyond those of its cases, of several kinds of values each, and one that a single configuration has."""
    return registered.facts(registered.write_card(tmp_path_factory.mktemp("mixed"), "mixed", MIXED))


def repeated(card: CardFacts, device: DeviceKind, axes: fuzz_trials.Axes, seed: int) -> None:
    trial = fuzz_trials.trial(seed, card, device, axes)
    assert fuzz_trials.parse(seed, card, device, trial.id) == trial


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["attention", "mixed"])
def test_any_axes_way_distribution_and_scalar_can_be_named(
    mixed: CardFacts, name: str, device: DeviceKind, data: st.DataObject
) -> None:
    card = mixed if name == "mixed" else faulty.card()
    known = fuzz_trials.domain(card, device)
    axes: fuzz_trials.Axes = {axis: data.draw(st.sampled_from(whole)) for axis, whole in known.ranges.items()}
    axes |= {axis: data.draw(st.sampled_from(values)) for axis, values in known.choices.items()}
    axes |= {axis: data.draw(st.floats(*ends)) for axis, ends in known.intervals.items()}
    ways = ["plain", "huge", *fuzz_trials.WAYS[device]]
    axes = dict(data.draw(st.permutations(list({**axes, WAY: data.draw(st.sampled_from(ways))}.items()))))
    repeated(card, device, axes, data.draw(st.integers(0, 2**31)))


@pytest.mark.parametrize("id_", ["s4_b1_h1_d64_fp32_scale1_distribution-other_way-plain", "s4_distribution-normal"])
def test_what_is_no_id(id_: str) -> None:
    assert fuzz_trials.parse(1, faulty.card(), "cpu", id_) is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_soak_stays_in_the_domain_and_goes_on_for_ever(device: DeviceKind) -> None:
    card = faulty.card()
    known = fuzz_trials.domain(card, device)
    made = list(islice(fuzz_trials.drawn(7, card, device, 140 << 30), 900))
    assert made == list(islice(fuzz_trials.drawn(7, card, device, 140 << 30), 900)), "one seed, one soak"
    assert [trial.run_seed for trial in made] == list(range(7, 907)), "and other values in each trial"
    assert {trial.way for trial in made} >= {"plain", *fuzz_trials.WAYS[device]}
    assert ("huge" in {trial.way for trial in made}) == (device == "cuda")
    assert {trial.distribution for trial in made} == set(known.choices[DISTRIBUTION])
    for trial in made[:40]:
        assert fuzz_trials.parse(trial.run_seed, card, device, trial.id) == trial
    for trial in made:
        assert all(trial.axes[axis] in whole or trial.axes[axis] == 0 for axis, whole in known.ranges.items())
        assert trial.way == "huge" or fuzz_trials.is_light(trial.axes, device)
    assert len({trial.axes["S"] for trial in made}) > 150
    assert any(0 in (trial.axes["S"], trial.axes["B"], trial.axes["H"]) for trial in made), "the card asks for that"


def test_the_cases_called_in_between_differ_in_one_choice_or_size_or_exchange_two() -> None:
    axes = {"S": 64, "B": 3, "H": 5, "D": 64, "dtype": "fp32", "causal": False, "scale": 0.125}
    found = fuzz_trials.others(faulty.card(), "cpu", axes)
    changes = [{axis: value for axis, value in one.items() if value != axes[axis]} for one in found]
    for wanted in ({"causal": True}, {"dtype": "bf16"}, {"scale": -2.0}, {"S": 32}, {"B": 5, "H": 3}):
        assert wanted in changes
    assert all(
        len(change) == 1 or sorted(change.values()) == sorted(axes[axis] for axis in change) for change in changes
    )
