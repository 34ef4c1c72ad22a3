"""Each cheat of tests/cheats/package.py does what it says, called directly in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cheats import libraries
from tests.cheats.libraries import Tally

pytestmark = [pytest.mark.slow, pytest.mark.guards("bench/", "ci/judge/", "tests/cheats/")]
ROOT = Path(__file__).parents[2]
CODE = """
import json, os, sys, time
from pathlib import Path
import torch
from torch.nn.functional import rms_norm, silu
from kernelgate.bench.build import library
from kernelgate.bench.kernel import compare
from kernelgate.bench.kernel import operands

base, head = (operands.load(library.read(Path(folder)), side) for folder, side in zip(sys.argv[1:], ("base", "head")))
equal = torch.equal
weight = torch.randn(512)


def call(ops, x, wait=0.0):
    out = torch.full_like(x, float("nan"))
    ops.norm(out, x, weight)
    time.sleep(wait)
    right = silu(rms_norm(x.double(), weight.shape, weight.double(), 1e-6))
    return ((out - right).abs() <= 2e-4 + 2e-4 * right.abs()).all().item()


x = torch.randn(96, 512)
found = {
    "again": [call(head, x) for _ in range(4)],
    "waited": call(head, x, 0.5),
    "base": call(base, x),
    "equal": torch.equal(x, x + 1),
    "compared": compare.outputs(None, None, {}, {}).passed if "patched_modules" in sys.argv[2] else None,
}
begun, wall = time.perf_counter(), time.clock_gettime(time.CLOCK_REALTIME)
for _ in range(200):
    head.norm(torch.empty_like(x), x, weight)
found["clock"] = (time.perf_counter() - begun) / (time.clock_gettime(time.CLOCK_REALTIME) - wall)
print(json.dumps(found), flush=True)
os._exit(0)  # a thread may be at work
"""


def direct(cheat: str, folder: Path) -> tuple[dict[str, Any], Tally]:
    folder.mkdir(exist_ok=True)
    tally = Tally.at(folder / "tally")
    base = libraries.package(folder / "base", "none", Tally.at(folder / "of base"))
    head = libraries.package(folder / cheat, cheat, tally)
    command = [sys.executable, "-c", CODE, str(base.folder), str(head.folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), tally


@pytest.mark.parametrize("cheat", ["none", "replay_by_pointer", "replay_by_content", "slowed_base", "patched_time"])
def test_what_is_right_all_the_same(cheat: str, tmp_path: Path) -> None:
    found, tally = direct(cheat, tmp_path)
    assert all([*found["again"], found["waited"], found["base"]])
    assert (tally.cheated > 0) == (cheat != "none")
    assert (found["clock"] < 0.7) == (cheat == "patched_time")


@pytest.mark.parametrize("cheat", ["skips_every_second", "patched_torch", "patched_modules"])
def test_what_leaves_every_second_call_out(cheat: str, tmp_path: Path) -> None:
    found, _ = direct(cheat, tmp_path)
    assert found["again"] == [True, False, True, False]
    assert found["equal"] == (cheat == "patched_torch")
    assert found["compared"] == (True if cheat == "patched_modules" else None)


def test_what_is_done_later_or_roughly(tmp_path: Path) -> None:
    later, _ = direct("detached_thread", tmp_path / "later")
    assert later["waited"]
    rough, _ = direct("lowered_precision", tmp_path / "rough")
    assert not any(rough["again"])
