from __future__ import annotations

import pytest

from kernelgate.ci.lab import variables


def patch(path: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@ int f() {{\n{body}\n"


TILE = patch("csrc/a/tile.h", "-constexpr int kBlockK = 64;  // keys", "+constexpr int kBlockK = 128;  // keys")
OTHER_KERNEL = patch("csrc/b/k.cu", "-  x += y;", "+  x = fma(y, z, x);")


BLOCKS = ("-    BLOCK_M = 64", "+    BLOCK_M = 128", "-    num_warps=4", "+    num_warps=8")
SAME_WARPS = ("-launch(kBlockM, 4);", "-const int kWarps = 4;", "+launch(kBlockM, 8);", "+const int kWarps = 4;")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TILE, ("tile",)),
        (OTHER_KERNEL, ("code",)),
        (patch("csrc/a/k.cu", "-  // kStages of old", "+  // kWarps of old"), ()),
        (patch("pkg/k.py", *BLOCKS), ("tile", "threads")),
        (patch("csrc/a/k.cu", *SAME_WARPS), ("code",)),
        (patch("csrc/a/k.cu", "-  f<<<grid, 128>>>(x);", "+  f<<<grid, 256>>>(x);"), ("threads",)),
        (patch("csrc/a/k.cu", "-constexpr int kTile = 8;") + patch("csrc/a/t.h", "+constexpr int kTile = 8;"), ()),
    ],
)
def test_what_a_patch_varies(text: str, found: tuple[str, ...]) -> None:
    assert variables.of(text) == found


CARDS = {"a": ["csrc/a"], "norm": ["csrc/norm.cu", "csrc/common.h"], "sum": ["csrc/sum.cu", "csrc/common.h"]}


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("csrc/a/k.cu", "csrc/b/k.cu"), "sources of csrc/a and csrc/b"),
        (("csrc/norm.cu", "csrc/sum.cu"), "sources of norm and sum"),  # two cards' in one folder
        (("csrc/norm.cu", ".ci/kernels/norm.py"), None),
    ],
)
def test_two_kernels_at_once_are_said(paths: tuple[str, ...], said: str | None) -> None:
    text = "".join(patch(path, "-  x += y;", "+  x -= y;") for path in paths)
    assert (variables.warning(variables.of(text, CARDS)) or "").endswith(f"{said}; {TOLD}" if said else "")
    assert (variables.warning(variables.of(text, CARDS)) is None) == (said is None)


TOLD = "what made the difference cannot be told"
