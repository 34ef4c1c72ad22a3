"""NaN and Inf come into the inputs that a card names, a few elements at a time, and what they give is compared."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

import pytest
import torch

from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import CaseAxes
from kernelgate.bench.kernel.operands import TORCH_DTYPES, Draw
from kernelgate.bench.system import lock
from tests import faulty
from tests.bench.machine import CPU


def draw(seed: int, dtype: str = "fp32") -> Draw:
    return Draw(CaseAxes({"N": 64, "dtype": dtype}), "cpu", seed, "nonfinite")


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp8_e5m2"])
def test_some_of_the_named_inputs_hold_some_of_the_values(dtype: str) -> None:
    seen = set()
    for seed in range(30):
        given = {name: torch.zeros(40, 5, dtype=TORCH_DTYPES[dtype]) for name in "xyz"}
        operands.plant_nonfinite(given, {"x": (nan, -inf), "y": (inf,)}, draw(seed, dtype))
        counts = {name: int((~tensor.float().isfinite()).sum()) for name, tensor in given.items()}
        assert counts["z"] == 0
        assert 1 <= counts["x"] + counts["y"] <= 2 * operands.PLANTED
        seen |= {
            str(value) for tensor in given.values() for value in tensor.float()[~tensor.float().isfinite()].tolist()
        }
    assert seen == {"nan", "-inf", "inf"}


@pytest.mark.parametrize(
    ("given", "allowed", "says"),
    [
        ({"x": torch.zeros(3)}, {}, "names no input for this case"),
        ({"x": torch.zeros(3)}, {"y": (nan,)}, "names y, which is no input of real numbers"),
        ({"x": torch.zeros(3, dtype=torch.int8)}, {"x": (nan,)}, "names x, which is no input of real numbers"),
    ],
)
def test_a_card_that_names_what_is_not_there(given: dict[str, torch.Tensor], allowed: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        operands.plant_nonfinite(given, allowed, draw(1))  # type: ignore[arg-type]


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
