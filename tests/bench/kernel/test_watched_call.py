"""The call that the profiler and compute-sanitizer watch, on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelgate.bench.build.library import LibraryAt
from kernelgate.bench.kernel import watched_call
from kernelgate.bench.kernel.watched_call import WatchedCall
from tests import registered

CARD = """
cases = [dict(M=4, dtype="fp32")]
def inputs(self, case, draw):
    return dict(x=draw(case.M))
def call(self, ops, case, out, x):
    return ops.twice(x, out)
def oracle(self, case, x):
    return 2 * x
"""
IN_PLACE = CARD.replace("case, out, x", "case, x").replace("x, out", "x, x") + "in_place = ['x']"
KERNEL = """
calls = []
@operator("twice(Tensor x, Tensor(a!) out) -> int")
def twice(x, out):
    out.copy_(2 * x)
    calls.append(out.data_ptr())
    return len(calls)
"""


def request(folder: Path, namespace: str, body: str) -> WatchedCall:
    card = registered.write_card(folder / "cards", "doubled", body)
    library = registered.build(folder / "library", namespace, KERNEL, "doubled")
    return WatchedCall(library=LibraryAt.of(library), card=card, axes=registered.facts(card).target.axes)


def test_each_call_runs_the_kernel_again(tmp_path: Path) -> None:
    call = watched_call.prepared(request(tmp_path, "watched", CARD), "cpu")
    assert [call(), call()] == [1, 2]


def test_a_kernel_in_place_gets_no_memory_for_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(tmp_path, "watched_in_place", IN_PLACE)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: pytest.fail("memory for outputs"))
    assert watched_call.prepared(asked, "cpu")() == 1
