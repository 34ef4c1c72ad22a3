"""What is fuzzed: a card's own list, its domain's edges met with everything else, and ids that repeat each trial."""

from __future__ import annotations

import random
from itertools import islice, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, WAY, KeptTrial, Trial
from kernelgate.bench.record import LAYOUTS
from kernelgate.bench.system.environment import DeviceKind
from tests import faulty, registered

DEVICES: tuple[DeviceKind, ...] = ("cuda", "cpu")
DISTRIBUTIONS = {"normal", "uniform", "large", "tiny", "mixed", "peaked"}
GPU_BYTES, L4_BYTES = 140 << 30, 23 << 30
BODY = """
cases = [dict(M=4096, N=64, dtype="fp16"), dict(M=4096, N=64, dtype="bf16", fast=True)]
cpu_cases = [dict(M=4, N=64, dtype="fp32")]
FUZZ
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
"""
RANGE = 'fuzz = dict(M=range(1, 600), N=64, dtype=("fp16", "fp32"), scale=(1.0, between(-2, 2)))\n'


def card(folder: Path, fuzz: str, body: str = BODY) -> CardFacts:
    return registered.facts(registered.write_card(folder, "any", body.replace("FUZZ", fuzz)))


def attention(seed: int, device: DeviceKind) -> dict[str, Trial]:
    return {trial.id: trial for trial in fuzz_trials.trials(seed, faulty.card(), device)}


@pytest.mark.parametrize(("device", "dtypes"), [("cuda", {"fp16", "bf16"}), ("cpu", {"fp32", "fp16", "bf16"})])
def test_every_combination_is_run_every_time(device: DeviceKind, dtypes: set[str]) -> None:
    trials = attention(4, device).values()
    seen = {(trial.axes["dtype"], trial.axes["causal"], trial.distribution) for trial in trials}
    assert seen == set(product(dtypes, (False, True), DISTRIBUTIONS))


def test_a_seed_repeats_the_list_and_another_one_does_not() -> None:
    assert attention(3, "cpu") == attention(3, "cpu") != attention(4, "cpu")
    assert fuzz_trials.select(3, faulty.card(), "cpu", None, ["s512_b32_h8"]) == (attention(3, "cpu")["s512_b32_h8"],)


def test_a_card_that_names_no_axes_is_fuzzed_on_the_cases_that_are_timed(tmp_path: Path) -> None:
    trials = fuzz_trials.trials(1, card(tmp_path, "fuzz = {}"), "cuda")
    timed = ["m4096_n64_fp16", "m4096_n64_bf16_fast"]
    assert [(trial.id, trial.case_id) for trial in trials] == [(one, one) for one in timed]


@given(st.integers(-50, 3000), st.integers(1, 5000), st.integers(1, 7), st.integers(0, 99))
def test_ranges_give_what_is_in_them_and_their_ends_and_powers_of_two_more_often(
    start: int, length: int, step: int, seed: int
) -> None:
    whole = range(start, start + length, step)
    special = fuzz_trials.special(whole)
    powers = {2**n + near for n in range(40) for near in (-1, 0, 1)}
    assert set(special) == {value for value in whole if value in powers or value in (whole[0], whole[-1])}
    rng = random.Random(seed)
    found = [fuzz_trials.draw(rng, {"range": [start, start + length, step]}) for _ in range(200)]
    assert set(found) <= set(whole)
    assert sum(value in special for value in found) >= 60, "half of them, beside those by chance"


def risks(device: DeviceKind, memory: int = GPU_BYTES) -> tuple[Trial, ...]:
    return fuzz_trials.risks(1, faulty.card(), device, memory)


@pytest.mark.parametrize("device", DEVICES)
def test_every_way_is_tried_on_a_small_case_that_no_tile_divides_and_layouts_where_all_divide(
    device: DeviceKind,
) -> None:
    """A kernel that takes wide loads only where they divide every size reads misaligned data only there."""
    found = {trial.way: trial for trial in reversed(risks(device)) if trial.way in fuzz_trials.WAYS[device]}
    assert set(found) == set(fuzz_trials.WAYS[device])
    assert {trial.axes["S"] for trial in found.values()} == {65}
    assert {trial.way for trial in risks(device) if trial.axes["S"] == 64} >= set(LAYOUTS)


def test_each_edge_meets_every_value_of_every_other_axis_in_one_run() -> None:
    known = fuzz_trials.domain(faulty.card(), "cuda")
    rows = [trial.axes for trial in risks("cuda") if trial.way == "plain"]
    asked = {
        (axis, edge, other, value)
        for axis, whole in known.ranges.items()
        for edge in fuzz_trials.edges(whole)
        for other, values in known.choices.items()
        for value in values
        if value != "nonfinite"
    }
    met = {(axis, row[axis], other, row[other]) for row in rows for axis in known.ranges for other in known.choices}
    assert asked <= met


def test_offsets_beyond_two_gib_are_tried_where_the_memory_is_there() -> None:
    huge = [trial for trial in risks("cuda") if trial.way == "huge"]
    elements = [int(t.axes["S"]) * int(t.axes["B"]) * int(t.axes["H"]) * int(t.axes["D"]) for t in huge]
    assert all(2 * count > 2**31 for count in elements)
    assert any(int(t.axes["B"]) * int(t.axes["H"]) > 2**16 for t in huge), "more blocks than a grid's y or z has"
    assert len(huge) == 4, "beyond 2 GiB, and beyond as many elements"
    assert [t.way for t in risks("cuda", L4_BYTES) if t.way == "huge"] == ["huge"], "10.7 GB are too much"
    assert not [t for t in risks("cuda", 8 << 30) if t.way == "huge"]


def test_limits_go_further(tmp_path: Path) -> None:
    known = fuzz_trials.domain(
        card(tmp_path, f"{RANGE}limits = dict(M=range(1, 100000), scale=between(0.5, 8))"), "cuda"
    )
    assert known.ranges == {"M": range(1, 100000)}
    assert known.choices["scale"] == (1.0, 0.5, 8.0)


def test_a_card_without_ranges_is_called_in_every_way_on_its_smallest_case(tmp_path: Path) -> None:
    found = fuzz_trials.risks(1, card(tmp_path, 'fuzz = dict(M=4, N=64, dtype=("fp16", "fp32"))'), "cpu")
    assert {trial.way for trial in found} == set(fuzz_trials.WAYS["cpu"])
    assert {trial.axes["M"] for trial in found} == {4}


@pytest.mark.parametrize(("first", "empty"), [(0, {"M"}), (1, set())])
def test_an_axis_is_empty_only_where_the_card_asks(tmp_path: Path, first: int, empty: set[str]) -> None:
    asking = card(tmp_path, f"{RANGE}limits = dict(M=range({first}, 9000))")
    made = [*fuzz_trials.risks(1, asking, "cpu"), *islice(fuzz_trials.drawn(1, asking, "cpu"), 300)]
    assert {axis for trial in made for axis in ("M", "N") if trial.axes[axis] == 0} == empty
    assert fuzz_trials.domain(asking, "cpu").ranges == {"M": range(1, 9000)}


GROUPED = BODY.replace("M=4096, N=64", "M=64, G=4, N=32").replace("M=4, N=64", "M=64, G=4, N=32")
GROUPED += 'def configurations(self, device):\n    return {"many": dict(M=8, G=4), "few": dict(M=9, G=3)}\n'


@pytest.mark.parametrize("device", DEVICES)
def test_what_no_configuration_has_is_not_tried(tmp_path: Path, device: DeviceKind) -> None:
    """A head count that no group divides, and sizes between two ranges."""
    fuzz = 'fuzz = dict(N=(range(32, 65), range(128, 257)), dtype=("fp16", "fp32"))'
    grouped = card(tmp_path, fuzz, GROUPED)
    made = [*fuzz_trials.risks(1, grouped, device), *islice(fuzz_trials.drawn(1, grouped, device), 300)]
    tried = [axes for trial in made for axes in (trial.axes, *trial.others)]
    assert {(8, 4), (9, 3)} <= {(axes["M"], axes["G"]) for axes in tried} <= {(8, 4), (9, 3), (64, 4)}
    assert not [axes for axes in tried if 64 < int(axes["N"]) < 128]
    assert {trial.way for trial in made} >= set(fuzz_trials.WAYS[device])


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
    return card(tmp_path_factory.mktemp("mixed"), "", MIXED)


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["attention", "mixed"])
def test_any_axes_way_distribution_and_scalar_can_be_named(
    mixed: CardFacts, name: str, device: DeviceKind, data: st.DataObject
) -> None:
    known_card = mixed if name == "mixed" else faulty.card()
    known = fuzz_trials.domain(known_card, device)
    axes: fuzz_trials.Axes = {axis: data.draw(st.sampled_from(whole)) for axis, whole in known.ranges.items()}
    axes |= {axis: data.draw(st.sampled_from(values)) for axis, values in known.choices.items()}
    axes |= {axis: data.draw(st.floats(*ends)) for axis, ends in known.intervals.items()}
    ways = ["plain", "huge", *fuzz_trials.WAYS[device]]
    axes = dict(data.draw(st.permutations(list({**axes, WAY: data.draw(st.sampled_from(ways))}.items()))))
    seed = data.draw(st.integers(0, 2**31))
    trial = fuzz_trials.trial(seed, known_card, device, axes)
    assert fuzz_trials.parse(seed, known_card, device, trial.id) == trial


def test_an_id_that_nobody_listed_is_a_trial() -> None:
    smaller = risks("cuda")[0].id.replace("s65", "s3")
    (found,) = fuzz_trials.select(1, faulty.card(), "cuda", None, [smaller])
    assert (found.axes["S"], found.axes[WAY], found.axes[DISTRIBUTION]) == (3, "offset", "normal")
    for wrong in ("s4_b1_h1_d64_fp32_scale1_distribution-other_way-plain", "s4_distribution-normal"):
        assert fuzz_trials.parse(1, faulty.card(), "cpu", wrong) is None


@pytest.mark.parametrize("device", DEVICES)
def test_a_soak_stays_in_the_domain_and_goes_on_for_ever(device: DeviceKind) -> None:
    known = fuzz_trials.domain(faulty.card(), device)
    made = list(islice(fuzz_trials.drawn(7, faulty.card(), device, GPU_BYTES), 600))
    again = islice(fuzz_trials.drawn(7, faulty.card(), device, GPU_BYTES), 60)
    assert made[:60] == list(again), "one seed, one soak"
    assert [trial.run_seed for trial in made] == list(range(7, 607)), "and other values in each trial"
    assert {trial.way for trial in made} >= {"plain", *fuzz_trials.WAYS[device]}
    assert ("huge" in {trial.way for trial in made}) == (device == "cuda")
    assert {trial.distribution for trial in made} == set(known.choices[DISTRIBUTION])
    for trial in made:
        assert all(trial.axes[axis] in whole or trial.axes[axis] == 0 for axis, whole in known.ranges.items())
        assert trial.way == "huge" or fuzz_trials.is_light(trial.axes, device)
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


# What is kept of a soak

ID = "s37_b1_h1_d64_fp32_causal_scale1_distribution-normal_way-plain"


def test_what_the_card_no_longer_has_is_left_out(tmp_path: Path) -> None:
    for id_ in ("n37_fp32_distribution-normal_way-plain", ID.replace("plain", "stream")):
        fuzz_trials.keep(tmp_path, "attention", KeptTrial(id=id_, seed=5, why="error 1"))
    assert fuzz_trials.kept_failures(tmp_path, faulty.card(), "cpu") == ()


@pytest.mark.parametrize("content", [b"{", b'{"id": "a", "seed": -1, "why": ""}', b"\xff" * 30_000])
def test_a_broken_file_is_named_and_left_alone(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    good = fuzz_trials.keep(tmp_path, "attention", KeptTrial(id=ID, seed=5, why="error 1"))
    broken = good.with_name("broken.json")
    broken.write_bytes(content)
    assert [one.id for one in fuzz_trials.kept_failures(tmp_path, faulty.card(), "cpu")] == [ID]
    assert f"{broken} is left out" in capsys.readouterr().err
    assert broken.read_bytes() == content
