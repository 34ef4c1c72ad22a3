"""The profiler on a real GPU: both sides of the target case, quick, in at most 12 passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import archs, build
from kernelgate.bench.build.library import Sides
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel import case_list

ROOT = Path(__file__).parents[2]


@pytest.mark.gpu
def test_both_sides_have_every_figure_of_the_comment(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = build.build_tree(ROOT)
    options = nsight.Options(tmp_path, archs.only_gpu())
    done = nsight.profile(Sides(library, library), [case_list.TARGET.id], options)
    assert done.failures == ()
    assert [one.side for one in done.profiles] == ["base", "head"]
    wanted = {"duration_us", "tensor_pct", "dram_pct", "l2_hit_pct", "bank_conflicts", "occupancy_pct", "registers",
              "local_instructions", "shared_bytes", "grid", "waves", "sm_mhz", "stall_long_scoreboard"}  # fmt: skip
    for one in done.profiles:
        assert wanted <= one.metrics.keys()
    passes = [int(word) for word in capfd.readouterr().err.split(" passes")[0].split()[-1:]]
    assert passes
    assert passes[0] <= 12
