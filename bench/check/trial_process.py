"""Tries fuzz trials one at a time, in a process that a kernel may crash or hang: the next then gets a fresh one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.system import environment, orphans, progress
from kernelgate.bench.system.worker import Message, Ready, WorkerError, WorkerFailedError, WorkerPool, WorkerProcess

WORKER = "kernelgate.bench.check.fuzz_worker:try_each"
PATIENCE_S = 120.0
"""For one trial."""
LOADING_S = 120.0
"""For torch and the library."""


class FuzzRequest(Message):
    """What is tried; each trial follows as a message of its own."""

    device: environment.DeviceKind
    library: LibraryAt
    card: Path
    """The judging card: inputs, oracle and tolerance."""


class TrialOutcome(Message):
    """What one trial showed; it passed where `fault` is None."""

    fault: str | None
    max_abs_error: record.NonNegative | None
    error_ratio: record.NonNegative | None
    note: str | None = None
    """What is not wrong and worth knowing, such as that the kernel refused its inputs by name."""
    repeatable: bool | None = None
    untried: str | None = None
    """Why the card cannot make such a case: then nothing was tried."""
    inapplicable: bool = False
    """Nothing was to be tried: the way is none for such a card."""
    last: bool = False
    """The device is beyond use in this process; the next trial needs another."""
    ended: Literal["crashed", "hung"] | None = None
    """How the process ended."""

    @property
    def kind_of_fault(self) -> str | None:
        """Faults of one kind may have one cause: a wrong value is no crash."""
        if self.fault is None:
            return None
        for words in ("raised an error", "wrote to"):
            if words in self.fault:
                return words
        return self.ended or "wrong"


@dataclass
class TrialProcess:
    """Leaving the `with` block ends the process."""

    library: Library
    card: CardFacts
    device: environment.DeviceKind
    workers: WorkerPool
    """Processes that were started before, among which may be the one that this needs."""
    worker: WorkerProcess | None = None
    deaths: int = 0
    """Processes that were beyond use after a trial."""
    others: frozenset[int] = field(default_factory=orphans.children)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def tried(self, trial: Trial, patience_s: float | None = None) -> TrialOutcome:
        """A crash and a hang are outcomes, too. Raises KernelgateError where the library cannot be loaded."""
        worker = self.worker or self._started()
        patience_s, begun = patience_s or PATIENCE_S, time.monotonic()
        try:
            outcome = worker.ask(trial, TrialOutcome, patience_s)
        except WorkerError as error:
            hung = time.monotonic() - begun >= patience_s
            outcome = _fault(str(error), "hung" if hung else "crashed")
        if outcome.last:
            self.deaths += 1
            self.end()
        return outcome

    def end(self) -> None:
        """The next trial gets a fresh process."""
        if self.worker is not None:
            self.worker.__exit__()
            self.worker = None
            if names := orphans.end_new_children(self.others | self.workers.pids):
                progress.say(f"fuzz: the kernel left {', '.join(names)} running, which was ended")

    def _started(self) -> WorkerProcess:
        self.worker = worker = self.workers.take(WORKER)
        card = self.card.file.absolute()
        try:
            worker.ask(FuzzRequest(device=self.device, library=LibraryAt.of(self.library), card=card), Ready, LOADING_S)
        except WorkerFailedError:
            raise
        except WorkerError as error:
            raise KernelgateError(f"{self.library.path} cannot be loaded: {error}") from None
        return worker


def _fault(why: str, ended: Literal["crashed", "hung"]) -> TrialOutcome:
    return TrialOutcome(fault=why, max_abs_error=None, error_ratio=None, last=True, ended=ended)
