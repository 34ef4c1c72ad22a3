"""The whole record, and its times case by case."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kernelgate.bench.record.base import COMPARED, Model, Role, must_be_unique
from kernelgate.bench.record.builds import Build
from kernelgate.bench.record.findings import Check, Cost, Note, Profile, Summary
from kernelgate.bench.record.identity import Card, Case, CaseKey, Environment, Expected, Run
from kernelgate.bench.record.processes import Process, Telemetry, Timing

SCHEMA: Literal["kernelgate.run/2"] = "kernelgate.run/2"


class RunRecord(Model):
    schema_: Annotated[Literal["kernelgate.run/2"], Field(alias="schema")] = SCHEMA
    run: Run = Run()
    expected: Expected | None = None
    environments: tuple[Environment, ...] = ()
    """The first is the one that the processes share where they name no other."""
    cards: tuple[Card, ...] = ()
    builds: tuple[Build, ...] = ()
    cases: tuple[Case, ...] = ()
    processes: tuple[Process, ...] = ()
    checks: tuple[Check, ...] = ()
    profile: tuple[Profile, ...] = ()
    costs: tuple[Cost, ...] = ()
    notes: tuple[Note, ...] = ()
    summary: Summary | None = None
    """Baselines only."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Self:
        must_be_unique((f"{case.card}/{case.id}" for case in self.cases), "case ids")
        must_be_unique((process.id for process in self.processes), "process ids")
        must_be_unique((one.id for one in self.environments), "environment ids")
        known = {case.key for case in self.cases}
        for process in self.processes:
            strange = next((timing.case for timing in process.timings if timing.key not in known), None)
            if strange is not None:
                raise ValueError(f"process {process.id} timed {strange!r}, which is not among the cases")
        for check in self.checks:
            strange = next((one.case for one in check.accuracies if CaseKey(check.card, one.case) not in known), None)
            if strange is not None:
                raise ValueError(f"the accuracy of {strange!r} was measured, which is not among the cases")
        return self

    @property
    def environment(self) -> Environment:
        """Where the record was made, of several machines the first."""
        return self.environments[0] if self.environments else Environment()

    @property
    def fuzz(self) -> Check | None:
        """The fuzz results of all cards as one check, which fails where one of them does."""
        checks = [check for check in self.checks if check.kind == "fuzz"]
        if len(checks) < 2:
            return checks[0] if checks else None
        worst = min(checks, key=lambda check: ("failed", "skipped", "passed").index(check.status))
        results = tuple(result for check in checks for result in check.results)
        asked = sum(len(check.results) if check.asked is None else check.asked for check in checks)
        return worst.model_copy(update={"results": results, "asked": asked, "run": len(results)})


@dataclass(frozen=True)
class TimedProcess:
    """One process's times of one case."""

    process: Process
    timing: Timing

    @property
    def role(self) -> Role:
        return self.process.role

    @property
    def samples_us(self) -> dict[str, tuple[float, ...]]:
        return self.timing.samples_us

    @property
    def telemetry(self) -> Telemetry | None:
        return self.timing.telemetry

    @property
    def rounds(self) -> int:
        return max(map(len, self.samples_us.values()), default=0)


@dataclass(frozen=True)
class TimedCase:
    """A case with every process of one kind that timed it, in the record's order."""

    case: Case
    processes: tuple[TimedProcess, ...]

    @property
    def key(self) -> CaseKey:
        return self.case.key

    @property
    def id(self) -> str:
        return self.case.id


def timed_cases(record: RunRecord, roles: Collection[Role] = COMPARED) -> tuple[TimedCase, ...]:
    """Every case of the record with its processes of these roles, also one that no process holds."""
    found: dict[CaseKey, list[TimedProcess]] = {case.key: [] for case in record.cases}
    for process in record.processes:
        if process.role in roles:
            for timing in process.timings:
                found[timing.key].append(TimedProcess(process, timing))
    return tuple(TimedCase(case, tuple(found[case.key])) for case in record.cases)
