"""The outcomes for other tools: flat rows, a Parquet file, and pairs of a slow and a fast version of a kernel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.judge.case import Status
from kernelgate.ci.lab.outcomes import TryResult, gain_pct

Row = dict[str, str | float | int | bool | None]
NUMBERS = {"gain_pct", "change_pct", "low_pct", "high_pct", "error_pct", "base_us", "head_us", "nvidia_gain_pct"}
COUNTS = {"number", "processes"}
FLAGS = {"helped", "recommended"}
"""The columns of the Parquet file that hold no text."""
CASE = ("case", "status", "change_pct", "low_pct", "high_pct", "error_pct", "processes", "base_us", "head_us")
"""The columns of a case: empty where a try has none."""
BASE = "base.diff"
"""In a session's folder, where its base is not the commit that it names: from that commit to the base."""


def rows(outcomes: Iterable[TryResult]) -> tuple[Row, ...]:
    """One for each case of a try; one without times for a try that has no case."""
    return tuple(row for one in outcomes for row in _rows(one))


def _rows(one: TryResult) -> Iterator[Row]:
    gain = one.log_gain
    common: Row = {
        "session": one.session.name,
        "number": one.tried.number,
        "at": one.tried.at,
        "gpu": one.session.gpu,
        "architecture": one.features.architecture,
        "card": one.session.card,
        "bottleneck": one.features.bottleneck,
        "action": one.features.action,
        "variable": ", ".join(one.tried.variables) or None,
        "what": one.tried.what,
        "why": one.tried.why,
        "recommended": one.tried.recommended,
        "failed": one.tried.failed,
        "helped": one.helped,
        "gain_pct": None if gain is None else gain_pct(gain),
        "nvidia_gain_pct": one.tried.nvidia_gain_pct,
        "diff_sha256": one.tried.diff_sha256,
    }
    for case in one.tried.outcomes:
        low, high = case.interval_pct
        measured = {**case.model_dump(), "low_pct": low, "high_pct": high}
        yield common | {name: measured[name] for name in CASE}
    if not one.tried.outcomes:
        yield common | dict.fromkeys(CASE)


def as_parquet(outcomes: Sequence[TryResult], path: Path) -> None:
    """Raises KernelgateError where pyarrow is missing or there is nothing to write, OutputError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise KernelgateError("Parquet needs pyarrow: pip install 'kernelgate[parquet]', or use --json") from None
    made = rows(outcomes)
    if not made:
        raise KernelgateError("no outcome of any session is known: there is nothing to export")
    files.try_file(path)
    kinds = {name: _kind(name) for name in made[0]}
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in kinds.items()])
    parquet.write_table(pyarrow.Table.from_pylist(list(made), schema=schema), path, compression="zstd")


def _kind(name: str) -> str:
    if name in NUMBERS:
        return "float64"
    if name in COUNTS:
        return "int64"
    return "bool_" if name in FLAGS else "string"


def as_pairs(outcomes: Iterable[TryResult]) -> Iterator[str]:
    """A line of JSON for each case of which one side is certainly faster and both sides' diffs are kept.

    `slow` and `fast` are lists of diffs: put onto the card's sources at `commit` in order, they give that side.
    """
    for one in outcomes:
        changed = _read(one.folder / f"try-{one.tried.number}.diff")
        if changed is None:
            continue
        base = _read(one.folder / BASE)
        before = [base] if base else []
        after = [*before, changed]
        for case in one.tried.outcomes:
            status = Status[case.status.upper()]
            if status.is_news:
                slow, fast = (before, after) if status.is_faster else (after, before)
                yield json.dumps(
                    {
                        "session": one.session.name,
                        "number": one.tried.number,
                        "card": one.session.card,
                        "case": case.case,
                        "gpu": one.session.gpu,
                        "bottleneck": one.features.bottleneck,
                        "action": one.features.action,
                        "what": one.tried.what,
                        "faster": "head" if status.is_faster else "base",
                        "change_pct": case.change_pct,
                        "interval_pct": case.interval_pct,
                        "commit": one.session.base,
                        "slow": slow,
                        "fast": fast,
                    },
                    ensure_ascii=False,
                )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KernelgateError(f"{path} cannot be read: {error}") from None
