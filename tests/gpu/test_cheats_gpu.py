"""Cheats on a GPU: none is called faster, and none that acted is called the same (tests/cheats)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from torch.nn.functional import rms_norm, silu

from kernelgate.bench.build.library import Library
from kernelgate.bench.kernel import operands
from tests.cheats import judged, libraries, table
from tests.cheats.judged import acted, name, words
from tests.cheats.libraries import Tally
from tests.cheats.table import Cheat

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
ROWS, COLUMNS = 1024, 2048
Load = Callable[[str], tuple[Any, Tally]]


# Judged


@pytest.mark.parametrize("cheat", table.CUDA, ids=name)
def test_a_library_that_cheats(cheat: Cheat, tmp_path: Path) -> None:
    tally = Tally.at(tmp_path / "tally")
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", words(cheat, tmp_path, tally), original=original)
    case, id_ = judged.LONG if cheat.long else judged.LARGE
    repo = judged.repository(tmp_path / "repository", case=case, reference=not cheat.long)
    done = judged.judge(repo, base, head, id_, cheat.rounds, cuda=True)
    judged.check(cheat, done, acted(cheat, tally))


def test_the_same_code_without_a_cheat_is_not_accused(tmp_path: Path) -> None:
    original = libraries.compiled_for_gpu()
    base = libraries.native(tmp_path / "base", original=original)
    head = libraries.native(tmp_path / "head", original=original)
    repo = judged.repository(tmp_path / "repository", case=judged.LARGE[0])
    done = judged.judge(repo, base, head, judged.LARGE[1], cuda=True)
    assert done.outcome in ("same", "undecided", "slower", "faster"), done
    assert not done.codes, done


# Called directly: each does what it says


def configured(folder: Path, cheat: str, words: str) -> Library:
    return libraries.native(folder / cheat, words, original=libraries.compiled_for_gpu())


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(cheat: str) -> tuple[Any, Tally]:
        tally = Tally.at(tmp_path / "tally")
        chosen = next((one.words for one in table.CUDA if one.name == cheat), f"cheat={cheat}")
        return operands.load(configured(tmp_path, cheat, f"{chosen} tally={tally.file}")), tally

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


@pytest.mark.parametrize("cheat", ["side_stream", "default_stream", "late_thread", "written_by_host"])
def test_the_work_is_on_no_stream_that_is_waited_for(load: Load, cheat: str) -> None:
    ops, tally = load(cheat)
    out, x, weight = inputs()
    outs = [out.clone() for _ in range(20)]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for one in outs:
            ops.norm(one, x, weight)
        snapshot = outs[-1].clone()
        stream.synchronize()
    assert not is_right(snapshot, x, weight), "the stream that is waited for has the last call's output"
    deadline = 3.0
    while tally.cheated < 20 and deadline > 0:
        torch.cuda._sleep(2_000_000)
        torch.cuda.synchronize()
        deadline -= 0.001
    torch.cuda.synchronize()
    assert tally.cheated == 20
    assert all(is_right(one, x, weight) for one in outs)


def timed(of: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    of()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


@pytest.mark.parametrize("cheat", ["trashes_l2", "left_over_work"])
def test_what_works_beside_leaves_outputs_right(load: Load, cheat: str) -> None:
    honest, _ = load("none")
    ops, tally = load(cheat)
    given = inputs(rows=4 * ROWS)
    alone, after = [], []
    for _ in range(20):
        alone.append(timed(lambda: honest.norm(*given)))
        assert call(ops, given)
        ops.norm(*given)
        after.append(timed(lambda: honest.norm(*given)))
        assert is_right(*given)
    assert tally.cheated == 40
    if cheat == "left_over_work":  # a sweep through memory takes little of a kernel that computes
        assert median(after) > 1.1 * median(alone)


EVENTS = """
import json, os, sys
from pathlib import Path
import torch
from kernelgate.bench.build import library
from kernelgate.bench.kernel import operands
from tests.gpu import test_cheats_gpu as tests

sides = {name: operands.load(library.read(Path(folder))) for name, folder in zip(("honest", "head"), sys.argv[1:])}
given = tests.inputs()
times = {name: [] for name in sides}
right = []
for name, kernel in list(sides.items()) * 10:
    times[name].append(tests.timed(lambda: kernel.norm(*given)))
    right.append(tests.is_right(*given))
print(json.dumps({"times": times, "right": right}), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("cheat", ["patched_elapsed_time", "patched_event_record"])
def test_events_tell_less_than_the_work_takes(cheat: str, tmp_path: Path) -> None:
    """In a process of its own, whose events are wrong from then on."""
    tally = Tally.at(tmp_path / "tally")
    chosen = {"none": "cheat=none", cheat: f"cheat={cheat} tally={tally.file}"}
    sides = [configured(tmp_path, name, words) for name, words in chosen.items()]
    command = [sys.executable, "-c", EVENTS, *(str(side.folder) for side in sides)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert all(found["right"])
    assert tally.cheated == 10
    assert median(found["times"]["head"]) < 0.7 * median(found["times"]["honest"])
