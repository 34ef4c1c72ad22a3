"""The call that the profiler and compute-sanitizer watch, on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernelgate.bench.kernel import loading, operands, watched_call
from kernelgate.bench.kernel.card import CaseAxes, asked_for
from kernelgate.bench.kernel.watched_call import WatchedCall, Watching
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.supervise import LIMITS, Running
from kernelgate.bench.system.worker import child_environment
from tests import faulty, registered
from tests.bench.timing.conftest import CASE
from tests.processes import program

IN_PLACE = "in_place = ['x']\ndef call(self, ops, case, x, y):\n    ops.add_(x, y)\n    return x.clone()\n"
SMALL = {"S": 64, "B": 1, "H": 2, "D": 64, "dtype": "fp32", "causal": False}


def asked(folder: Path) -> WatchedCall:
    return WatchedCall.of(faulty.build(folder / "library", folder.name), faulty.card(), faulty.card().target)


def test_ten_calls_warm_up_and_the_one_after_alone_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    runtime = SimpleNamespace(
        cudaProfilerStart=lambda: done.append("start"), cudaProfilerStop=lambda: done.append("stop")
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("wait"))
    monkeypatch.setattr(
        watched_call, "prepared", lambda *_: iter([(lambda: done.append("renew"), lambda: done.append("call"))])
    )
    watched_call.run(asked(tmp_path), lambda: done.append("turn"))
    assert done == ["call", "wait", "turn", *["renew", "call"] * 10, "renew", "wait", "start", "call", "wait", "stop"]
    assert capsys.readouterr().out == f"{watched_call.DONE}\n"


def test_what_a_kernel_overwrites_is_given_back_before_each_call(tmp_path: Path) -> None:
    card = registered.facts(registered.write_card(tmp_path / "cards", "kind", f"{CASE}{IN_PLACE}"))
    code = '@operator("add_(Tensor(a!) x, Tensor y) -> ()")\ndef add_(x, y):\n    x.add_(y)\n'
    library = registered.build(tmp_path / "library", "renewed", code, "kind")
    [(renew, call)] = watched_call.prepared(WatchedCall.of(library, card, card.target), "cpu")
    made = []
    for _ in range(3):
        renew()
        made.append(call())
    assert all(torch.equal(made[0], one) for one in made)


@pytest.mark.usefixtures("in_process")
def test_the_reference_is_called_in_the_kernels_place(tmp_path: Path) -> None:
    """On the kernel's inputs, and with its own outputs."""
    wanted = asked(tmp_path).model_copy(update={"cases": (SMALL,), "reference": True})
    [(_, call)] = watched_call.prepared(wanted, "cpu")
    judge, case = loading.load(faulty.CARD), CaseAxes(SMALL)
    given = operands.inputs(judge, case, operands.Draw(case, "cpu", 0))
    torch.testing.assert_close(call(), judge.oracle(case, **asked_for(judge.oracle, given)), atol=1e-5, rtol=1e-5)


TOOL = """\
for word; do last="$word"; done
echo "$1 started" >> "$0.log"
exec 3< "$last"; read -r ahead <&3; read -r asked <&3
echo "$1 loaded $asked" >> "$0.log"
touch "$last.loaded"; read -r turn <&3
echo "$1 called" >> "$0.log"
"""
"""Stands in for a tool and for the process below it: waits for the request and for its turn, as that does."""


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    return program(tmp_path / "tool", TOOL)


def watching(tool: Path, count: int) -> list[Watching]:
    call = asked(tool.parent)
    return [Watching((tool, str(number)), call) for number in range(count)]


def followed(running: Running) -> int:
    running.follow(LIMITS, lambda _: None, lambda _: None)
    return running.process.wait()


def said(tool: Path, what: str) -> list[int]:
    """Who has written this, in order."""
    lines = Path(f"{tool}.log").read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line.split()[1] == what]


def test_processes_wait_until_it_is_their_turn(tool: Path) -> None:
    calls = watching(tool, 5)
    with watched_call.warm(calls) as processes:
        assert len(processes.waiting) == watched_call.AHEAD
        for at in range(5):
            assert followed(processes.go(at)) == 0
            assert len(processes.waiting) == min(5, at + 1 + watched_call.AHEAD)
            assert said(tool, "called") == list(range(at + 1))
            # Two load side by side, and none while another one is watched.
            assert sorted(said(tool, "loaded")) == list(range(min(5, at + 2 - at % 2)))
    assert sorted(said(tool, "started")) == [0, 1, 2, 3, 4]
    line = next(line for line in Path(f"{tool}.log").read_text().splitlines() if line.startswith("4 loaded"))
    assert WatchedCall.model_validate_json(line[line.index("{") :]) == calls[-1].call


@pytest.mark.slow
def test_a_process_whose_leader_is_gone_ends(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    words = [sys.executable, "-P", "-m", watched_call.MODULE, str(fifo)]
    process = subprocess.Popen(words, cwd=ROOT, env=child_environment())
    opened = threading.Event()

    def leader() -> None:
        os.close(os.open(fifo, os.O_WRONLY))
        opened.set()

    threading.Thread(target=leader, daemon=True).start()
    assert opened.wait(60)
    assert process.wait(60) == 0
