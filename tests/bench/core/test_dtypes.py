"""One name for each dtype, however it is spelled."""

from __future__ import annotations

import pytest
import torch

from kernelgate.bench.check import examine
from kernelgate.bench.core import dtypes
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel.operands import TORCH_DTYPES


@pytest.mark.parametrize("name", DTYPES)
def test_torch_has_each_of_this_size(name: str) -> None:
    dtype = getattr(torch, DTYPES[name].torch_name)
    assert dtype.itemsize == DTYPES[name].bytes
    assert dtypes.canonical(str(dtype)) == name


def test_each_has_a_smallest_step_and_patterns() -> None:
    assert set(DTYPES) == set(TORCH_DTYPES)
    for name, dtype in TORCH_DTYPES.items():
        step = torch.finfo(dtype).tiny * torch.finfo(dtype).eps if dtype.is_floating_point else 0.5
        assert DTYPES[name].smallest == step
    assert set(examine.PATTERNS) == set(TORCH_DTYPES.values())


def test_an_unknown_one_is_named_with_those_there_are() -> None:
    assert [dtypes.canonical(one) for one in ("Half", "float", "double", "")] == ["fp16", "fp32", None, None]
    assert dtypes.known("half") == "fp16"
    with pytest.raises(UsageError, match="there is no dtype 'double'; there are fp32, fp16"):
        dtypes.known("double")
