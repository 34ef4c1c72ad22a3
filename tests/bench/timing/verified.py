"""A verifier in this process, on the CPU, and the memory that it shares as a measured process sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from kernelgate.bench import record
from kernelgate.bench.kernel import compare, loading
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.operands import Inputs, Tensors
from kernelgate.bench.system import worker
from kernelgate.bench.timing import pool as memory
from kernelgate.bench.timing.pool import Arena, Pool
from kernelgate.bench.timing.protocol import CasePrepared, CheckCalls, Planned, PrepareCase
from kernelgate.bench.timing.verifier import CaseVerifier
from tests import registered

Work = Callable[[Inputs, Tensors, int], None]
"""What a kernel does in a call of this number: from inputs to outputs."""


@dataclass
class VerifiedCase:
    """One case, seen from both ends."""

    kernel: Kernel
    axes: CaseAxes
    verifier: CaseVerifier
    prepared: CasePrepared
    mapped: Arena
    """As the measured process has it: what it reads, …"""
    written: Arena
    """… and what it writes."""

    @property
    def pool(self) -> Pool:
        return self.verifier.pool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.pool.outs)

    def given(self, window: int, slot: int = 0) -> Inputs:
        """What a call reads."""
        return memory.arguments(self.mapped, self.written, self.prepared.inputs, window, slot, self.pool.moved)

    def outs(self, slot: int) -> Tensors:
        """Where a call writes; what it overwrites is among its inputs."""
        return memory.outputs(self.written, self.pool.outputs, slot)

    def right(self, window: int, slot: int = 0) -> Tensors:
        """By the oracle in float64."""
        return compare.expected(self.kernel, self.axes, self.given(window, slot), self.names)

    def plan(self, count: int, inputs: Literal["next", "again", "new"] = "next") -> Planned:
        planned = self.verifier.plan(count, inputs)
        if planned.inputs:
            self.prepared = self.prepared.model_copy(update={"inputs": planned.inputs})
        return planned

    def turn(self, work: Work, count: int, side: record.Side = "head", **options: Any) -> int:
        """Plans calls, makes them, and has them checked: how many were found wrong."""
        planned = self.plan(count)
        for number, (window, slot) in enumerate(zip(planned.windows, planned.slots, strict=True)):
            work(self.given(window, slot), self.outs(slot), number)
        return self.check((side,) * count, **options)

    def check(self, sides: Sequence[record.Side], busy_us: float = 1e6, **options: Any) -> int:
        before = self.failed
        self.verifier.check(CheckCalls(sides=tuple(sides), busy_us=busy_us, **options))
        return self.failed - before

    @property
    def failed(self) -> int:
        return sum(tally.failed for tally in self.verifier.tallies.values())

    def work(self, given: Inputs, outs: Tensors, _: int) -> None:
        """What a right kernel does."""
        for name, value in compare.expected(self.kernel, self.axes, given, self.names).items():
            outs[name].copy_(value)


def nothing(_: Inputs, __: Tensors, ___: int) -> None:
    """What a kernel does that leaves out its work."""


@contextmanager
def opened(card: Path, axes: dict[str, Any], **changes: Any) -> Iterator[VerifiedCase]:
    """A case of a card. One thread computes: on a shared machine others would wait for theirs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with worker.memory_file() as read, worker.memory_file() as written:
            asked = {"cache_bytes": 1 << 16, "seed": "a secret", "fds": (read, written), "device": "cpu", **changes}
            kernel = loading.load(card)
            verifier = CaseVerifier(kernel, PrepareCase(id="here", card_file=card, axes=axes, **asked))
            prepared = verifier.answer()
            mapped = [memory.open_shared(one) for one in (prepared.memory, prepared.written)]
            yield VerifiedCase(kernel, CaseAxes(axes), verifier, prepared, *mapped)
    finally:
        torch.set_num_threads(threads)


def write(folder: Path, body: str) -> Path:
    """A card with this body and a call that nobody makes."""
    if "def call(" not in body:
        body = f"{body}def call(self, ops, case, **given):\n    ops.call(**given)\n"
    return registered.write_card(folder / "cards", "kind", body)


SUM = """
cases = [dict(M=6, N=16, dtype="fp32")]
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), y=draw(case.M, case.N))
def oracle(self, case, x, y):
    return x + y
"""
"""A card whose pool is of whole sets."""
ROWS = f"{SUM}independent = dict(x=0, y=0, out=0)\n"
"""A card whose calls read windows."""
IN_PLACE = ROWS.replace("out=0", "") + "in_place = ['x']\n"
"""Whose calls overwrite them."""
AXES = {"M": 6, "N": 16, "dtype": "fp32"}
"""Of all of them."""
TWO_OUTPUTS = """
cases = [dict(M=6, N=16, dtype="fp32")]
independent = dict(x=0, total=0, signs=0)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), shift=draw(case.N), factor=2.5)
def outputs(self, case, x, shift, factor):
    return dict(total=Output(case.M, dtype="fp32"), signs=Output(case.M, case.N, dtype="int8"))
def oracle(self, case, x, shift, factor):
    made = factor * x + shift
    return made.sum(1), made.sign()
"""
