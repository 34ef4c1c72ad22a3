"""`kernelgate compare`: files in, verdicts out, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge.case import Outcome, RecordVerdict
from kernelgate.ci.judge.history import Past, no_past
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import Policy

SEVERITY: Final = (1, 3, 2, 0)
"""Exit codes of single records, the worst first."""


@dataclass(frozen=True)
class Judged:
    """A file's verdict, and its record where it could be read."""

    verdict: RecordVerdict
    record: RunRecord | None = None


def compare(
    paths: Sequence[Path], policy: Policy, baseline: Path | None = None, past: Past = no_past
) -> Iterator[Judged]:
    """The verdict on each file; one that cannot be read is refused in its verdict and does not stop the others.

    Raises RecordError where the baseline cannot be read.
    """
    stored = record.read(baseline) if baseline else None
    for path in paths:
        against = str(baseline) if baseline else "base"
        try:
            run = record.read(path)
        except RecordError as error:
            reason = f"cannot be judged: {error}"
            yield Judged(RecordVerdict(str(path), Outcome.INCONCLUSIVE, reason, (), str(error), against))
        else:
            yield Judged(judge(run, policy, stored, str(path), against, past(run)), run)


def worst_exit_code(codes: Sequence[int]) -> int:
    """The exit code of several records: a regression, then what could not be told, then what no gate acts on."""
    return min(codes, key=SEVERITY.index)


def as_json(verdict: RecordVerdict) -> str:
    """One line of JSON; numbers in full, nothing that is not a number in their place."""
    whole = TypeAdapter(RecordVerdict).dump_python(verdict, mode="json", by_alias=True)
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


__all__ = ["Judged", "as_json", "compare", "exit_code", "worst_exit_code"]
