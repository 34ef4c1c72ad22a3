"""`kernelgate.paired`: two functions timed against each other in the caller's process, and what that tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import RunRecord, timed_cases
from kernelgate.bench.system import environment
from kernelgate.bench.timing import functions
from kernelgate.ci.document.formatting import as_percent, between, durations
from kernelgate.ci.judge import location, stats
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.estimate import MINIMUM_ROUNDS
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class Paired:
    """What `paired` found. Percentages are changes of the time: positive is slower."""

    base_us: float
    head_us: float
    change_pct: float
    interval_pct: tuple[float, float]
    """95%, of this process alone: another draws other places in memory, and may differ by more."""
    wrong_calls: int
    """Calls of the head whose results were not the base's, of those that were compared."""
    record: RunRecord
    """With `into`, of all processes so far."""
    verdict: RecordVerdict
    """What all processes of the record tell together."""

    def __str__(self) -> str:
        if self.wrong_calls:
            return f"wrong: {self.wrong_calls} results of the head differ from the base's"
        base, head = durations(self.base_us, self.head_us)
        side = "slower" if self.change_pct > 0 else "faster"
        here = f"{base} → {head}, {abs(self.change_pct):.2f}% {side} in this process, {between(self.interval_pct, 2)}"
        many = len(self.record.processes)
        told = "; ".join(case.sentence for case in self.verdict.cases)
        return f"{here}; over {many} process{'es' if many > 1 else ''}: {told or self.verdict.reason}"


def paired(
    base: Callable[..., Any],
    head: Callable[..., Any],
    *args: Any,
    name: str = "call",
    rounds: int = 100,
    tolerance: tuple[float, float] | None = None,
    into: str | Path | None = None,
    **kwargs: Any,
) -> Paired:
    """Times `head(*args, **kwargs)` against `base(*args, **kwargs)` in random interleaved rounds, and compares results.

    Both get copies of the tensors that lie outside of the cache, must return tensors, and may not change their
    arguments. Results may differ by `tolerance`: (atol, rtol), by default as their dtype allows.

    `into`: a run record that this process is added to. Run the script several times, then `kernelgate compare FILE`
    says how sure it is: one process cannot show how much processes differ.

    Raises kernelgate.bench.core.errors.UsageError for functions and arguments that cannot be compared.
    """
    if rounds < MINIMUM_ROUNDS:
        raise UsageError(f"rounds={rounds}: a process has {MINIMUM_ROUNDS} rounds at least")
    path = Path(into) if into is not None else None
    before = record.read(path) if path and path.exists() else None
    made = functions.timed(base, head, args, kwargs, name, rounds, tolerance)
    together = made if before is None else _added(before, made, str(path))
    if path:
        record.write(together, path)
    [process] = made.processes
    [timing] = process.timings
    sides = [np.log(np.array(timing.samples_us[side])) for side in ("base", "head")]
    step = max(location.log_step(np.exp(side)) for side in sides)
    [found] = location.changes([sides[0]], [sides[1]], True, step)
    reach = stats.normal_half_width(stats.INTERVAL_LEVEL) * math.sqrt(found.variance)
    calls, rules = timing.calls.get("head"), Policy()
    if len(together.processes) < rules.processes.minimum:  # as if one were enough to say what it tells
        rules = rules.model_copy(update={"processes": rules.processes.model_copy(update={"minimum": 1})})
    return Paired(
        base_us=float(np.median(timing.samples_us["base"])),
        head_us=float(np.median(timing.samples_us["head"])),
        change_pct=as_percent(found.value),
        interval_pct=(as_percent(found.value - reach), as_percent(found.value + reach)),
        wrong_calls=calls.failed if calls else 0,
        record=together,
        verdict=judge(together, rules, name=str(path or name)),
    )


def _added(before: RunRecord, made: RunRecord, name: str) -> RunRecord:
    """The record with one more process. Raises UsageError where that is of something else."""
    known = {case.case.key for case in timed_cases(before)}
    other = [case.id for case in made.cases if case.key not in known]
    why = list(environment.differences(before.environment, made.environment))
    if other:
        why.append(f"it holds {', '.join(case.id for case in before.cases)}, not {', '.join(other)}")
    if why:
        raise UsageError(f"{name} cannot take this process: {'; '.join(why)}; name another file")
    return before.model_copy(update={"processes": (*before.processes, *made.processes)})
