"""The tables of GPUs and dtypes, held against themselves and against torch."""

from __future__ import annotations

import pytest
import torch

from kernelgate.bench.check import examine
from kernelgate.bench.core import dtypes, hardware
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.hardware import GPUS
from kernelgate.bench.kernel.operands import TORCH_DTYPES


def test_peaks_are_the_rates_of_all_multiprocessors() -> None:
    """The data sheet's peak is rate × multiprocessors × a clock between nine tenths of the highest and the highest."""
    for name, gpu in GPUS.items():
        major, minor = int(gpu.limits.target[3]), int(gpu.limits.target[4])
        for dtype, peak in gpu.flops.items():
            fp32 = 128 if name == "a100" else 256  # CUDA C++ Programming Guide 13.0, "Throughput of Native Arithmetic"
            rate = fp32 if dtype == "fp32" else hardware.tensor_rate((major, minor), dtype) or 0
            assert 0.9 < peak / (rate * gpu.sm_count * gpu.max_sm_mhz * 1e6) < 1.01, (name, dtype)


def test_a_device_is_known_by_a_whole_word_of_its_name_and_a_gpu_by_its_own() -> None:
    known = {"NVIDIA L40S": "l40s", "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H100 80GB HBM3": "h100"}
    assert {name: hardware.of_device(name) for name in known} == {name: GPUS[gpu] for name, gpu in known.items()}
    assert hardware.of_device("NVIDIA L40") is hardware.of_device(None) is None
    assert hardware.gpu("H200") == GPUS["h200"]
    with pytest.raises(UsageError, match="--gpu tpu: not in the table; it holds: l4, l40s, a100, h100, h200"):
        hardware.gpu("tpu")


def test_each_dtype_is_torchs_and_has_a_smallest_step_and_patterns() -> None:
    assert set(DTYPES) == set(TORCH_DTYPES)
    for name, dtype in TORCH_DTYPES.items():
        facts = DTYPES[name]
        assert (getattr(torch, facts.torch_name), dtype.itemsize) == (dtype, facts.bytes)
        assert dtypes.canonical(str(dtype)) == name
        assert facts.smallest == (torch.finfo(dtype).tiny * torch.finfo(dtype).eps if dtype.is_floating_point else 0.5)
    assert set(examine.PATTERNS) == set(TORCH_DTYPES.values())


def test_an_unknown_one_is_named_with_those_there_are() -> None:
    assert [dtypes.canonical(one) for one in ("Half", "float", "double", "")] == ["fp16", "fp32", None, None]
    with pytest.raises(UsageError, match="there is no dtype 'double'; there are fp32, fp16"):
        dtypes.known("double")
