"""What is fuzzed besides a card's own list: its domain's edges, met with everything else, in ids that repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest

from kernelgate.bench.kernel import card_reader, fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, WAY, Trial
from kernelgate.bench.record import LAYOUTS
from kernelgate.bench.system.environment import DeviceKind
from tests import faulty, registered

GPU_BYTES, L4_BYTES = 140 << 30, 23 << 30
BODY = """
cases = [dict(M=4096, N=64, dtype="fp16")]
cpu_cases = [dict(M=4, N=64, dtype="fp32")]
fuzz = dict(M=range(1, 600), N=64, dtype=("fp16", "fp32"), scale=(1.0, between(-2, 2)))
LIMITS
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
"""


def risks(device: DeviceKind, seed: int = 1, memory: int = GPU_BYTES) -> tuple[Trial, ...]:
    return fuzz_trials.risks(seed, faulty.card(), device, memory)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_way_is_tried_on_a_small_case_that_no_tile_divides(device: DeviceKind) -> None:
    found = {trial.way: trial for trial in reversed(risks(device)) if trial.way in fuzz_trials.WAYS[device]}
    assert set(found) == set(fuzz_trials.WAYS[device])
    assert {trial.axes["S"] for trial in found.values()} == {65}


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_layouts_are_also_tried_where_tiles_and_wide_loads_divide_every_size(device: DeviceKind) -> None:
    """A kernel that takes wide loads only there reads misaligned data only there."""
    assert {trial.way for trial in risks(device) if trial.axes["S"] == 64} >= set(LAYOUTS)


def test_each_edge_meets_every_value_of_every_other_axis_in_one_run() -> None:
    card = faulty.card()
    known = fuzz_trials.domain(card, "cuda")
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
    assert any(t.axes["S"] == 4096 for t in huge)
    assert len(huge) == 4, "beyond 2 GiB, and beyond as many elements"
    assert [t.way for t in risks("cuda", memory=L4_BYTES) if t.way == "huge"] == ["huge"], "10.7 GB are too much"
    assert not [t for t in risks("cuda", memory=8 << 30) if t.way == "huge"]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_an_id_says_all_of_its_trial(device: DeviceKind) -> None:
    """Also without the list that it was in, and in the same run with the same values."""
    for trial in risks(device):
        assert fuzz_trials.parse(1, faulty.card(), device, trial.id) == trial
    smaller = risks(device)[0].id.replace("s65", "s3")
    (found,) = fuzz_trials.select(1, faulty.card(), device, None, [smaller])
    assert (found.axes["S"], found.axes[WAY], found.axes[DISTRIBUTION]) == (3, "offset", "normal")


def facts(folder: Path, limits: str) -> fuzz_trials.Domain:
    card = registered.facts(registered.write_card(folder, "any", BODY.replace("LIMITS", limits)))
    return fuzz_trials.domain(card, "cuda")


def test_limits_go_further(tmp_path: Path) -> None:
    known = facts(tmp_path, "limits = dict(M=range(1, 100000), scale=between(0.5, 8))")
    assert known.ranges == {"M": range(1, 100000)}
    assert known.choices["scale"] == (1.0, 0.5, 8.0)


def test_a_card_without_ranges_is_called_in_every_way_on_its_smallest_case(tmp_path: Path) -> None:
    body = BODY.replace("fuzz = dict(M=range(1, 600), N=64, dtype=", "fuzz = dict(M=4, N=64, dtype=")
    card = registered.facts(registered.write_card(tmp_path, "any", body.replace("LIMITS", "")))
    found = fuzz_trials.risks(1, card, "cpu")
    assert {trial.way for trial in found} == set(fuzz_trials.WAYS["cpu"])
    assert {trial.axes["M"] for trial in found} == {4}


@pytest.mark.parametrize(("first", "empty"), [(0, {"M"}), (1, set())])
def test_an_axis_is_empty_only_where_the_card_asks(tmp_path: Path, first: int, empty: set[str]) -> None:
    body = BODY.replace("LIMITS", f"limits = dict(M=range({first}, 9000))")
    card = registered.facts(registered.write_card(tmp_path, "any", body))
    made = [*fuzz_trials.risks(1, card, "cpu"), *islice(fuzz_trials.drawn(1, card, "cpu"), 300)]
    assert {axis for trial in made for axis in ("M", "N") if trial.axes[axis] == 0} == empty
    assert fuzz_trials.domain(card, "cpu").ranges == {"M": range(1, 9000)}


GROUPED = """
cases = [dict(H=64, G=4, N=32, dtype="fp16")]
cpu_cases = cases
fuzz = dict(N=(range(32, 65), range(128, 257)), dtype=("fp16",))
def configurations(self, device):
    return {"many": dict(H=8, G=4), "few": dict(H=9, G=3)}
def inputs(self, case, draw):
    return dict(x=draw(case.H, case.N))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
"""


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_no_configuration_has_is_not_tried(tmp_path: Path, device: DeviceKind) -> None:
    """A head count that no group divides, and sizes between two ranges."""
    card = registered.facts(registered.write_card(tmp_path, "any", GROUPED))
    made = [*fuzz_trials.risks(1, card, device), *islice(fuzz_trials.drawn(1, card, device), 300)]
    tried = [axes for trial in made for axes in (trial.axes, *trial.others)]
    assert {(axes["H"], axes["G"]) for axes in tried} <= {(8, 4), (9, 3), (64, 4)}
    assert {(axes["H"], axes["G"]) for axes in tried} >= {(8, 4), (9, 3)}
    assert not [axes for axes in tried if 64 < int(axes["N"]) < 128]
    assert {trial.way for trial in made} >= set(fuzz_trials.WAYS[device])


def test_elements_overflow_later_than_bytes() -> None:
    limits = {"M": {"range": [1, 1 << 17, 1]}, "N": {"range": [1, 1 << 17, 1]}}

    def largest(axes: Mapping[str, int]) -> tuple[float, float]:
        return 2.0 * axes["M"] * axes["N"], float(axes["M"] * axes["N"])

    found = [one["M"] * one["N"] for one in card_reader.extremes({"M": 8, "N": 8}, limits, largest)]
    assert sum(count < card_reader.BEYOND for count in found) == 2, "of bytes"
    assert sum(count >= card_reader.BEYOND for count in found) == 2, "of elements"
