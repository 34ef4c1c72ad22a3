from __future__ import annotations

import re

import pytest

from kernelgate.bench.build import archs
from kernelgate.bench.core.errors import BuildError, UsageError
from kernelgate.bench.core.hardware import Capability

CSRC = ((8, 0), (8, 9), (9, 0))


@pytest.mark.parametrize(
    ("arch_list", "expected"),
    [
        (" 9.0,8.9 ; 8.0 ", ((8, 0), (8, 9), (9, 0))),
        ("12.0", ((12, 0),)),
        ("9.0a 9.0;8.9", ((8, 9), (9, 0), (9, 0, "a"))),
        ("", ()),
    ],
)
def test_parse(arch_list: str, expected: tuple[archs.Target, ...]) -> None:
    assert archs.parse(arch_list) == expected


@pytest.mark.parametrize("word", ["10.0f", "9.0+PTX", "89"])
def test_parse_refuses(word: str) -> None:
    with pytest.raises(UsageError, match=rf"TORCH_CUDA_ARCH_LIST: '{re.escape(word)}' is not a compute capability: wr"):
        archs.parse(f"8.9;{word}")


def test_demanded_brings_architecture_specific_code_along() -> None:
    available: list[archs.Target] = [(8, 9), (9, 0), (9, 0, "a")]
    assert archs.demanded([(9, 0)], available, "gemm") == ((9, 0), (9, 0, "a"))
    assert archs.demanded([(9, 0, "a"), (8, 9)], available, "gemm") == ((8, 9), (9, 0, "a"))
    assert archs.demanded([(9, 0)], CSRC, "gemm") == ((9, 0),)
    assert archs.demanded([(9, 0, "a")], CSRC, "gemm") == ((9, 0),), "a base from before there was an sm_90a"
    with pytest.raises(BuildError, match=r"asks for sm_86, sm_120, but the sources of gemm .*: sm_80, sm_89, sm_90"):
        archs.demanded([(12, 0), (8, 6), (8, 9)], CSRC, "gemm")
    with pytest.raises(BuildError, match="they have: none"):
        archs.demanded([(8, 9)], (), "gemm")


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ([(8, 9), (9, 0)], ((8, 9), (9, 0))),
        ([(8, 6)], ((8, 0),)),
        ([(12, 0)], ()),
    ],
)
def test_serving(gpus: list[Capability], expected: tuple[archs.Target, ...]) -> None:
    assert archs.serving(gpus, CSRC) == expected
