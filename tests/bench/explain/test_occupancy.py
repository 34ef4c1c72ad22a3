"""The calculator against numbers that the hardware gave, and against NVIDIA's tables."""

from __future__ import annotations

import pytest

from kernelgate.bench.errors import UsageError
from kernelgate.bench.explain.occupancy import Tile, explain, gpu, occupancy, tile
from kernelgate.ci import cli


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "percent", "limits"),
    [
        # sm__maximum_warps_per_active_cycle_pct of the reports in tests/data/nsight (H200).
        ("h200", 128, 242, 49152, 12.5, ("registers",)),
        ("h200", 128, 242, 147456, 6.25, ("shared memory",)),
        ("h200", 128, 128, 49152, 25.0, ("registers", "shared memory")),
        ("h200", 64, 16, 98304, 6.25, ("shared memory",)),
        ("h200", 256, 40, 0, 75.0, ("registers",)),
        ("h200", 256, 76, 0, 37.5, ("registers",)),
        ("h100", 1024, 10, 128, 100.0, ("warps",)),
        # NVIDIA's table: 48 warps and 24 blocks on 8.9.
        ("l4", 32, 16, 0, 50.0, ("blocks",)),
        ("l4", 1024, 32, 0, 200 / 3, ("warps",)),
        ("a100", 256, 32, 0, 100.0, ("warps", "registers")),
        ("a100", 256, 0, 0, 100.0, ("warps",)),
    ],
)
def test_known_occupancies(
    name: str, threads: int, registers: int, shared: int, percent: float, limits: tuple[str, ...]
) -> None:
    found = occupancy(gpu(name), threads, registers, shared)
    assert found.percent == pytest.approx(percent)
    assert found.limits == limits


def test_what_no_block_may_have_does_not_fit() -> None:
    assert occupancy(gpu("l4"), 128, 64, 99 * 1024).blocks == 1
    assert occupancy(gpu("l4"), 128, 64, 99 * 1024 + 1).blocks == 0
    assert occupancy(gpu("l4"), 1024, 255, 0).limits == ("registers",)


def test_a_tile_is_as_large_as_the_kernel_makes_it() -> None:
    assert Tile(128, 64, 2).shared_bytes == 48 * 1024  # DefaultTile of csrc/fa_s512_tile.h
    assert "fits" in explain(tile("128x64", 2), gpu("l4"))
    assert "does not fit: 144 KiB" in explain(tile("128x128", 4), gpu("l4"))
    assert "will spill" in explain(tile("256x64", 2), gpu("h200"))


@pytest.mark.parametrize("words", ["128", "x64", "100x64", "128x60", "0x64", "128x0", "-128x64", "axb"])
def test_tiles_that_cannot_be_compiled(words: str) -> None:
    with pytest.raises(UsageError, match="--tile"):
        tile(words, 2)


def test_the_calculator_as_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["resources", "--tile", "128x64", "--stages", "2", "--gpu", "l4"]) == 0
    assert capsys.readouterr().out == (
        "128x64, 2 stages, 128 threads on the L4: fits: 48 KiB of shared memory a block, about 210 registers a thread "
        "(at least 160), 2 blocks and 8 warps on a multiprocessor, 16.7% occupancy, limited by registers and shared "
        "memory.\n"
    )
    assert cli.run(["resources", "--tile", "128x64", "--stages", "1"]) == 64
    assert cli.run(["resources", "--tile", "128x64", "--gpu", "tpu"]) == 64
    assert "it holds: l4, a100, h100, h200" in capsys.readouterr().err
