"""What a way of calling a kernel gives back, and what it draws its inputs from."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgate.bench.check.examine import Subject
from kernelgate.bench.kernel.card import CaseAxes
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.kernel.operands import Draw


class UntriedError(Exception):
    """The card itself cannot make such a case: says why."""


class InapplicableError(UntriedError):
    """The way is none for such a card, which is nothing that anybody must know: says why."""


@dataclass(frozen=True)
class Examined:
    """What one trial showed."""

    fault: str | None = None
    comparisons: tuple[Comparison, ...] = ()
    note: str | None = None
    """What is not wrong and worth knowing."""
    repeatable: bool | None = None
    """Whether all calls on the same inputs gave the same bits; None where there was one."""


def drawn(subject: Subject, trial: Trial, seed: int = 0) -> Draw:
    """`seed`: one of several for a trial."""
    return Draw(CaseAxes(trial.axes), subject.device, trial.seed + seed, trial.distribution)
