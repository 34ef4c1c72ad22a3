"""One case's inputs and outputs: what is refused, what is changed, and parts that are checked alone."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import CaseAxes, Kernel, Output
from kernelgate.bench.kernel.fuzz_trials import KNOWN_DISTRIBUTIONS
from kernelgate.bench.kernel.operands import TORCH_DTYPES, Draw
from kernelgate.bench.system import lock
from tests import faulty
from tests.bench.machine import CPU

CASE = CaseAxes({"M": 4, "dtype": "fp16"})


class Given(Kernel):
    """A card whose answers the test says."""

    def __init__(self, inputs: Any = None, outputs: Any = None, **members: Any) -> None:
        self.given, self.made = inputs, outputs
        for name, value in members.items():
            setattr(self, name, value)

    def inputs(self, case: Any, draw: Draw) -> Any:  # noqa: ARG002
        return self.given

    def outputs(self, case: Any, **inputs: Any) -> Any:
        return super().outputs(case, **inputs) if self.made is None else self.made


def inputs(value: Any) -> Any:
    return operands.inputs(Given(value), CASE, Draw(CASE, "cpu", 0))


def test_an_output_is_like_the_first_input_unless_the_card_says_more() -> None:
    given = {"n": 3, "x": torch.ones(2, 5, dtype=torch.bfloat16), "y": torch.ones(9)}
    assert operands.output_shapes(Given(), CASE, given) == {"out": ((2, 5), torch.bfloat16)}
    said = {"a": Output(4), "b": Output(dtype="torch.int32")}
    shapes = {"a": ((4,), torch.float16), "b": ((), torch.int32)}
    assert operands.output_shapes(Given(outputs=said), CASE, given) == shapes
    both = operands.output_shapes(Given(outputs={"y": Output(9), **said}, in_place=["y"]), CASE, given)
    assert list(both.items()) == [("y", ((9,), torch.float32)), *shapes.items()]

    class InPlace(Kernel):
        in_place = ("y",)

    assert operands.output_shapes(InPlace(), CASE, given) == {"y": ((9,), torch.float32)}


def test_an_oracle_sees_floats_in_float64_and_integers_as_they_are() -> None:
    given = {"x": torch.ones(2).half(), "parts": (torch.ones(1).bfloat16(),), "index": torch.arange(2), "n": 3}
    exact = operands.exact(given)
    assert exact["x"].dtype == exact["parts"][0].dtype == torch.float64
    assert (exact["index"].dtype, type(exact["parts"]), exact["n"]) == (torch.int64, tuple, 3)


@pytest.mark.parametrize("results", [None, (torch.ones(1),) * 2, {"other": torch.ones(1)}])
def test_other_results_are_refused(results: Any) -> None:
    with pytest.raises(UsageError, match=r"oracle\(\) gave .*; it must give a tensor for each output: out"):
        operands.named(results, ("out",), "oracle()")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 2), st.integers(0, 99))
def test_a_part_is_that_part_of_the_whole(shape: list[int], first: int, more: int, seed: int) -> None:
    """Along one axis or several neighbouring ones."""
    first = min(first, len(shape) - 1)
    last = min(first + more, len(shape) - 1)
    axes = tuple(range(first, last + 1))
    tensor = torch.arange(torch.Size(shape).numel()).reshape(shape)
    parts = operands.parts(Given(independent={"x": axes if more else first}), {"x": tuple(shape)})
    assert parts.count == torch.Size(shape[first : last + 1]).numel()
    generator = torch.Generator().manual_seed(seed)
    entries = torch.randperm(parts.count, generator=generator)[: max(1, parts.count // 2)]
    taken = parts.take("x", tensor, entries)
    assert taken.shape == (*shape[:first], *[1] * (last - first), len(entries), *shape[last + 1 :])
    sizes = shape[first : last + 1]
    for at, entry in enumerate(entries.tolist()):
        index: tuple[Any, ...] = tuple(int(one) for one in torch.unravel_index(torch.tensor(entry), sizes))
        rest = (slice(None),) * first
        assert torch.equal(taken[(*rest, *[0] * (last - first), at)], tensor[(*rest, *index)])
    taken.zero_()
    assert tensor.sum() == sum(range(tensor.numel())), "it is a copy"


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("distribution", KNOWN_DISTRIBUTIONS)
def test_values_are_of_the_dtype_finite_and_repeated_by_the_seed(dtype: str, distribution: str) -> None:
    case = CaseAxes({"dtype": dtype})
    one, same, other = (Draw(case, "cpu", seed, distribution)(300, 5) for seed in (1, 1, 2))
    assert one.dtype == TORCH_DTYPES[dtype]
    assert torch.isfinite(one.float()).all()
    assert torch.equal(one.float(), same.float())
    assert not torch.equal(one.float(), other.float())


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp8_e5m2"])
def test_some_of_the_named_inputs_hold_some_of_the_values(dtype: str) -> None:
    seen = set()
    for seed in range(30):
        given = {name: torch.zeros(40, 5, dtype=TORCH_DTYPES[dtype]) for name in "xyz"}
        operands.plant_nonfinite(given, {"x": (nan, -inf), "y": (inf,)}, Draw(CASE, "cpu", seed))
        counts = {name: int((~tensor.float().isfinite()).sum()) for name, tensor in given.items()}
        assert counts["z"] == 0
        assert 1 <= counts["x"] + counts["y"] <= 2 * operands.PLANTED
        seen |= {
            str(value) for tensor in given.values() for value in tensor.float()[~tensor.float().isfinite()].tolist()
        }
    assert seen == {"nan", "-inf", "inf"}


@pytest.mark.parametrize(
    ("allowed", "says"), [({}, "names no input for this case"), ({"x": (nan,)}, "names x, which is no input of real")]
)
def test_a_card_that_names_what_is_not_there(allowed: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        operands.plant_nonfinite({"x": torch.zeros(3, dtype=torch.int8)}, allowed, Draw(CASE, "cpu", 1))


@pytest.mark.usefixtures("in_process")
def test_a_kernel_that_hides_nan_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    trial = "s9_b2_h3_d64_fp32_scale0.125_distribution-nonfinite_way-plain"
    hidden, right = (
        fuzz.run(faulty.build(tmp_path / name, f"nonfinite_{name}", name), faulty.card(), 1, CPU, [trial]).results[0]
        for name in ("nan_counts_as_0", "none")
    )
    assert (hidden.passed, right.passed) == (False, True)
    assert (hidden.message or "").startswith("finite at out[")
    assert (hidden.message or "").endswith("where the oracle has nan")
