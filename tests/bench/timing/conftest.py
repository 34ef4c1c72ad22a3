from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.process import Measuring
from tests import registered
from tests.bench.machine import CPU

CASE = """
cases = [dict(M=8, N=16, dtype="fp32")]
cpu_cases = cases
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), y=draw(case.M, case.N))
def oracle(self, case, x, y):
    return x + y
"""
INTO = f"{CASE}def call(self, ops, case, out, x, y):\n    ops.add(x, y, out)\n"
KERNEL = """
calls = [0]
known = {}
@operator("add(Tensor x, Tensor y, Tensor(a!) out) -> ()")
def add(x, y, out):
    calls[0] += 1
    out.copy_(x + y)
@operator("add_(Tensor(a!) x, Tensor y) -> ()")
def add_(x, y):
    calls[0] += 1
    x.add_(y)
@operator("plus(Tensor x, Tensor y) -> Tensor")
def plus(x, y):
    calls[0] += 1
    return x + y
"""


@pytest.fixture(autouse=True)
def on_a_busy_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle would be too slow for every entry to have a reference, and another run would be waited for."""
    from kernelgate.bench.timing import references

    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 1e6})
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))


class KindBench:
    """Cards and libraries of one test."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.path = folder / "run.json"
        self.name = "".join(letter if letter.isalnum() else "_" for letter in name)
        self.count = 0

    def card(self, body: str = INTO, name: str = "kind") -> CardFacts:
        return registered.facts(registered.write_card(self.folder / f"cards {name}", name, body))

    def library(self, code: str = KERNEL, card: str = "kind", own: Path | None = None) -> Library:
        self.count += 1
        namespace = f"{self.name}_{self.count}"
        return registered.build(self.folder / namespace, namespace, code, card, own)

    def part(self, card: CardFacts, base: Library | None, head: Library) -> CardPlan:
        return CardPlan(card, Sides(base, head), card.suites["cpu"])

    def against(self, does: str, body: str = INTO, base: str = KERNEL) -> CardPlan:
        """A right base against a head whose calls into an output do this."""
        code = KERNEL.replace("out.copy_(x + y)", does)
        return self.part(self.card(body), self.library(base), self.library(code))

    def plan(self, *parts: CardPlan, rounds: int = 30, **more: Any) -> PairedPlan:
        how = Measuring(712_391, rounds, 60)
        return replace(PairedPlan(parts, CPU, how, processes=1, witness=False), **more)

    def run(self, *parts: CardPlan, resume: bool = False, undecided: Any = paired.all_cases, **more: Any) -> RunRecord:
        return paired.run(self.plan(*parts, **more), RunRecord(), self.path, undecided, resume)

    def time(self, body: str, code: str = KERNEL) -> RunRecord:
        return self.run(self.part(self.card(body), self.library(), self.library(code)))


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> KindBench:
    return KindBench(tmp_path, request.node.name)


def calls(done: RunRecord, process: int = 0) -> dict[str, record.Calls]:
    """Of the first case."""
    return done.processes[process].timings[0].calls


def looked_at(of_side: record.Calls) -> bool:
    """Whether about a quarter of the calls was compared, and none of them wrong."""
    return of_side.failed == 0 and (of_side.compared or 0) > 0.15 * (of_side.made or 0) > 0


def codes(done: RunRecord) -> dict[str | None, str]:
    return {note.code: note.text for note in done.notes}


def roles(done: RunRecord) -> list[str]:
    return [one.role for one in done.processes]
