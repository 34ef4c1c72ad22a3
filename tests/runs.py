"""Builders of run records: a case with the processes that timed it, joined into a record as `bench` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from kernelgate.bench.record import (
    Axes,
    Case,
    Device,
    Environment,
    Process,
    Role,
    RunRecord,
    TimedCase,
    TimedProcess,
    Timing,
    Work,
)


def process(samples_us: Mapping[str, Iterable[float]], role: Role = "paired", **timing: Any) -> TimedProcess:
    """One process's times of a case that is named later; `timing`: further fields of its Timing."""
    samples = {side: tuple(map(float, times)) for side, times in samples_us.items()}
    return TimedProcess(Process(id="1", role=role), Timing(case="unnamed", samples_us=samples, **timing))


def samples(rounds: int, **centres_us: float) -> dict[str, tuple[float, ...]]:
    """Times that spread a little around each side's centre."""
    return {
        side: tuple(round(centre * (1 + 0.0002 * (index % 7 - 3)), 4) for index in range(rounds))
        for side, centre in centres_us.items()
    }


def middle(timed: TimedCase, side: str) -> float | None:
    """The median of the first process; None of a side that it did not time."""
    times = timed.processes[0].samples_us.get(side)
    return sorted(times)[len(times) // 2] if times else None


def case(
    id_: str, processes: Iterable[TimedProcess] = (), axes: Axes | None = None, work: Work | None = None, **named: str
) -> TimedCase:
    """`named`: the case's `card` and `label`."""
    return TimedCase(Case(id=id_, axes=axes or {}, work=work, **named), tuple(processes))


def run_record(cases: Sequence[TimedCase] = (), environment: Environment | None = None, **parts: Any) -> RunRecord:
    """The record of these cases: the n-th process of each is the n-th of the record, unless their roles differ."""
    processes = []
    for number, row in enumerate(zip_longest(*(one.processes for one in cases)), 1):
        timed = [(one.case, found) for one, found in zip(cases, row, strict=True) if found is not None]
        roles = dict.fromkeys(found.role for _, found in timed)
        for role in roles:
            timings = tuple(
                found.timing.model_copy(update={"card": named.card, "case": named.id})
                for named, found in timed
                if found.role == role
            )
            id_ = f"{number}" if len(roles) == 1 else f"{number}-{role}"
            processes.append(Process(id=id_, role=role, timings=timings))
    where = (environment,) if environment else ()
    listed = tuple(one.case for one in cases)
    return RunRecord(**{"environments": where, "cases": listed, "processes": tuple(processes), **parts})


def on(device: str | None) -> Environment:
    return Environment(device=Device(name=device))


def changed(timed: TimedProcess, **timing: Any) -> TimedProcess:
    """The process with other fields of its Timing."""
    return replace(timed, timing=timed.timing.model_copy(update=timing))
