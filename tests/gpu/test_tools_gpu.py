"""NVIDIA's tools on a real GPU: the profiler on both sides of the target case, quick, in at most 12 passes; and faults
that are planted, built for their test alone, are caught by the sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import archs
from kernelgate.bench.build.library import Sides
from kernelgate.bench.build.toolchain import find
from kernelgate.bench.check import sanitize
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel import commit
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.system import cuda_tools
from tests import faulty, sanitized

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
KERNELS = Path(__file__).parent / "kernels" / "sanitize"


def test_both_sides_have_every_figure_of_the_comment(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (library,) = commit.build_tree(ROOT).built.values()
    card = faulty.card()
    options = nsight.Options(tmp_path, archs.only_gpu())
    done = nsight.profile({card.name: Sides(library, library)}, [ChosenCase(card, card.target)], options)
    assert done.failures == ()
    assert [one.side for one in done.profiles] == ["base", "head"]
    wanted = {"duration_us", "tensor_pct", "dram_pct", "l2_hit_pct", "bank_conflicts", "occupancy_pct", "registers",
              "local_instructions", "shared_bytes", "grid", "waves", "sm_mhz", "stall_long_scoreboard"}  # fmt: skip
    for one in done.profiles:
        assert wanted <= one.metrics.keys()
    passes = [int(word) for word in capfd.readouterr().err.split(" passes")[0].split()[-1:]]
    assert passes
    assert passes[0] <= 12


PLANTED = {
    "memcheck": ("out_of_bounds", 7),
    "racecheck": ("race", 6),
    "initcheck": ("uninitialised", 4),
    "synccheck": ("divergent_barrier", 8),
}


@pytest.mark.parametrize("tool", PLANTED)
def test_planted_faults_are_caught(tool: str, tmp_path: Path) -> None:
    name, line = PLANTED[tool]
    cuda = find().cuda
    assert cuda is not None
    program = tmp_path / name
    target = archs.sm(archs.only_gpu())
    words = [cuda.nvcc, "-arch", target, "-lineinfo", "-std=c++17", "-o", program, KERNELS / f"{name}.cu"]
    subprocess.run(words, check=True)
    found = sanitized.program(cuda_tools.find(sanitize.SANITIZER), tool, [program])
    assert [(one.file, one.line) for one in found] == [(f"{name}.cu", line)]
