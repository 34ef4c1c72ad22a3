"""Two builds of the kernel in one process: each namespace runs its own code."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from kernelgate.bench.build.library import Library
from kernelgate.bench.kernel import cards, commit, operands
from tests.attention import error_ratio, inputs, reference

ROOT = Path(__file__).parent.parent.parent


def other_tree(folder: Path) -> Path:
    """The sources of the CPU path, changed so that the softmax runs at twice the scale."""
    shutil.copytree(ROOT / "csrc", folder / "csrc", ignore=shutil.ignore_patterns("*.cu", "*.cuh", "*.py", "*.so"))
    shutil.copytree(ROOT / cards.FOLDER, folder / cards.FOLDER)
    block = folder / "csrc" / "attention" / "cpu" / "block.h"
    source = block.read_text(encoding="utf-8")
    assert source.count("kLog2E = 1.44269504f") == 1
    block.write_text(source.replace("kLog2E = 1.44269504f", "kLog2E = 2.88539008f"), encoding="utf-8")
    return folder


def test_each_runs_its_own_code(kernel_library: Library, tmp_path: Path) -> None:
    base = operands.load(kernel_library)
    head = operands.load(commit.build_tree(other_tree(tmp_path)).built["attention"])
    q, k, v = inputs(2, 3, 65, torch.float32)
    for operators, scale in ((base, 0.125), (head, 0.25), (base, 0.125)):
        out = torch.full_like(q, float("nan"))
        operators.forward_out(q, k, v, out, 0.125, True)
        assert error_ratio(out, reference(q, k, v, scale, True)) <= 1
