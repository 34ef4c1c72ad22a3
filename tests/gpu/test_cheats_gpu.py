"""Cheats on a GPU: none is called faster, and none that acted is called the same (tests/cheats)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import rms_norm, silu

from kernelgate.bench.kernel import calls
from tests.cheats import judged, libraries, table
from tests.cheats.judged import acted, name, options, words
from tests.cheats.libraries import Tally
from tests.cheats.table import Cheat

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
ROWS, COLUMNS = 1024, 2048
Load = Callable[[str], tuple[Any, Tally]]


# ----------------------------------------------------------------------------------------------------------------------
# Judged
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cheat", table.CUDA, ids=name)
def test_a_library_that_cheats(cheat: Cheat, tmp_path: Path) -> None:
    tally = Tally.at(tmp_path / "tally")
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", words(cheat, tmp_path, tally), original=original)
    repo = judged.repository(tmp_path / "repository", case=judged.LARGE[0])
    done = judged.judge(repo, base, head, judged.LARGE[1], options(cheat), cuda=True)
    judged.check(cheat, done, acted(cheat, tally))


def test_the_same_code_without_a_cheat_is_not_accused(tmp_path: Path) -> None:
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", original=original)
    repo = judged.repository(tmp_path / "repository", case=judged.LARGE[0])
    done = judged.judge(repo, base, head, judged.LARGE[1], ("--processes", "2", "--rounds", "40"), cuda=True)
    assert done.outcome in ("same", "undecided", "slower", "faster"), done
    assert not done.codes, done


# ----------------------------------------------------------------------------------------------------------------------
# Called directly: each does what it says
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(cheat: str) -> tuple[Any, Tally]:
        tally = Tally.at(tmp_path / "tally")
        chosen = next((one.words for one in table.CUDA if one.name == cheat), f"cheat={cheat}")
        folder, configured = tmp_path / cheat, f"{chosen} tally={tally.file}"
        library = libraries.native(folder, configured, original=libraries.compiled_for_gpu())
        return calls.load(library), tally

    return load


def inputs(rows: int = ROWS, columns: int = COLUMNS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A poisoned output, and inputs that no call has seen."""
    x = torch.randn(rows, columns, device="cuda")
    return torch.full_like(x, float("nan")), x, torch.randn(columns, device="cuda")


def is_right(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> bool:
    right = silu(rms_norm(x.double(), weight.shape, weight.double(), 1e-6))
    return bool(((out - right).abs() <= 2e-4 + 2e-4 * right.abs()).all())


def call(ops: Any, given: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> bool:
    ops.norm(*given)
    torch.cuda.synchronize()
    return is_right(*given)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (1024, 2048), (97, 515)])
def test_the_honest_kernel_is_right(load: Load, shape: tuple[int, int]) -> None:
    ops, _ = load("none")
    assert call(ops, inputs(*shape))


@pytest.mark.parametrize("cheat", ["replay_by_pointer", "replay_by_fingerprint"])
def test_what_remembers_is_right_where_inputs_come_back(load: Load, cheat: str) -> None:
    ops, tally = load(cheat)
    given = inputs()
    assert all(call(ops, given) for _ in range(130))
    given[1].copy_(torch.randn_like(given[1]))
    assert call(ops, given) == (cheat == "replay_by_fingerprint")
    assert tally.cheated > 0


def test_what_leaves_work_out_is_wrong(load: Load) -> None:
    every_second, _ = load("skips_every_second")
    assert [call(every_second, inputs()) for _ in range(4)] == [True, False, True, False]
    blocks, _ = load("skips_blocks")
    assert [call(blocks, inputs()) for _ in range(4)] == [True, False, True, False]
    rough, _ = load("lowered_precision")
    assert not call(rough, inputs())
    shape, _ = load("recognised_shape")
    assert [call(shape, inputs()), call(shape, inputs(512, 512))] == [False, True]


def test_a_graph_is_empty(load: Load) -> None:
    ops, tally = load("empty_graph")
    given = inputs()
    assert call(ops, given)
    given[0].fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ops.norm(*given)
    graph.replay()
    torch.cuda.synchronize()
    assert not is_right(*given)
    assert tally.cheated == 1


@pytest.mark.parametrize("cheat", ["side_stream", "default_stream", "late_thread", "written_by_host"])
def test_the_work_is_on_no_stream_that_is_waited_for(load: Load, cheat: str) -> None:
    ops, tally = load(cheat)
    given = inputs()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1)
        for _ in range(20):
            ops.norm(*given)
        snapshot = given[0].clone()
        stream.synchronize()
    late = not is_right(snapshot, *given[1:])
    deadline = 3.0
    while tally.cheated < 20 and deadline > 0:
        torch.cuda._sleep(2_000_000)
        torch.cuda.synchronize()
        deadline -= 0.001
    torch.cuda.synchronize()
    assert tally.cheated == 20
    assert late or cheat == "default_stream"


@pytest.mark.parametrize("cheat", ["patched_elapsed_time", "patched_event_record", "trashes_l2", "left_over_work"])
def test_outputs_are_right_and_events_are_not(load: Load, cheat: str) -> None:
    honest, _ = load("none")
    ops, tally = load(cheat)
    given = inputs()
    times: dict[str, list[float]] = {"honest": [], "head": []}
    for kernel, side in [(honest, "honest"), (ops, "head")] * 10:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        kernel.norm(*given)
        end.record()
        torch.cuda.synchronize()
        times[side].append(start.elapsed_time(end))
        assert is_right(*given)
    assert tally.cheated == 10
    if cheat.startswith("patched"):
        assert sorted(times["head"])[5] < 0.7 * sorted(times["honest"])[5]
