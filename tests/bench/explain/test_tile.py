"""The calculator of tiles."""

from __future__ import annotations

import pytest

from kernelgate.bench.errors import UsageError
from kernelgate.bench.explain.tile import Tile, explain, parse
from kernelgate.bench.hardware import gpu
from kernelgate.ci import cli


def test_a_tile_is_as_large_as_the_kernel_makes_it() -> None:
    assert Tile(128, 64, 2).shared_bytes == 48 * 1024  # the default tile of csrc/
    assert "fits" in explain(parse("128x64", 2), gpu("l4"))
    assert "does not fit: 144 KiB" in explain(parse("128x128", 4), gpu("l4"))
    assert "will spill" in explain(parse("256x64", 2), gpu("h200"))


@pytest.mark.parametrize("words", ["128", "x64", "100x64", "128x60", "0x64", "128x0", "-128x64", "axb"])
def test_tiles_that_cannot_be_compiled(words: str) -> None:
    with pytest.raises(UsageError, match="--tile"):
        parse(words, 2)


def test_the_calculator_as_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["resources", "--tile", "128x64", "--stages", "2", "--gpu", "l4"]) == 0
    assert capsys.readouterr().out == (
        "128x64, 2 stages, 128 threads on the L4: fits: 48 KiB of shared memory per block, about 210 registers "
        "per thread (at least 160), 2 blocks and 8 warps on a multiprocessor, 16.7% occupancy, limited by registers "
        "and shared memory.\n"
    )
    assert cli.run(["resources", "--tile", "128x64", "--stages", "1"]) == 64
    assert cli.run(["resources", "--tile", "128x64", "--gpu", "tpu"]) == 64
    assert "it holds: l4, l40s, a100, h100, h200" in capsys.readouterr().err
