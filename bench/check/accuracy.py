"""How accurate base and head are: both are called on the same inputs, in a process of its own that may crash or hang.

Errors are in units in the last place (kernel/compare.py) against the oracle in float64. Nothing is judged here. The
head shares this process with the oracle, so it could change what is found here; whether it is right at all is checked
where it cannot reach (timing/verifier.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from kernelgate.bench import record
from kernelgate.bench.build.library import LibraryAt, imports
from kernelgate.bench.check.trial_process import CheckRequest
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.kernel.commit import CardPlan, Compared, card_plans
from kernelgate.bench.record import Check, OutputAccuracy
from kernelgate.bench.system import environment, lock, progress
from kernelgate.bench.system.worker import KernelWorker, Message, WorkerError, WorkerPool, WorkerProcess, worker_pool

WORKER = "kernelgate.bench.check.accuracy_worker:measure_each"
DRAWS = 8
"""Of inputs, for each case: few enough to be cheap, enough for seven degrees of freedom."""
BUDGET_S = 10.0
"""Device time for all cards together; what is beyond it is left out."""
PATIENCE_S = 60.0
SHARE = 4
"""One case may take a quarter of the time that is left: the first one also starts the device."""
MAX_CRASHES = 2
"""After so many crashes or hangs the rest is left out."""
TIMED = "normal"
"""The distribution of timed inputs."""


class DrawnInputs(Message):
    """One case with inputs of one distribution, drawn several times."""

    id: str
    axes: dict[str, bool | int | float | str]
    distribution: str
    seeds: tuple[int, ...]
    share_s: float = 0.0

    @property
    def name(self) -> str:
        return self.id if self.distribution == TIMED else f"{self.id}, {self.distribution} inputs"


class CaseMeasured(Message):
    outputs: tuple[OutputAccuracy, ...] = ()
    left_out: str | None = None
    """Why there is nothing of this case, or of one of its outputs."""
    seconds: float = 0.0
    last: bool = False
    """The device is beyond use in this process; the cases after this one need another."""


def comparable(about: Sequence[Compared], chosen: Sequence[ChosenCase]) -> tuple[CardPlan, ...]:
    """The cards of which there is something to compare: one library on both sides has one accuracy."""
    found = card_plans(about, chosen)
    return tuple(one for one in found if one.sides.base and not one.sides.base.same_as(one.sides.head))


def run(
    parts: Sequence[CardPlan], seed: int, machine: record.Environment, workers: WorkerPool | None = None
) -> tuple[Check, ...]:
    """The accuracy of each card's base and head, in `workers` if these were started before. A check that could not be
    made says why."""
    checks: list[Check] = []
    left_s = BUDGET_S
    with (
        lock.device(machine.device.uuid),
        nullcontext(workers) if workers else worker_pool() as processes,
    ):
        for number, part in enumerate(parts):
            done, took_s = _of_card(part, seed, environment.kind(machine), left_s / (len(parts) - number), processes)
            left_s = max(0.0, left_s - took_s)
            checks.append(done)
    return tuple(checks)


def asked(part: CardPlan, seed: int) -> Iterator[DrawnInputs]:
    """Every timed case as it is timed, and the first one in the card's other distributions, too."""
    others = [name for name in part.card.distributions if name != TIMED]
    for case, distribution in (*((one, TIMED) for one in part.cases), *((part.cases[0], name) for name in others)):
        rng = random.Random(f"{seed}/accuracy/{part.card.name}/{case.id}/{distribution}")  # noqa: S311 - not for secrets
        seeds = tuple(rng.getrandbits(63) for _ in range(DRAWS))
        axes = case.axes if distribution == TIMED else {**case.axes, "distribution": distribution}
        yield DrawnInputs(id=case.id, axes=axes, distribution=distribution, seeds=seeds)


def _of_card(
    part: CardPlan, seed: int, device: environment.DeviceKind, budget_s: float, workers: WorkerPool
) -> tuple[Check, float]:
    """A card's check, from as many processes as it takes, and the time that its cases took."""
    name, libraries = part.card.name, part.sides.named
    if why := part.sides.clash:
        text = f"base and head cannot be loaded into one process: {why}"
        return Check(kind="accuracy", card=name, status="skipped", reason=text), 0.0
    chosen = tuple(asked(part, seed))
    request = CheckRequest(
        device=device,
        libraries=tuple((side, LibraryAt.of(library)) for side, library in libraries.items()),
        card=part.card.file.absolute(),
    )
    results: list[OutputAccuracy] = []
    left_out: list[str] = []
    took_s, no_more = 0.0, ""
    folders = " and ".join(str(library.folder) for library in libraries.values())
    with (
        KernelWorker(workers, WORKER, request, folders, PATIENCE_S, ahead=imports(libraries)) as process,
        progress.track(f"accuracy, {name}", len(chosen)) as advance,
    ):
        for number, case in enumerate(chosen):
            left_s = max(0.0, budget_s - took_s)
            if not no_more and process.deaths >= MAX_CRASHES:
                no_more = f"the kernels had crashed {MAX_CRASHES} processes before"
            if not no_more and left_s <= 0:
                no_more = f"the {budget_s:.3g} s for this card were spent"
            share, outcome = {"share_s": left_s / min(SHARE, len(chosen) - number)}, None
            try:
                outcome = None if no_more else _measured(process.started(), case.model_copy(update=share))
            except KernelgateError as error:
                no_more = str(error)
            outcome = outcome or CaseMeasured(left_out=no_more)
            if outcome.last:
                process.end(is_dead=True)
            advance(case.name)
            took_s += outcome.seconds
            results += outcome.outputs
            if outcome.left_out:
                left_out.append(f"{case.name}: {outcome.left_out}")
    reason = f"{len(left_out)} of {len(chosen)} left out, such as {left_out[0]}" if left_out else None
    if reason:
        progress.say(f"accuracy, {name}: {reason}")
    done = Check(
        kind="accuracy",
        card=name,
        status="passed" if results else "skipped",
        reason=reason,
        asked=len(chosen),
        run=len(chosen) - len(left_out),
        seed=seed,
        accuracies=tuple(results),
    )
    return done, took_s


def _measured(worker: WorkerProcess, asked: DrawnInputs) -> CaseMeasured:
    """What came of a case. The kernels share the process that answers, which may say anything."""
    try:
        answer = worker.ask(asked, CaseMeasured, PATIENCE_S)
    except WorkerError as error:
        return CaseMeasured(left_out=str(error), last=True)
    outputs = {each.output for each in answer.outputs}
    of_case = all((each.case, each.distribution) == (asked.id, asked.distribution) for each in answer.outputs)
    if not of_case or len(outputs) < len(answer.outputs):
        return CaseMeasured(left_out="the process sent an unexpected message", last=True)
    return answer
