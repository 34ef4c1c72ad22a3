"""What past comparisons tell of each case's processes: `.ci/spreads.json`, beside the baselines.

It belongs to whoever judges: a verb reads it from its own checkout, in a workflow the default branch's, and a record
cannot bring one. A database of all runs may take the file's place behind `known_spread`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from kernelgate.bench import files
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.record import CaseKey, Device, RunRecord
from kernelgate.ci.judge.bounds import PolicySection
from kernelgate.ci.judge.policy import Policy, Spread
from kernelgate.ci.judge.spread import KnownSpread
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.validity import percent

SPREADS_FILE = Path(".ci/spreads.json")
MOST_PCT = 1000.0
"""Of a spread: such processes tell nothing, however much further they scatter."""


class HistoryError(KernelgateError):
    """The file of spreads cannot be read, or is none."""


@dataclass(frozen=True)
class History:
    """The spreads of cases that were compared before, by the kind of GPU and the case."""

    spreads: Mapping[tuple[str, CaseKey], KnownSpread] = field(default_factory=dict)


NO_HISTORY = History()


def known_spread(history: History, device: Device, key: CaseKey, rules: Spread) -> KnownSpread | None:
    """What is known of a case on this kind of device; None where that is too little to rest on."""
    found = history.spreads.get((device.name or "", key))
    return found if found is not None and found.df >= rules.history_df else None


# ---- learning --------------------------------------------------------------------------------------------------------


def learned(history: History, record: RunRecord, policy: Policy) -> History:
    """The history with what a record adds: how far the processes of each case scatter, whatever the code's change.

    Of paired comparisons on a named device alone. A case that was seen later than the record was made has it already.
    """
    from kernelgate.ci.judge import estimate  # it asks this module

    device, made = record.environment.device, record.run.created_at
    spreads = dict(history.spreads)
    for case in estimate.of_record(record, policy) if device.name else ():
        if not case.paired or len(case.groups) != 1 or case.groups[0].df < 1:
            continue
        place = (device.name or "", case.key)
        old = spreads.get(place)
        if old is None or made is None or old.last_seen is None or old.last_seen < made:
            new = seen(case.groups[0].values, case.groups[0].variances, made)
            spreads[place] = joined(old, new, policy.spread.history_memory_df) if old else new
    return replace(history, spreads=spreads)


def seen(values: Array, variances: Array, made: str | None) -> KnownSpread:
    """Of one comparison. No process is left out: that one stood alone is what the next comparison must know."""
    return KnownSpread(
        spread_pct=_rounded(percent(float(np.std(values, ddof=1)))),
        noise_pct=_rounded(percent(math.sqrt(float(variances.mean())))),
        df=len(values) - 1,
        comparisons=1,
        last_seen=made,
    )


def joined(old: KnownSpread, new: KnownSpread, memory_df: float) -> KnownSpread:
    """Mean squares, weighted by degrees of freedom. Of the past no more than `memory_df` in all stays."""
    kept = max(0.0, min(old.df, memory_df - new.df))
    df = kept + new.df

    def together(before: float, now: float) -> float:
        return _rounded(math.sqrt((kept * before**2 + new.df * now**2) / df))

    return KnownSpread(
        spread_pct=together(old.spread_pct, new.spread_pct),
        noise_pct=together(old.noise_pct, new.noise_pct),
        df=df,
        comparisons=old.comparisons + new.comparisons,
        last_seen=new.last_seen or old.last_seen,
    )


def _rounded(value: float) -> float:
    """To digits that a reader of the file can compare, and no further than what may stand there."""
    return float(f"{min(value, MOST_PCT):.4g}")


# ---- the file --------------------------------------------------------------------------------------------------------


class _Row(PolicySection):
    gpu: str
    card: str
    case: str
    known: KnownSpread


class _File(PolicySection):
    schema_: Literal["kernelgate.spreads/1"]
    spreads: tuple[_Row, ...]


def read(path: Path = SPREADS_FILE) -> History:
    """The history in a file; an empty one where there is none. Raises HistoryError where it is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return NO_HISTORY
    except (OSError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: the spreads cannot be read: {error}") from None
    try:
        content = json.loads(text)
        found = _File.model_validate({("schema_" if key == "schema" else key): value for key, value in content.items()})
    except (ValueError, AttributeError, RecursionError) as error:
        raise HistoryError(f"{path} does not hold spreads: {_first(error)}") from None
    return History({(row.gpu, CaseKey(row.card, row.case)): row.known for row in found.spreads})


def load(say: Callable[[str], None], path: Path = SPREADS_FILE) -> History:
    """The history in a file; none where that is not there. A broken one is said, and stops nothing."""
    try:
        return read(path)
    except HistoryError as error:
        say(f"{error}; judged without a history, which takes more processes")
        return NO_HISTORY


def to_json(history: History) -> str:
    """One case a line, in a fixed order, so that people can read what changed."""
    rows = [_line(gpu, key, known) for (gpu, key), known in sorted(history.spreads.items(), key=lambda item: item[0])]
    return '{"schema": "kernelgate.spreads/1", "spreads": [\n' + ",\n".join(rows) + "\n]}\n"


def write(history: History, path: Path) -> None:
    """Puts the file there as a whole, or leaves the old one. Raises OutputError."""
    files.write(path, to_json(history))


def _line(gpu: str, key: CaseKey, known: KnownSpread) -> str:
    return json.dumps({"gpu": gpu, "card": key.card, "case": key.id, "known": known.model_dump()}, ensure_ascii=False)


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return str(error)
