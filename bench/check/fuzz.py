"""The fuzzer: random configurations of a kernel against PyTorch's SDPA in float64.

Everything random comes from one seed and the configuration's id, so that one configuration can be run again alone.
The kernel runs in a process of its own, which may crash or hang.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.errors import KernelgateError, UsageError
from kernelgate.bench.kernel.case_list import CARD, SCALE, Dtype, SuiteCase
from kernelgate.bench.kernel.tolerance import TOLERANCES
from kernelgate.bench.system import environment, lock, progress
from kernelgate.bench.system.worker_process import Child, ChildError, Message

SEQS, BATCHES, HEADS = (448, 512, 640), (16, 32, 48), (4, 8, 16)
EDGE_SEQS = (1, 4, 63, 64, 65, 127, 128, 192, 256, 513, 1024)
EDGE_BATCH, EDGE_HEADS = 2, 3
CPU_BATCHES_FEWER, CPU_HEADS_FEWER = 8, 4
"""A CPU runs the same list with so many times fewer batches and heads."""
JITTER = 40
"""How far a ragged S may lie from its nominal value, either way."""
SCALES = (1 / 32, 1 / 4)
PATIENCE_S = 120.0
MAX_CRASHES = 3
"""After so many crashes or hangs the rest of the list is not run."""

Distribution = Literal["normal", "uniform", "large", "tiny", "mixed", "peaked"]
FUZZED_DTYPES: dict[environment.DeviceKind, tuple[Dtype, ...]] = {
    "cuda": ("fp16", "bf16"),
    "cpu": ("fp32", "fp16", "bf16"),
}


class Trial(Message):
    """One configuration, drawn."""

    id: str
    batch: int
    heads: int
    seq: int
    dtype: Dtype
    causal: bool
    scale: float
    distribution: Distribution
    seed: int
    """For the inputs: drawn from the run's seed and the id."""

    @property
    def case(self) -> SuiteCase:
        return SuiteCase(self.seq, self.batch, self.heads, self.dtype, self.causal)

    @property
    def axes(self) -> record.Axes:
        return {**self.case.axes, "scale": self.scale, "distribution": self.distribution}


class FuzzRequest(Message):
    device: environment.DeviceKind
    library: Path
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
    last: bool = False
    """The device is beyond use in this process; the trials after this one need another."""


FromWorker = Annotated[Loaded | Unloadable | TrialOutcome, Field(discriminator="kind")]
_MESSAGE: TypeAdapter[Loaded | Unloadable | TrialOutcome] = TypeAdapter(FromWorker)


@dataclass(frozen=True)
class Configuration:
    """An entry of the list, before anything is drawn."""

    id: str
    seq: int
    batch: int
    heads: int
    ragged: bool


def configurations(device: environment.DeviceKind) -> tuple[Configuration, ...]:
    """The 27 configurations around S=512, then the edge sizes; on a CPU with fewer batches and heads."""
    fewer = (CPU_BATCHES_FEWER, CPU_HEADS_FEWER) if device == "cpu" else (1, 1)
    around = (
        Configuration(f"s{seq}_b{batch}_h{heads}", seq, batch // fewer[0], heads // fewer[1], ragged=True)
        for seq, batch, heads in product(SEQS, BATCHES, HEADS)
    )
    edges = (Configuration(f"edge_s{seq}", seq, EDGE_BATCH, EDGE_HEADS, ragged=False) for seq in EDGE_SEQS)
    return (*around, *edges)


def trials(seed: int, device: environment.DeviceKind) -> tuple[Trial, ...]:
    """The whole list, drawn. Every combination of dtype, causal and distribution stands in it at least once."""
    places = configurations(device)
    every = list(product(FUZZED_DTYPES[device], (False, True), get_args(Distribution)))
    rng = random.Random(f"{seed}")  # noqa: S311 - not for secrets
    combinations = every + rng.choices(every, k=len(places) - len(every))
    rng.shuffle(combinations)
    return tuple(_drawn(seed, place, *combined) for place, combined in zip(places, combinations, strict=True))


def _drawn(seed: int, place: Configuration, dtype: Dtype, causal: bool, distribution: Distribution) -> Trial:
    """A third of the ragged configurations keeps the nominal S, half of all keep the default scale."""
    rng = random.Random(f"{seed}/{place.id}")  # noqa: S311 - not for secrets
    jitter = rng.choice((0, rng.randint(-JITTER, -1), rng.randint(1, JITTER))) if place.ragged else 0
    low, high = SCALES
    scale = rng.choice((SCALE, low * (high / low) ** rng.random()))
    return Trial(
        id=place.id,
        batch=place.batch,
        heads=place.heads,
        seq=place.seq + jitter,
        dtype=dtype,
        causal=causal,
        scale=scale,
        distribution=distribution,
        seed=rng.getrandbits(63),
    )


def select(seed: int, device: environment.DeviceKind, ids: Iterable[str]) -> tuple[Trial, ...]:
    """The trials with these ids, or all. Raises UsageError for an id that is not in the list."""
    drawn = {trial.id: trial for trial in trials(seed, device)}
    wanted = tuple(dict.fromkeys(ids)) or tuple(drawn)
    unknown = [id_ for id_ in wanted if id_ not in drawn]
    if unknown:
        raise UsageError(f"there is no fuzz case {', '.join(unknown)}; there are {', '.join(drawn)}")
    return tuple(drawn[id_] for id_ in wanted)


def run(
    library: Library,
    seed: int,
    machine: record.Environment,
    ids: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
) -> record.Check:
    """Runs the list, or the named part of it. A configuration on which the kernel crashes or hangs has failed.

    Raises KernelgateError where the library cannot be loaded, UsageError for an id that is not in the list.
    """
    device = environment.kind(machine)
    chosen = select(seed, device, ids)
    progress.say(f"fuzz: {sizes(chosen, device)}, seed {seed}")
    results: list[record.FuzzResult] = []
    with lock.device(machine.device.uuid), progress.track("fuzz", len(chosen)) as advance:
        for trial, outcome in zip(chosen, _outcomes(library, device, chosen, patience_s), strict=True):
            results.append(_result(seed, trial, outcome))
            advance(trial.id)
            if outcome.fault:
                progress.say(failure(results[-1]))
    failed = sum(not result.passed for result in results)
    return record.Check(
        kind="fuzz",
        card=CARD,
        status="failed" if failed else "passed",
        asked=len(chosen),
        run=len(results),
        failed=failed,
        seed=seed,
        tolerance=TOLERANCES["fp16"],
        results=tuple(results),
    )


def skipped(reason: str) -> record.Check:
    return record.Check(kind="fuzz", card=CARD, status="skipped", reason=reason)


def exit_code(done: record.Check) -> int:
    """0 all passed, 1 a case failed, 2 skipped."""
    return {"passed": 0, "failed": 1, "skipped": 2}[done.status]


def summary(done: record.Check) -> str:
    """The end of a run in one sentence."""
    if done.status == "skipped":
        return f"fuzz: skipped: {done.reason}"
    passed = sum(result.passed for result in done.results)
    return f"fuzz: {passed} of {len(done.results)} configurations passed, seed {done.seed}"


def sizes(chosen: Sequence[Trial], device: environment.DeviceKind) -> str:
    """What is run, in words."""
    if len(chosen) == 1:
        trial = chosen[0]
        return (
            f"{trial.id} as {trial.case.id}, scale {trial.scale:.4g}, {trial.distribution} inputs, on the "
            f"{'GPU' if device == 'cuda' else 'CPU'}"
        )
    if device == "cuda":
        return f"{len(chosen)} configurations on the GPU"
    most = max(chosen, key=lambda trial: trial.batch * trial.heads)
    return (
        f"{len(chosen)} configurations on the CPU, where batches are {CPU_BATCHES_FEWER} and heads {CPU_HEADS_FEWER} "
        f"times fewer than in their names (B={most.batch} H={most.heads} at most)"
    )


def failure(result: record.FuzzResult) -> str:
    """A failed configuration in two lines: what is wrong, and the command that runs it again."""
    return f"FAILED {result.id} (seed {result.seed}): {result.message}\n  repeat: {result.repeat}"


def _result(seed: int, trial: Trial, outcome: TrialOutcome) -> record.FuzzResult:
    return record.FuzzResult(
        id=trial.id,
        seed=seed,
        axes=trial.axes,
        passed=outcome.fault is None,
        max_abs_error=outcome.max_abs_error,
        error_ratio=outcome.error_ratio,
        message=outcome.fault,
        repeat=shlex.join(["kernelgate", "fuzz", "--seed", str(seed), "--case", trial.id]),
    )


def _outcomes(
    library: Library, device: environment.DeviceKind, chosen: Sequence[Trial], patience_s: float
) -> Iterator[TrialOutcome]:
    """One for each trial, in order, from as many processes as it takes."""
    left = list(chosen)
    deaths = 0
    while left and deaths < MAX_CRASHES:
        with Child("kernelgate.bench.check.fuzz_worker") as child:
            _start(child, library, device, left, patience_s)
            alive = True
            while left and alive:
                outcome = _next(child, patience_s)
                alive = not outcome.last
                left.pop(0)
                yield outcome
        deaths += 1
    for _ in left:
        yield _fault(f"not run, because the kernel had crashed {MAX_CRASHES} processes before")


def _start(
    child: Child, library: Library, device: environment.DeviceKind, left: Sequence[Trial], patience_s: float
) -> None:
    try:
        child.send(FuzzRequest(device=device, library=library.folder.absolute(), trials=tuple(left)))
        answer = child.receive(_MESSAGE, patience_s)
    except ChildError as error:
        raise KernelgateError(f"{library.path} cannot be loaded: the process {error}") from None
    if isinstance(answer, Unloadable):
        raise KernelgateError(answer.why)


def _next(child: Child, patience_s: float) -> TrialOutcome:
    """The outcome of the child's current trial; a crash is an outcome too."""
    try:
        answer = child.receive(_MESSAGE, patience_s)
    except ChildError as error:
        return _fault(f"the process {error}")
    return answer if isinstance(answer, TrialOutcome) else _fault("the process sent an unexpected message")


def _fault(why: str) -> TrialOutcome:
    return TrialOutcome(fault=why, max_abs_error=None, error_ratio=None, last=True)
