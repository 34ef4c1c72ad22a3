"""What is said of a failed trial besides its fault: how often it fails, and the smallest trial that fails like it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kernelgate.bench.check import trial_process
from kernelgate.bench.check.trial_process import TrialOutcome, TrialProcess
from kernelgate.bench.kernel import fuzz_corpus
from kernelgate.bench.kernel.fuzz_trials import WAY, Axes, Trial, trial

AGAIN: Mapping[Literal["crashed", "hung"] | None, int] = {None: 4, "crashed": 1, "hung": 0}
"""How often a failed trial is run again: what fails in half of its runs passes one of four in 94%. A crash costs the
start of a process, a hang its patience."""
SHRINK_S: Mapping[Literal["crashed", "hung"] | None, float] = {None: 4.0, "crashed": 20.0, "hung": 60.0}
"""How long a smaller trial is looked for: a hundred calls of a small kernel, about six processes, three hangs."""
SHRINK_PATIENCE_S = 20.0
"""What is smaller than a trial that failed, and takes longer, hangs."""


@dataclass(frozen=True)
class FailureFacts:
    """What more is known of a failed trial."""

    runs: int
    failed: int
    """How often the very same trial failed, of so many runs."""
    smallest: Trial | None = None
    """None where it fails only sometimes, or is the smallest itself."""
    fault: str | None = None
    """Of the smallest."""
    alone: bool | None = None
    """Whether the trial that a command repeats fails in a fresh process, too; None where that was not tried."""

    @property
    def words(self) -> str:
        """One clause for people; empty where there is nothing to add."""
        if self.failed < self.runs:
            return f"it fails only sometimes: in {self.failed} of {self.runs} runs of this very case"
        if self.alone is False:
            return "it passes in a process of its own: it takes the calls before it to fail"
        return ""


def examined(process: TrialProcess, failing: Trial, outcome: TrialOutcome) -> FailureFacts:
    """Runs a failed trial again, then smaller ones, in a bounded time (SHRINK_S, and what one trial more takes)."""
    runs = 1 + AGAIN[outcome.ended]
    failed = 1 + sum(process.tried(failing).fault is not None for _ in range(AGAIN[outcome.ended]))
    if failed < runs:
        return FailureFacts(runs, failed)
    process.workers.prepare({trial_process.WORKER: 1})  # loads torch meanwhile
    best = _smallest(process, failing, outcome)
    if outcome.ended:  # each try had a process of its own
        fault = process.tried(best, SHRINK_PATIENCE_S).fault if best else None
        return FailureFacts(runs, failed, best if fault else None, fault)
    for one in filter(None, (best, failing)):
        process.end()
        alone = process.tried(one)
        if alone.kind_of_fault == outcome.kind_of_fault:
            smaller = one if one is not failing else None
            return FailureFacts(runs, failed, smaller, alone.fault if smaller else None, alone=True)
    return FailureFacts(runs, failed, alone=False)


def _smallest(process: TrialProcess, failing: Trial, outcome: TrialOutcome) -> Trial | None:
    """The smallest that fails in the same way; None where that is the trial itself."""
    kind, end = outcome.kind_of_fault, time.monotonic() + SHRINK_S[outcome.ended]
    patience_s = min(SHRINK_PATIENCE_S, trial_process.PATIENCE_S)
    known: dict[str, bool] = {failing.id: True}

    def named(axes: Axes) -> Trial:
        return trial(failing.run_seed, process.card, process.device, {WAY: failing.way, **axes})

    def fails(axes: Axes) -> bool:
        one = named(axes)
        if one.id not in known and time.monotonic() < end:
            known[one.id] = process.tried(one, patience_s).kind_of_fault == kind
        return known.get(one.id, False)

    first: Axes = {WAY: failing.way, **failing.axes}
    if named(first).id != failing.id and not fails(first):  # other values of the same kind pass
        return None
    best = named(fuzz_corpus.smallest(first, process.card, process.device, fails))
    return None if best.id == failing.id else best
