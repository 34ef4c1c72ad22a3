"""Variants through kernelgate: timed beside their base as bisect does, judged as `kernelgate compare` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.fuzzing import planting
from benchmarks.fuzzing.planting import Planted
from benchmarks.variants.family import Family
from kernelgate.bench import record
from kernelgate.bench.build import library
from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.explain import nsight
from kernelgate.bench.kernel import cards, compared
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.measure import run
from kernelgate.bench.measure.bisect import Workbench
from kernelgate.bench.measure.commit_range import CommitRange
from kernelgate.bench.record import RunRecord, Timing
from kernelgate.bench.system import lock
from kernelgate.bench.timing.process import Setup, commit_side
from kernelgate.ci.explain import recommend
from kernelgate.ci.judge import outputs
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import profiled
from kernelgate.ci.lab.log import TryOutcome
from kernelgate.ci.policy.policy import Policy

TARGETS = {"wgmma": "9.0a", "cpu": ""}
"""Of the build, by path; 9.0 for the others, of which a library has sm_90a, too."""
PROCESSES = 4
"""A direction takes four."""
TOGETHER = 6
"""Tries that share processes, beside the base; eight libraries kept their relative times to 0.15% on an H200."""
NORMAL_95 = 1.96
"""Half of a 95% interval, in standard errors."""


class BaseProfile(BaseModel):
    """What a profile of the base showed: the features of every try of the family."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str
    duration_us: float | None
    bottleneck: str
    strength: float
    recommended: tuple[str, ...]
    """Actions, the best first."""
    nvidia_gain_pct: dict[str, float]
    """By bottleneck, what NVIDIA's rules estimate."""
    metrics: dict[str, float]


@dataclass(frozen=True)
class TriedVariant:
    """What came of a try."""

    said: str
    failed: str | None = None
    outcomes: tuple[TryOutcome, ...] = ()
    gpu_seconds: float | None = None
    seconds: float | None = None


def built(family: Family, number: int, folder: Path) -> Planted:
    """The library of the base (0) or of a try. Raises UnbuildableError."""
    one = planting.plant(family.head(number) if number else family.base, family.device, folder)
    planting.build(one, TARGETS.get(family.path, "9.0"))
    return one


def compare_all(family: Family, sides: Mapping[int, Planted], setup: Setup, policy: Policy) -> dict[int, TriedVariant]:
    """The base (0) and some tries, timed beside each other in the same processes; each try judged against the base.

    Raises KernelgateError where they cannot be timed.
    """
    base = sides[0]
    chosen = cards.select(cards.of_checkout(base.tree), family.device, None, (family.case,))[0]
    libraries = {at: library.read_all(one.library).built[family.kernel] for at, one in sides.items()}
    start = time.monotonic()
    states = CommitRange(base.tree, tuple(map(_sha, range(max(sides) + 1))))
    made = _made(setup, chosen)
    bench = Workbench(states, chosen.card, libraries, case=chosen.case, setup=setup, output=_keep_none, made=made)
    faults: dict[int, str] = {}
    for number in range(1, PROCESSES + 1):
        measured = bench.measure([at for at in sides if at not in faults], number)
        faults |= measured.faults
        if 0 in faults:
            raise KernelgateError(f"the base: {faults[0]}")
    seconds = round((time.monotonic() - start) / (len(sides) - 1), 1)
    wrong = {at: TriedVariant(why, "correctness", (), None, seconds) for at, why in faults.items()}
    right = [at for at in sides if at and at not in faults]
    return wrong | {at: of_record(paired(bench.made, _sha(at), len(sides) - 1), policy, seconds) for at in right}


def paired(made: RunRecord, sha: str, tries: int) -> RunRecord:
    """A record of commits, as one of the base and this commit. Each try bears its part of the time."""
    sides = {commit_side(_sha(0)): "base", commit_side(sha): "head"}
    processes = []
    for process in made.processes:
        [timing] = process.timings
        samples = {sides[one]: samples for one, samples in timing.samples_us.items() if one in sides}
        if len(samples) == len(sides):
            alone = Timing(card=timing.card, case=timing.case, samples_us=samples, inner_repeats=timing.inner_repeats)
            alone = alone.model_copy(update={"clock_step_us": timing.clock_step_us, "telemetry": timing.telemetry})
            spent = process.gpu_seconds and process.gpu_seconds / tries
            changed = {"role": "paired", "loaded": ("base", "head"), "timings": (alone,), "gpu_seconds": spent}
            processes.append(process.model_copy(update=changed))
    return made.model_copy(update={"processes": tuple(processes), "builds": ()})


def _made(setup: Setup, chosen: ChosenCase) -> RunRecord:
    return RunRecord(
        run=record.Run(id="variants", producer=run.PRODUCER, base_sha=_sha(0)),
        environments=(setup.environment,),
        cards=(chosen.card.recorded,),
        cases=(chosen.recorded,),
    )


def _sha(number: int) -> str:
    """Of a state that is no commit."""
    return f"{number:040x}"


def _keep_none(_: RunRecord) -> None:
    """What is kept of a family is its log."""


def of_record(made: RunRecord, policy: Policy, seconds: float) -> TriedVariant:
    spent = [process.gpu_seconds for process in made.processes if process.gpu_seconds is not None]
    gpu_seconds = round(sum(spent), 2) if spent else None
    for key, finding in outputs.wrong_outputs(made).items():
        return TriedVariant(f"wrong result: {key.id}: {finding.message}", "correctness", (), gpu_seconds, seconds)
    verdict = judge(made, policy)
    outcomes = tuple(one for one in map(outcome, verdict.cases) if one is not None)
    failed = None if outcomes else "measurement"
    said = verdict.cases[0].sentence if outcomes else verdict.reason
    return TriedVariant(said, failed, outcomes, gpu_seconds, seconds)


def outcome(case: CaseVerdict) -> TryOutcome | None:
    """None where there is no estimate."""
    if case.change_pct is None or case.interval_pct is None:
        return None
    low, high = case.interval_pct
    return TryOutcome(
        case=case.id,
        status=case.status.name.lower(),
        change_pct=round(case.change_pct, 3),
        interval_pct=(round(low, 3), round(high, 3)),
        error_pct=round((high - low) / 2 / NORMAL_95, 4),
        processes=case.processes,
        base_us=case.base_us,
        head_us=case.head_us,
    )


def profile(family: Family, base: Planted, folder: Path, policy: Policy, uuid: str | None) -> BaseProfile:
    """Of the base, with NVIDIA's rules. Raises KernelgateError where there is none."""
    card: str = family.kernel
    sides = {card: Sides(None, library.read_all(base.library).built[card])}
    chosen = compared.select(compared.judged(cards.of_checkout(base.tree), sides), family.device, None, (family.case,))
    # While others hold the device, its process loads torch.
    with nsight.ready(sides, chosen, nsight.Options(folder, only_gpu(), "full")) as ready, lock.device(uuid):
        done = nsight.profiled(ready)
    if not done.profiles or done.profiles[0].report is None:
        raise nsight.ProfileError("; ".join(done.failures))
    found = profiled.read(folder / done.profiles[0].report, None, policy)
    gains = {
        bottleneck.value: rule.speedup_pct
        for bottleneck, rule in recommend.rule_gains(found.kernel.rules).items()
        if rule.speedup_pct is not None
    }
    return BaseProfile(
        kernel=found.kernel.name[:200],
        duration_us=found.kernel.figures.get("duration_us"),
        bottleneck=found.bottleneck.bottleneck.value,
        strength=round(found.bottleneck.strength, 3),
        recommended=tuple(one.name for one in found.recommendations),
        nvidia_gain_pct=gains,
        metrics=dict(found.kernel.figures),
    )
