"""The calculator of tiles, as the verb: what a card says of one, and whether that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.called import EndsWith

pytestmark = pytest.mark.usefixtures("cards_in_forks")

ROOT = Path(__file__).parents[3]
FITS = (
    "128x64, 2 stages, 128 threads on the L4: fits: 48 KiB of shared memory per block, about 210 registers "
    "per thread (at least 160), 2 blocks and 8 warps on a multiprocessor, 16.7% occupancy, limited by registers "
    "and shared memory.\n"
)


def test_a_tile_is_as_large_as_the_card_says_and_bytes_need_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.chdir(ROOT)

    def said(code: int, tile: str, stages: int = 2, gpu: str = "l4") -> str:
        ended = ends_with(code, "resources", "--tile", tile, "--stages", stages, "--gpu", gpu)
        return ended.out or ended.err

    assert said(0, "128x64") == FITS
    assert "does not fit: 144 KiB" in said(0, "128x128", 4)
    assert "will spill" in said(0, "256x64", gpu="h200")
    for words in ("100x64", "128x0", "48MiB"):
        assert "--tile" in said(64, words)
    assert "it holds: l4, l40s, a100, h100, h200" in said(64, "128x64", gpu="tpu")
    ends_with(64, "resources", "--tile", "128x64", "--stages", "1")
    monkeypatch.chdir(tmp_path)
    for words, size in (("48KiB", "48 KiB"), ("49152", "48 KiB"), ("100B", "0.0976562 KiB")):
        assert said(0, words).startswith(f"{size}, 128 threads on the L4: fits: {size} of shared memory per block")
