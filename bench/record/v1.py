"""Reads `kernelgate.run/1`, for ever, and turns it into the record of today. Nothing writes it any more.

There a case held its processes (called launches), sides were `base`, `head` and `oracle` (the reference of today), and
what the compiler made of the kernels stood apart from the builds.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from kernelgate.bench.record import builds, findings, identity, processes, run_record
from kernelgate.bench.record.base import (
    Axes,
    Capability,
    Count,
    Finite,
    Flag,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Role,
    Side,
    Whole,
    without_nulls,
)
from kernelgate.bench.record.identity import Tolerance, Work
from kernelgate.bench.record.processes import Telemetry

SCHEMA: Literal["kernelgate.run/1"] = "kernelgate.run/1"

TimedV1 = Literal["base", "head", "oracle"]
SideV1 = Literal["base", "head"]
ROLES: dict[str, Role] = {"interleaved": "paired", "alternating": "alternating", "block": "block"}


class SubjectV1(Model):
    repository: str | None = None
    pull_request: Whole | None = None
    base_sha: str | None = None
    head_sha: str | None = None
    run_id: Whole | None = None
    run_attempt: Whole | None = None
    created_at: str | None = None


class DeviceV1(Model):
    name: str | None = None
    compute_capability: Capability | None = None
    uuid: str | None = None
    driver: str | None = None
    memory_bytes: Count | None = None
    sm_count: Count | None = None
    l2_bytes: Count | None = None


class EnvironmentV1(Model):
    device: DeviceV1 = DeviceV1()
    torch: str | None = None
    cuda: str | None = None
    python: str | None = None
    os: str | None = None
    host: str | None = None


class BuildV1(Model):
    side: SideV1
    sha: str | None = None
    seconds: NonNegative | None = None
    cached: Flag | None = None
    targets: tuple[str, ...] = ()
    library_sha256: str | None = None


class FuzzResultV1(Model):
    id: str
    seed: Whole
    params: Axes = {}
    passed: Flag
    max_abs_error: NonNegative | None = None
    error_ratio: NonNegative | None = None
    message: str | None = None
    repeat: str | None = None


class FuzzV1(Model):
    status: Literal["passed", "failed", "skipped"]
    seed: Whole | None = None
    reason: str | None = None
    tolerance: Tolerance | None = None
    results: tuple[FuzzResultV1, ...] = ()


class OutputCheckV1(Model):
    passed: Flag
    max_abs_error: NonNegative | None = None


class LaunchV1(Model):
    order: Literal["interleaved", "alternating", "block"] = "interleaved"
    samples_us: Annotated[dict[TimedV1, tuple[Microseconds, ...]], BeforeValidator(without_nulls)]
    inner_repeats: Positive | None = None
    telemetry: Telemetry | None = None
    graph_us: dict[TimedV1, Microseconds] = {}
    outputs: dict[TimedV1, OutputCheckV1] = {}

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        lengths = {side: len(samples) for side, samples in self.samples_us.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"samples_us needs arrays of one length, one entry a round; got {lengths}")
        return self


class CaseV1(Model):
    id: Annotated[str, Field(min_length=1)]
    params: Axes = {}
    work: Work | None = None
    launches: tuple[LaunchV1, ...] = ()


class ProfileV1(Model):
    case: str
    side: SideV1
    metrics: dict[str, Finite | str | None] = {}
    report: str | None = None


class ResourcesV1(Model):
    side: SideV1
    target: str
    kernel: str
    registers: Count | None = None
    spill_bytes: Count | None = None
    shared_bytes: Count | None = None
    static_shared_bytes: Count | None = None
    dynamic_shared_bytes: Count | None = None
    stack_bytes: Count | None = None
    threads: Count | None = None
    occupancy_pct: dict[str, NonNegative] = {}
    occupancy_limits: dict[str, str] = {}
    instructions: dict[str, Count] = {}


class BaselineSummaryV1(Model):
    median_us: Microseconds
    interval_us: tuple[Microseconds, Microseconds]
    samples: Count
    launches: Count


class SummaryV1(Model):
    source: str
    cases: dict[str, BaselineSummaryV1]


class RunV1(Model):
    """A whole record of run/1."""

    schema_: Annotated[Literal["kernelgate.run/1"], Field(alias="schema")] = SCHEMA
    subject: SubjectV1 = SubjectV1()
    environment: EnvironmentV1 = EnvironmentV1()
    build: tuple[BuildV1, ...] = ()
    fuzz: FuzzV1 | None = None
    cases: tuple[CaseV1, ...] = ()
    profile: tuple[ProfileV1, ...] = ()
    resources: tuple[ResourcesV1, ...] = ()
    notes: tuple[str, ...] = ()
    summary: SummaryV1 | None = None

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)


def upgraded(old: RunV1) -> run_record.RunRecord:
    """The same facts as a record of today. The n-th launch of every case becomes the n-th process."""
    return run_record.RunRecord(
        run=identity.Run(**old.subject.model_dump()),
        environments=(identity.Environment(**old.environment.model_dump()),),
        builds=_builds(old),
        cases=tuple(identity.Case(id=case.id, axes=case.params, work=case.work) for case in old.cases),
        processes=_processes(old),
        checks=(_fuzz(old.fuzz),) if old.fuzz else (),
        profile=tuple(findings.Profile(**one.model_dump()) for one in old.profile),
        notes=tuple(findings.Note(text=_of_processes(text)) for text in old.notes),
        summary=_summary(old.summary) if old.summary else None,
    )


def _of_processes(note: str) -> str:
    """ "seed 7 from launch 1 on" speaks of processes, as they are called today."""
    return re.sub(r"^seed (\d+) from launch (\d+) on$", r"seed \1 from process \2 on", note)


def _builds(old: RunV1) -> tuple[builds.Build, ...]:
    """The builds with their kernels; a side whose kernels are known gets a build where it had none."""
    known = {build.side: build for build in old.build}
    facts: dict[str, list[builds.KernelFacts]] = {}
    for one in old.resources:
        known.setdefault(one.side, BuildV1(side=one.side))
        facts.setdefault(one.side, []).append(_facts(one))
    return tuple(
        builds.Build(**build.model_dump(), kernels=tuple(facts.get(side, ()))) for side, build in known.items()
    )


def _facts(one: ResourcesV1) -> builds.KernelFacts:
    kept = one.model_dump(exclude={"side", "kernel", "shared_bytes"})
    return builds.KernelFacts(name=one.kernel, **kept)


def _processes(old: RunV1) -> tuple[processes.Process, ...]:
    """Launches of one order and number stood in one process; where orders differ, they are kept apart."""
    found: dict[tuple[int, str], list[processes.Timing]] = {}
    for case in old.cases:
        for number, launch in enumerate(case.launches, 1):
            found.setdefault((number, launch.order), []).append(_timing(case.id, launch))
    doubled = {number for number, _ in found if sum(other == number for other, _ in found) > 1}
    return tuple(
        processes.Process(
            id=f"{number}-{order}" if number in doubled else str(number), role=ROLES[order], timings=tuple(timings)
        )
        for (number, order), timings in sorted(found.items(), key=lambda item: item[0][0])
    )


def _timing(case_id: str, launch: LaunchV1) -> processes.Timing:
    return processes.Timing(
        case=case_id,
        samples_us={_side(side): samples for side, samples in launch.samples_us.items()},
        inner_repeats=launch.inner_repeats,
        graph_us={_side(side): time for side, time in launch.graph_us.items()},
        calls={_side(side): processes.Calls(failed=int(not check.passed)) for side, check in launch.outputs.items()},
        errors={
            _side(side): processes.OutputErrors(maximum=check.max_abs_error) for side, check in launch.outputs.items()
        },
        telemetry=launch.telemetry,
    )


def _side(old: TimedV1) -> Side:
    return "reference" if old == "oracle" else old


def _fuzz(old: FuzzV1) -> findings.Check:
    results = tuple(findings.FuzzResult(axes=one.params, **one.model_dump(exclude={"params"})) for one in old.results)
    ran = len(results) if old.status != "skipped" else None
    failed = sum(not one.passed for one in results) if old.status != "skipped" else None
    return findings.Check(
        kind="fuzz",
        status=old.status,
        reason=old.reason,
        run=ran,
        failed=failed,
        seed=old.seed,
        tolerance=old.tolerance,
        results=results,
    )


def _summary(old: SummaryV1) -> findings.Summary:
    cases = {
        id_: findings.BaselineSummary(processes=one.launches, **one.model_dump(exclude={"launches"}))
        for id_, one in old.cases.items()
    }
    return findings.Summary(source=old.source, cases=cases)
