"""Fuzz trials, one at a time, in a process that a kernel may crash or hang: the next then gets a fresh one.

What is said of a failed one besides its fault: how often it fails, and the smallest trial that fails like it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt, imports
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import WAY, Axes, Trial, trial
from kernelgate.bench.record.findings import FaultKind
from kernelgate.bench.system import environment, lock, progress
from kernelgate.bench.system.worker import KernelWorker, Message, WorkerError, WorkerPool, worker_pool

WORKER = "kernelgate.bench.check.ways:try_each"
PATIENCE_S = 120.0
"""For one trial."""
NAMED_S = 20.0
"""After so long it is said which one it is."""
LOADING_S = 120.0
"""For torch and the library."""
SPARE = 2
"""So many processes load torch while another one is tried, once one has crashed."""


Ended = Literal["crashed", "hung"]


class CheckRequest(Message):
    """What is called; each trial, or each case, follows as a message of its own."""

    device: environment.DeviceKind
    libraries: tuple[tuple[record.Side, LibraryAt], ...]
    card: Path
    """The judging card: inputs, oracle and tolerance."""


class TrialOutcome(Message):
    """What one trial showed; it passed where `fault` is None."""

    fault: str | None = None
    max_abs_error: record.NonNegative | None = None
    error_ratio: record.NonNegative | None = None
    note: str | None = None
    """What is not wrong and worth knowing, such as that the kernel refused its inputs by name."""
    refused: bool = False
    """Nothing was compared, since the kernel rightly refused all of its inputs."""
    repeatable: bool | None = None
    untried: str | None = None
    """Why nothing was tried: the card cannot make such a case."""
    inapplicable: bool = False
    """Nothing was to be tried: the way is none for such a card."""
    last: bool = False
    """The device is beyond use in this process; the next trial needs another."""
    ended: Ended | None = None

    @property
    def kind(self) -> FaultKind | None:
        """As a record has it: also of what was rightly refused."""
        return "refused" if self.refused else self.kind_of_fault

    @property
    def kind_of_fault(self) -> FaultKind | None:
        """Faults of one kind may have one cause: a wrong value is no crash."""
        if self.fault is None or self.ended:
            return self.ended
        if "raised an error" in self.fault:  # one of the device is no refusal
            return "crashed" if self.last or "CUDA error" in self.fault else "refused"
        return "wrote" if "wrote to" in self.fault else "wrong"


class TrialProcess(KernelWorker):
    def __init__(
        self,
        library: Library,
        card: CardFacts,
        device: environment.DeviceKind,
        workers: WorkerPool,
        side: record.Side = "head",
    ) -> None:
        request = CheckRequest(device=device, libraries=((side, LibraryAt.of(library)),), card=card.file.absolute())
        ahead = imports({side: library})
        super().__init__(workers, WORKER, request, str(library.path), LOADING_S, library.python, ahead)
        self.card, self.device = card, device
        self.starting_s = 0.0
        """What its processes took to start, until they had the library."""

    def tried(self, trial: Trial, patience_s: float | None = None, again: bool = True) -> TrialOutcome:
        """A crash and a hang are outcomes, too; a process that is killed once is not: the machine may have done that.
        Raises KernelgateError where the library cannot be loaded."""
        before, patience_s = time.monotonic(), patience_s or PATIENCE_S
        with _named(f"{self.loads} has not been loaded after {NAMED_S:g} s; after {self.loading_s:g} s it is given up"):
            worker = self.started()
        self.starting_s += time.monotonic() - before
        try:
            with _named(f"{trial.id} has not answered for {NAMED_S:g} s; after {patience_s:g} s it counts as hung"):
                outcome = worker.ask(trial, TrialOutcome, patience_s)
        except WorkerError as error:
            if again and worker.killed and not error.hung:
                self.end(is_dead=True)
                return self.tried(trial, patience_s, again=False)
            outcome = TrialOutcome(fault=str(error), last=True, ended="hung" if error.hung else "crashed")
        if outcome.last:
            self.end(is_dead=True)
            self.workers.prepare({WORKER: SPARE}, self.ahead, self.python)
        return outcome


@contextmanager
def _named(waits: str) -> Iterator[None]:
    """Says so where the block takes long."""
    timer = Timer(NAMED_S, progress.say, (waits,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def trying(
    library: Library, card: CardFacts, machine: record.Environment, workers: WorkerPool | None = None
) -> Iterator[TrialProcess]:
    """Holds the device meanwhile. `workers`: processes that were started before."""
    with (
        lock.device(machine.device.uuid),
        nullcontext(workers) if workers else worker_pool() as processes,
        TrialProcess(library, card, environment.kind(machine), processes) as process,
    ):
        yield process


AGAIN: Mapping[Ended | None, int] = {None: 4, "crashed": 1, "hung": 0}
"""How often a failed trial is run again: what fails in half of its runs passes one of four in 94%. A crash costs the
start of a process, a hang its patience."""
SHRINK_S: Mapping[Ended | None, float] = {None: 4.0, "crashed": 10.0, "hung": 60.0}
"""How long a smaller trial is looked for: a hundred calls of a small kernel, a few processes, three hangs."""
SHRINK_PATIENCE_S = 20.0
"""What is smaller than a trial that failed, and takes longer, hangs."""


@dataclass(frozen=True)
class FailureFacts:
    runs: int
    failed: int
    """How often the very same trial failed, of so many runs."""
    smallest: Trial | None = None
    """None where it fails only sometimes, or is the smallest itself."""
    fault: str | None = None
    """Of the smallest."""
    alone: bool = True
    """Whether the trial that a command repeats fails in a fresh process, too, as far as that was tried."""

    @property
    def words(self) -> str:
        """One clause for people; empty where there is nothing to add."""
        if self.failed < self.runs:
            return f"it fails only sometimes: in {self.failed} of {self.runs} runs of this very case"
        return "" if self.alone else "it passes in a process of its own: it takes the calls before it to fail"


Excused = Callable[[Trial, TrialOutcome], bool]
"""Whether the base does the same."""


def examined(
    process: TrialProcess, failing: Trial, outcome: TrialOutcome, excused: Excused = lambda *_: False
) -> FailureFacts:
    """Runs a failed trial again, then smaller ones that are not excused, in a bounded time (SHRINK_S, and what one
    trial more takes)."""
    runs = 1 + AGAIN[outcome.ended]
    failed = 1 + sum(process.tried(failing).fault is not None for _ in range(AGAIN[outcome.ended]))
    if failed < runs:
        return FailureFacts(runs, failed)
    process.workers.prepare({WORKER: 1}, python=process.python)
    best = _smallest(process, failing, outcome, excused)
    if best is not None:
        process.end()
        again = process.tried(best, SHRINK_PATIENCE_S if outcome.ended else None)
        if again.kind_of_fault == outcome.kind_of_fault:
            return FailureFacts(runs, failed, best, again.fault)
    if outcome.ended:  # each try had a process of its own
        return FailureFacts(runs, failed)
    process.end()
    return FailureFacts(runs, failed, alone=process.tried(failing).kind_of_fault == outcome.kind_of_fault)


def _smallest(process: TrialProcess, failing: Trial, outcome: TrialOutcome, excused: Excused) -> Trial | None:
    """The smallest that fails in the same way; None where that is the trial itself."""
    kind, end = outcome.kind_of_fault, time.monotonic() + SHRINK_S[outcome.ended]
    known: dict[str, bool] = {failing.id: True}

    def named(axes: Axes) -> Trial:
        return trial(failing.run_seed, process.card, process.device, {WAY: failing.way, **axes})

    def fails(axes: Axes) -> bool:
        one = named(axes)
        if one.id not in known and time.monotonic() < end:
            found = process.tried(one, SHRINK_PATIENCE_S)
            known[one.id] = found.kind_of_fault == kind and not excused(one, found)
        return known.get(one.id, False)

    first: Axes = {WAY: failing.way, **failing.axes}
    if named(first).id != failing.id and not fails(first):  # other values of the same kind pass
        return None
    best = named(fuzz_trials.smallest(first, process.card, process.device, fails))
    return None if best.id == failing.id else best
