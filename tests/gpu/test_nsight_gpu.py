"""The profiler on a real GPU: both sides of the target case, quick, in at most 12 passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import archs
from kernelgate.bench.build.library import Sides
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel import commit
from kernelgate.bench.kernel.cards import ChosenCase
from tests import faulty

ROOT = Path(__file__).parents[2]


@pytest.mark.gpu
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
