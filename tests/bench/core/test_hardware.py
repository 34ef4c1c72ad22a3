"""The tables of GPUs and dtypes, held against themselves and against torch."""

from __future__ import annotations

import pytest
import torch

from kernelgate.bench.check import examine
from kernelgate.bench.core import dtypes, hardware
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.hardware import GPUS, GpuModel
from kernelgate.bench.kernel.operands import TORCH_DTYPES


@pytest.mark.parametrize("name", GPUS)
def test_peaks_are_the_rates_of_all_multiprocessors(name: str) -> None:
    """The data sheet's peak is rate × multiprocessors × a clock between nine tenths of the highest and the highest."""
    gpu = GPUS[name]
    major, minor = int(gpu.limits.target[3]), int(gpu.limits.target[4])
    for dtype, peak in gpu.flops.items():
        rate = hardware.fp32_rate((major, minor)) if dtype == "fp32" else hardware.tensor_rate((major, minor), dtype)
        assert rate is not None, dtype
        assert 0.9 < peak / (rate * gpu.sm_count * gpu.max_sm_mhz * 1e6) < 1.01, dtype
    assert gpu.source


@pytest.mark.parametrize(
    ("device", "gpu"),
    [
        ("NVIDIA L40S", GPUS["l40s"]),
        ("NVIDIA A100-SXM4-80GB", GPUS["a100"]),
        ("NVIDIA H100 80GB HBM3", GPUS["h100"]),
        ("NVIDIA L40", None),
        (None, None),
    ],
)
def test_a_device_is_known_by_a_whole_word_of_its_name(device: str | None, gpu: GpuModel | None) -> None:
    assert hardware.of_device(device) == gpu


def test_a_name_that_the_table_lacks_is_refused() -> None:
    assert hardware.gpu("H200") == GPUS["h200"]
    with pytest.raises(UsageError, match="--gpu tpu: not in the table; it holds: l4, l40s, a100, h100, h200"):
        hardware.gpu("tpu")


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
