from __future__ import annotations

import pytest

from kernelgate.ci.sessions import variables


def patch(path: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@ int f() {{\n{body}\n"


TILE = patch("csrc/a/tile.h", "-constexpr int kBlockK = 64;  // keys", "+constexpr int kBlockK = 128;  // keys")
WARPS = patch("csrc/a/launch.cu", "-constexpr int kWarps = 4;", "+constexpr int kWarps = 8;")
OTHER_KERNEL = patch("csrc/b/k.cu", "-  x += y;", "+  x = fma(y, z, x);")


BLOCKS = ("-    BLOCK_M = 64", "+    BLOCK_M = 128", "-    num_warps=4", "+    num_warps=8")
SAME_WARPS = ("-launch(kBlockM, 4);", "-const int kWarps = 4;", "+launch(kBlockM, 8);", "+const int kWarps = 4;")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TILE, ("tile",)),
        (WARPS, ("threads",)),
        (OTHER_KERNEL, ("code",)),
        (patch("csrc/a/k.cu", "+  #pragma unroll 4"), ("unroll",)),
        (patch("csrc/a/k.cu", "-  __launch_bounds__(128)", "+  __launch_bounds__(128, 4)"), ("launch bounds",)),
        (patch("csrc/a/k.cu", "-constexpr int kStages = 2;", "+constexpr int kStages = 3;"), ("stages",)),
        (patch("csrc/a/k.cu", "-  // kStages of old", "+  // kWarps of old"), ()),
        (patch(".ci/kernels/toy.py", '-    flags = ["-O2"]', '+    flags = ["-O3"]'), ("flags",)),
        (patch("pkg/k.py", *BLOCKS), ("tile", "threads")),
        (patch("csrc/a/k.cu", *SAME_WARPS), ("tile",)),
    ],
)
def test_what_a_patch_varies(text: str, found: tuple[str, ...]) -> None:
    assert variables.of(text) == found


def test_one_thing_is_no_warning_and_two_are() -> None:
    assert variables.warning(variables.of(TILE)) is None
    with_code = patch("csrc/a/k.cu", "-  x += y;", "-constexpr int kTile = 4;", "+constexpr int kTile = 8;")
    assert variables.warning(variables.of(with_code)) is None
    assert "tile, threads" in (variables.warning(variables.of(TILE + WARPS)) or "")
    assert "sources in csrc/a and csrc/b" in (variables.warning(variables.of(TILE + OTHER_KERNEL)) or "")
