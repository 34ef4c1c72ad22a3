"""Stands in for a GPU: runs a verb of kernelgate on a card whose times are made up, and known.

The verb is real: its options and their variables, what it reads and writes, its words and exit codes. Made up is only
what a GPU would have said. A kernel that differs from the base takes SLOWER times as long, and its profile is that of
an attention kernel with half the blocks on a multiprocessor; both profiles are real, of an H200 (tests/data/nsight).
In the environment, GPU_IS says that the card is `lost`, or `lost 2/2` while it times that shard, that what it computes
is `wrong`, or that the first machine is `preempted` in its first process; GPU_SLOWER is another factor, and
GPU_PROCESSES in how many processes it is timed at most.
"""

from __future__ import annotations

import inspect
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock, create_autospec

# A card that is made up computes nothing, and torch takes longer to load than all the rest.

if sys.argv[1:2] != ["canary"]:  # which is judged at once: scipy looks at a torch that is loaded
    sys.modules |= {name: MagicMock() for name in ("torch", "torch.nn", "torch.nn.attention", "torch.nn.functional")}

from kernelgate.bench import record
from kernelgate.bench.build import archs
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.check import accuracy, fuzz, sanitize
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.explain import nsight
from kernelgate.bench.explain.nsight import Options
from kernelgate.bench.kernel import fuzz_trials, watched_call
from kernelgate.bench.kernel.cards import CardFacts, ChosenCase
from kernelgate.bench.measure import doctor
from kernelgate.bench.measure.machine import Level, MachineCheck
from kernelgate.bench.system import cuda_tools, environment, isolation, progress
from kernelgate.bench.system.worker import WorkerPool, WorkerProcess
from kernelgate.bench.timing import canary, paired, process
from kernelgate.ci.commands import cli

GPU_IS = os.environ.get("GPU_IS")
PLACE = int(os.environ.get("GITHUB_JOB") == "resume")
"""Which of two machines this is."""
SLOWER = float(os.environ.get("GPU_SLOWER", "1.05"))
WANTED, PROCESSES = paired.wanted, int(os.environ.get("GPU_PROCESSES", "100"))
MACHINE = record.Environment(
    device=record.Device(
        name="NVIDIA L4",
        compute_capability="8.9",
        uuid=f"GPU-{PLACE}",
        driver="580.95.05",
        memory_bytes=23_574_085_632,
        sm_count=58,
    ),
    torch="2.13.0",
    cuda="13.0",
)


def main() -> None:
    """The verb that the command line names, on the made-up card."""
    stand_in(doctor, "examine", lambda *_, **__: (health(),))
    stand_in(environment, "describe", lambda *_: MACHINE)
    stand_in(archs, "only_gpu", lambda: (8, 9))
    stand_in(fuzz, "run", fuzzed)
    stand_in(process, "timed", timed)
    stand_in(paired, "wanted", few)
    stand_in(canary, "in_process", known)
    stand_in(sanitize, "check", sanitized)
    stand_in(cuda_tools, "find", lambda *_: Path("ncu"))
    stand_in(nsight, "profile", profiled)
    stand_in(watched_call, "warm", waiting)
    # Nothing of these is asked of a card that is made up, and processes that load torch take most of the time.
    stand_in(accuracy, "comparable", lambda *_: ())
    stand_in(WorkerPool, "prepare", lambda *_: None)
    # Nor does a kernel run, which would have to be kept apart: the machine of the tests may lack bubblewrap.
    stand_in(isolation, "of", lambda *_: isolation.NONE)
    cli.main()


def stand_in(module: ModuleType | type, name: str, function: Callable[..., object]) -> None:
    """Also where it was imported from there. Raises TypeError, whatever the verb, where the function does not take all
    that the real one does."""
    real = getattr(module, name)
    inspect.signature(function).bind(*inspect.signature(real).parameters)
    loaded = [each for of, each in sys.modules.items() if of.startswith("kernelgate.")]
    for each in (module, *loaded):
        if vars(each).get(name) is real:
            setattr(each, name, function)


def health() -> MachineCheck:
    if GPU_IS == "lost":
        return MachineCheck("GPU", Level.FAILED, "the driver does not answer", "restart the machine")
    return MachineCheck("GPU", Level.PASSED, f"{MACHINE.device.name}, made up")


def known() -> record.RunRecord:
    """The canary's process: equal functions, and one that takes 2% more."""
    rng = random.Random()
    timings = tuple(
        record.Timing(
            card=record.CANARY,
            case=case,
            samples_us={
                side: tuple(900 * (1 + more * (side == "head")) * rng.gauss(1, 0.001) for _ in range(40))
                for side in ("base", "head")
            },
        )
        for case, more in ((record.EQUAL, 0.0), (record.MORE, 0.02))
    )
    process = record.Process(id=str(rng.random()), loaded=("base", "head"), timings=timings)
    cases = tuple(record.Case(card=record.CANARY, id=one.case) for one in timings)
    named = (record.Card(name=record.CANARY),)
    return record.RunRecord(environments=(MACHINE,), cards=named, cases=cases, processes=(process,))


def fuzzed(
    _: Library, card: CardFacts, seed: int, __: record.Environment, ids: Sequence[str] = (), *___: object
) -> record.Check:
    """Every configuration passes; where the card is wrong, all but the first."""
    results = [
        record.FuzzResult(
            id=trial.id,
            seed=seed,
            axes=dict(trial.axes),
            passed=True,
            max_abs_error=4e-4,
            error_ratio=0.2,
            repeat=f"kernelgate fuzz --seed {seed} --case {trial.id}",
        )
        for trial in fuzz_trials.select(seed, card, "cuda", None, ids)
    ]
    if GPU_IS == "wrong":
        said = {"passed": False, "max_abs_error": 0.41, "error_ratio": 205.0, "message": "the error is 0.41"}
        results[0] = results[0].model_copy(update=said)
        progress.say(fuzz.failure(results[0]))
    failed = sum(not result.passed for result in results)
    return record.Check(
        kind="fuzz",
        card=card.name,
        status="failed" if failed else "passed",
        asked=len(results),
        run=len(results),
        failed=failed,
        seed=seed,
        tolerance=card.recorded_case(card.target).tolerance,
        results=tuple(results),
    )


def timed(setup: process.Setup, turn: process.Turn, _: object) -> process.Timed:
    """The cases of one process, with 0.2% of scatter. All that surrounds it is real."""
    shard = os.environ.get("KERNELGATE_BENCH_SHARD", "")
    if f"lost {shard}" == GPU_IS:
        os.kill(os.getpid(), signal.SIGKILL)
    if GPU_IS == "preempted" and not PLACE:
        os.kill(os.getpid(), signal.SIGTERM)  # there is time to finish
    draw, rounds = random.Random(f"{shard} {turn.id}"), 8 if turn.role == "witness" else setup.how.rounds
    timings = tuple(timing(turn, case.id, rounds, draw) for case in turn.cases)
    named = {"id": turn.id, "environment": setup.environment.id, "role": turn.role}
    return process.Timed(record.Process(**named, exit=0, timings=timings), (), ())


def few(plan: paired.PairedPlan, current: record.RunRecord, undecided: paired.Undecided) -> frozenset[record.CaseKey]:
    return WANTED(plan, current, undecided) if len(current.processes) < PROCESSES else frozenset()


def timing(turn: process.Turn, case: str, rounds: int, draw: random.Random) -> record.Timing:
    centres = {**dict.fromkeys(turn.libraries, 321.0), "reference": 330.0}
    if differ(turn.libraries.get("base"), turn.libraries["head"]):
        centres["head"] *= SLOWER
    return record.Timing(
        card=turn.card.name,
        case=case,
        samples_us={
            side: tuple(round(centre * (1 + draw.gauss(0, 0.002)), 3) for _ in range(rounds))
            for side, centre in centres.items()
        },
        inner_repeats=4,
        calls={side: record.Calls(compared=3, failed=0) for side in turn.libraries},
        errors={side: record.OutputErrors(maximum=5e-4) for side in turn.libraries},
        telemetry=record.Telemetry(sm_mhz=1710.0, memory_mhz=6251.0, temperature_c=60.0, power_w=70.0),
    )


def sanitized(
    card: CardFacts, _: Sides, __: Capability, asked: sanitize.SanitizerOptions, *_started: object
) -> record.Check:
    """No tool finds anything."""
    runs, case = len(asked.tools), card.target.id
    return record.Check(
        kind="sanitizer", card=card.name, status="passed", asked=runs, run=runs, tools=asked.tools, cases=(case,)
    )


PROFILE = nsight.profile


@contextmanager
def waiting(_: Sequence[watched_call.Watching], *_first: int) -> Iterator[watched_call.WarmProcesses]:
    """Nothing is started."""
    yield create_autospec(watched_call.WarmProcesses, instance=True)


def profiled(libraries: Mapping[str, Sides], cases: Sequence[ChosenCase], options: Options) -> nsight.ProfilingResult:
    """Nsight Compute is the only thing that is not run: each side's report is one that it wrote on another day."""
    sys.path.append(str(Path(__file__).parents[2]))
    from tests.engine import reports

    def side(job: nsight.ProfilingJob, _: WorkerProcess) -> record.Profile:
        card, case = job.chosen.card.name, job.chosen.case.id
        changed = job.side == "head" and differ(libraries[card].base, libraries[card].head)
        report = reports.AFTER if changed else reports.BEFORE
        job.report.write_bytes(report.data)
        return record.Profile(
            card=card,
            case=case,
            side=job.side,
            metrics=dict(report.figures),
            report=job.report.name,
        )

    stand_in(nsight.Making, "wait_for_call", lambda *_: None)
    stand_in(nsight.Making, "finish", lambda *_: None)
    stand_in(nsight, "profile_of", side)
    return PROFILE(libraries, cases, options)


def differ(base: Library | None, head: Library) -> bool:
    return base is not None and base.manifest.key != head.manifest.key


if __name__ == "__main__":
    main()
