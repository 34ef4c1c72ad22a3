"""The calculator of tiles: what a card says of one, and whether that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.hardware import gpu
from kernelgate.bench.explain import tile
from kernelgate.bench.explain.tile import BlockNeeds
from kernelgate.bench.measure import run as verbs
from kernelgate.ci.commands import cli

pytestmark = pytest.mark.usefixtures("cards_in_forks")

ROOT = Path(__file__).parents[3]


def explain(words: str, stages: int = 2, name: str = "l4") -> str:
    return tile.explain(verbs.block_needs(ROOT, None, words, stages, 4), gpu(name))


def test_a_tile_is_as_large_as_the_card_says_and_bytes_need_no_card(tmp_path: Path) -> None:
    needs = verbs.block_needs(ROOT, None, "128x64", 2, 4)  # the default tile of csrc/
    assert needs == BlockNeeds("128x64, 2 stages", 48 * 1024, 128, 160)
    assert "does not fit: 144 KiB" in explain("128x128", 4)
    assert "will spill" in explain("256x64", name="h200")
    for words, size in (("48KiB", 48 * 1024), ("49152", 48 * 1024), ("100B", 100), ("0", 0)):
        assert verbs.block_needs(tmp_path, None, words, 2, 8) == BlockNeeds(f"{size / 1024:g} KiB", size, 256, 0)
    for words in ("100x64", "128x0", "48MiB"):
        with pytest.raises(UsageError, match="--tile"):
            explain(words)


def test_the_calculator_as_a_verb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.run(["resources", "--tile", "128x64", "--stages", "2", "--gpu", "l4"]) == 0
    assert capsys.readouterr().out == (
        "128x64, 2 stages, 128 threads on the L4: fits: 48 KiB of shared memory per block, about 210 registers "
        "per thread (at least 160), 2 blocks and 8 warps on a multiprocessor, 16.7% occupancy, limited by registers "
        "and shared memory.\n"
    )
    assert cli.run(["resources", "--tile", "128x64", "--stages", "1"]) == 64
    assert cli.run(["resources", "--tile", "128x64", "--gpu", "tpu"]) == 64
    assert "it holds: l4, l40s, a100, h100, h200" in capsys.readouterr().err
