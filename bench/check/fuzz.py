"""The fuzzer: random configurations of a kernel against its card's oracle in float64.

The kernel runs in a process of its own, which may crash or hang.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.kernel import fuzz_risk
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, Trial
from kernelgate.bench.system import children as child_processes
from kernelgate.bench.system import environment, lock, progress, strays
from kernelgate.bench.system.children import Children
from kernelgate.bench.system.worker_process import Child, ChildError, Message

WORKER = "kernelgate.bench.check.fuzz_worker"
PATIENCE_S = 120.0
MAX_CRASHES = 3
"""After so many crashes or hangs the rest of the list is not run."""


class FuzzRequest(Message):
    device: environment.DeviceKind
    library: LibraryAt
    card: Path
    """The judging card: inputs, oracle and tolerance."""
    trials: tuple[Trial, ...]


class Loaded(Message):
    kind: Literal["loaded"] = "loaded"


class Unloadable(Message):
    kind: Literal["unloadable"] = "unloadable"
    why: str


class TrialOutcome(Message):
    """What one trial showed; it passed where `fault` is None."""

    kind: Literal["outcome"] = "outcome"
    fault: str | None
    max_abs_error: record.NonNegative | None
    error_ratio: record.NonNegative | None
    note: str | None = None
    """What is not wrong and worth knowing, such as that the kernel refused its inputs by name."""
    repeatable: bool | None = None
    untried: str | None = None
    """Why the card cannot make such a case: then nothing was tried."""
    last: bool = False
    """The device is beyond use in this process; the trials after this one need another."""


FromWorker = Annotated[Loaded | Unloadable | TrialOutcome, Field(discriminator="kind")]
_MESSAGE: TypeAdapter[Loaded | Unloadable | TrialOutcome] = TypeAdapter(FromWorker)


def run(
    library: Library,
    card: CardFacts,
    seed: int,
    machine: record.Environment,
    ids: Sequence[str] = (),
    children: Children | None = None,
) -> record.Check:
    """Runs the card's list and what is risky besides, or the named part of it. A configuration on which the kernel
    crashes or hangs has failed.

    `children`: processes that were started before, among which may be the one that this needs.
    Skipped where the card has nothing to fuzz on this machine. Raises KernelgateError where the library cannot be
    loaded, UsageError for an id that is not in the list.
    """
    device = environment.kind(machine)
    chosen = fuzz_risk.select(seed, card, device, machine.device.memory_bytes, ids)
    if not chosen:
        return skipped(nothing_to_fuzz(card, device), card.name)
    progress.say(f"fuzz: {sizes(card, chosen, device)}, seed {seed}")
    results: list[record.FuzzResult] = []
    untried: list[str] = []
    with (
        lock.device(machine.device.uuid),
        nullcontext(children) if children else child_processes.opened() as processes,
        progress.track("fuzz", len(chosen)) as advance,
    ):
        outcomes = _outcomes(library, card, device, chosen, processes)
        for trial, outcome in zip(chosen, outcomes, strict=True):
            advance(trial.id)
            if outcome.untried:
                untried.append(f"{trial.id}: {outcome.untried}")
                continue
            results.append(_result(seed, card, trial, outcome))
            if outcome.fault:
                progress.say(failure(results[-1]))
    if untried:
        progress.say(f"fuzz: {len(untried)} not tried, such as {untried[0]}")
    failed = sum(not result.passed for result in results)
    return record.Check(
        kind="fuzz",
        card=card.name,
        status="failed" if failed else "passed",
        reason=f"{len(untried)} not tried, such as {untried[0]}" if untried else None,
        asked=len(chosen) - len(untried),
        run=len(results),
        failed=failed,
        seed=seed,
        tolerance=card.recorded_case(card.target).tolerance,
        results=tuple(results),
    )


def try_case(library: Library, card: CardFacts, case: CaseFacts, machine: record.Environment) -> str | None:
    """What is wrong with the kernel on one case; None where its outputs are right.

    Raises KernelgateError where the library cannot be loaded.
    """
    trial = Trial(id=case.id, axes={**case.axes, DISTRIBUTION: card.distributions[0]}, seed=0)
    with lock.device(machine.device.uuid), child_processes.opened() as processes:
        return next(_outcomes(library, card, environment.kind(machine), [trial], processes)).fault


def nothing_to_fuzz(card: CardFacts, device: environment.DeviceKind) -> str:
    """Why a card's list is empty on this machine."""
    where = "a machine without a GPU" if device == "cpu" else "a GPU"
    return f"the card {card.name} has no cases for {where}"


def skipped(reason: str, card: str = "") -> record.Check:
    return record.Check(kind="fuzz", card=card, status="skipped", reason=reason)


def exit_code(done: Sequence[record.Check]) -> int:
    """0 all passed, 1 a case failed, 2 all skipped."""
    statuses = {check.status for check in done}
    return 1 if "failed" in statuses else 0 if "passed" in statuses else 2


def summary(done: record.Check) -> str:
    """The end of a run in one sentence."""
    about = f"fuzz {done.card}" if done.card else "fuzz"
    if done.status == "skipped":
        return f"{about}: skipped: {done.reason}"
    passed = sum(result.passed for result in done.results)
    return f"{about}: {passed} of {len(done.results)} configurations passed, seed {done.seed}"


def sizes(card: CardFacts, chosen: Sequence[Trial], device: environment.DeviceKind) -> str:
    """What is run, in words."""
    where = "GPU" if device == "cuda" else "CPU"
    if len(chosen) > 1:
        return f"{len(chosen)} configurations of {card.name} on the {where}"
    trial = chosen[0]
    return f"{trial.id} of {card.name} as {trial.case_id}, {trial.distribution} inputs, on the {where}"


def failure(result: record.FuzzResult) -> str:
    """A failed configuration in two lines: what is wrong, and the command that runs it again."""
    return f"FAILED {result.id} (seed {result.seed}): {result.message}\n  repeat: {result.repeat}"


def _result(seed: int, card: CardFacts, trial: Trial, outcome: TrialOutcome) -> record.FuzzResult:
    return record.FuzzResult(
        id=trial.id,
        seed=seed,
        axes=dict(trial.axes),
        passed=outcome.fault is None,
        max_abs_error=outcome.max_abs_error,
        error_ratio=outcome.error_ratio,
        message=outcome.fault,
        note=outcome.note,
        repeatable=outcome.repeatable,
        repeat=shlex.join(["kernelgate", "fuzz", "--seed", str(seed), "--case", f"{card.name}/{trial.id}"]),
    )


def _outcomes(
    library: Library,
    card: CardFacts,
    device: environment.DeviceKind,
    chosen: Sequence[Trial],
    children: Children,
) -> Iterator[TrialOutcome]:
    """One for each trial, in order, from as many processes as it takes."""
    left = list(chosen)
    deaths = 0
    before = strays.children()
    while left and deaths < MAX_CRASHES:
        with ExitStack() as stack:
            child = children.take(WORKER)
            stack.callback(child.__exit__)
            request = FuzzRequest(
                device=device, library=LibraryAt.of(library), card=card.file.absolute(), trials=tuple(left)
            )
            _start(child, library, request)
            alive = True
            while left and alive:
                outcome = _next(child)
                alive = not outcome.last
                left.pop(0)
                yield outcome
        if names := strays.end(before | children.pids):
            progress.say(f"fuzz: the kernel left {', '.join(names)} running, which was ended")
        deaths += 1
    for _ in left:
        yield _fault(f"not run, because the kernel had crashed {MAX_CRASHES} processes before")


def _start(child: Child, library: Library, request: FuzzRequest) -> None:
    try:
        child.send(request)
        answer = child.receive(_MESSAGE, PATIENCE_S)
    except ChildError as error:
        raise KernelgateError(f"{library.path} cannot be loaded: the process {error}") from None
    if isinstance(answer, Unloadable):
        raise KernelgateError(answer.why)


def _next(child: Child) -> TrialOutcome:
    """The outcome of the child's current trial; a crash is an outcome too."""
    try:
        answer = child.receive(_MESSAGE, PATIENCE_S)
    except ChildError as error:
        return _fault(f"the process {error}")
    return answer if isinstance(answer, TrialOutcome) else _fault("the process sent an unexpected message")


def _fault(why: str) -> TrialOutcome:
    return TrialOutcome(fault=why, max_abs_error=None, error_ratio=None, last=True)
