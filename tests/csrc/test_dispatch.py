"""Which code runs where, as tables, and that the persistent blocks of the Hopper path share all work evenly."""

from __future__ import annotations

import ctypes
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
Target = tuple[int, int, bool]

SM_80, SM_89, SM_90, SM_90A = (8, 0, False), (8, 9, False), (9, 0, False), (9, 0, True)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = tmp_path_factory.mktemp("dispatch") / "dispatch.so"
    flags = ["-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'csrc'}"]
    subprocess.run(["g++", *flags, str(Path(__file__).with_name("dispatch.cpp")), "-o", str(built)], check=True)
    library = ctypes.CDLL(str(built))
    library.kernel_for.restype = ctypes.c_char_p
    return library


@pytest.mark.parametrize(
    ("targets", "device", "expected"),
    [
        ((SM_80, SM_89, SM_90, SM_90A), (8, 0), SM_80),
        ((SM_80, SM_89, SM_90, SM_90A), (8, 6), SM_80),
        ((SM_80, SM_89, SM_90, SM_90A), (8, 9), SM_89),
        ((SM_80, SM_89, SM_90, SM_90A), (9, 0), SM_90A),
        ((SM_90A, SM_90), (9, 0), SM_90A),
        ((SM_80, SM_89, SM_90), (9, 0), SM_90),
        ((SM_90A,), (9, 1), None),  # code with a suffix runs on its own capability alone
        ((SM_80, SM_89), (9, 0), None),
        ((SM_89,), (8, 0), None),
        ((), (9, 0), None),
    ],
)
def test_target(
    code: ctypes.CDLL, targets: tuple[Target, ...], device: tuple[int, int], expected: Target | None
) -> None:
    count = len(targets)
    majors = (ctypes.c_int * count)(*(target[0] for target in targets))
    minors = (ctypes.c_int * count)(*(target[1] for target in targets))
    specific = (ctypes.c_bool * count)(*(target[2] for target in targets))
    best = code.best_target(majors, minors, specific, count, *device)
    assert (targets[best] if best >= 0 else None) == expected


@pytest.mark.parametrize(
    ("heads", "seq", "expected"),
    [
        (66, 256, "wgmma_m128"),  # 66 blocks of 256 queries for 132 multiprocessors
        (67, 256, "wgmma_m256"),
        (1024, 128, "wgmma_m128"),  # half of a block of 256 would have no query
        (1024, 129, "wgmma_m256"),
        (1, 1, "wgmma_m128"),
        (2**30, 128, "wgmma_m128"),
        (2**30, 129, "mma_sync"),  # more tiles than 30 bits count
        (2**30 + 1, 1, "mma_sync"),
    ],
)
def test_kernel(code: ctypes.CDLL, heads: int, seq: int, expected: str) -> None:
    assert code.kernel_for(ctypes.c_int64(heads), seq, 132).decode() == expected


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("heads", "seq"), [(1, 1), (256, 512), (5, 700), (64, 4096), (133, 257)])
def test_every_tile_is_taken_once_and_blocks_are_even(code: ctypes.CDLL, heads: int, seq: int, causal: bool) -> None:
    block_m, tiles_per_head = 256, -(-seq // 256)
    blocks = min(132, heads * tiles_per_head)
    taken: Counter[tuple[int, int]] = Counter()
    keys = []
    for block in range(blocks):
        keys.append(0)
        result = (ctypes.c_int * 2)()
        for number in range(-(-heads * tiles_per_head // blocks)):
            code.work(number, block, blocks, heads, seq, block_m, causal, result)
            if result[0] >= 0:
                taken[result[0], result[1]] += 1
                keys[-1] += min(seq, result[1] + block_m) if causal else seq
    assert set(taken) == {(head, tile * block_m) for head in range(heads) for tile in range(tiles_per_head)}
    assert set(taken.values()) == {1}
    assert max(keys) - sum(keys) / blocks <= seq
