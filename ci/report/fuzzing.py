"""The fuzz list in short: how much of it passed, how near errors come to the tolerance, and how fast the kernel is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.bench.record import Check, FuzzResult, RunRecord
from kernelgate.bench.record.rates import percentile
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Column, Line, Paragraph, Piece, Section, Table
from kernelgate.ci.judge import reference
from kernelgate.ci.judge.outputs import fuzz_checks
from kernelgate.ci.report import correctness
from kernelgate.ci.report.gpu import GpuReport


@dataclass(frozen=True)
class ErrorShares:
    """Errors of one check's results, each as a share of what its dtype's tolerance allows: 1 is the limit."""

    count: int
    """Results with a finite error: one that crashed or holds NaN has none."""
    median: float
    p90: float
    worst: FuzzResult


def error_shares(check: Check) -> ErrorShares | None:
    """None where no error was measured."""
    known = [(result.error_ratio, result) for result in check.results if result.error_ratio is not None]
    if not known:
        return None
    shares = [share for share, _ in known]
    worst = max(known, key=lambda one: one[0])[1]
    return ErrorShares(len(known), percentile(shares, 50), percentile(shares, 90), worst)


def pass_rate(check: Check) -> str:
    """Rounded down, so that 100% is all of them."""
    passed = sum(result.passed for result in check.results)
    return f"{math.floor(1000 * passed / len(check.results)) / 10:g}%"


def in_words(record: RunRecord, check: Check) -> Line:
    """ "pass rate 97.3%; errors in % of the tolerance: median 12%, …"; nothing where nothing ran."""
    if not check.results:
        return ()
    found = error_shares(check)
    if found is None:
        return (f"pass rate {pass_rate(check)}; errors not measured",)
    some = f" (of {found.count} that have one)" if found.count < len(check.results) else ""
    spread = f"median {_share(found.median)}, 90th percentile {_share(found.p90)}, worst "
    said = f"pass rate {pass_rate(check)}; error in % of the tolerance{some}: {spread}"
    return (said, _share(found.worst.error_ratio or 0.0), *_where(record, check, found.worst))


def section(gpu: GpuReport) -> Section | None:
    """Folded: a row for each card, with the speed of its cases that were timed beside the reference."""
    if gpu.record is None:
        return None
    checks = [check for check in fuzz_checks(gpu.record) if check.results]
    if not checks:
        return None
    titles, speeds = correctness.titles(gpu.record), _speeds(gpu)
    beside = f"× {formatting.reference(gpu.record.cards)}"
    columns = (
        *((Column("kernel"),) if titles else ()),
        *(Column(name, numeric=True) for name in ("passed", "rate", "median error", "90th percentile", "worst")),
        Column("worst in"),
        *((Column(beside, numeric=True),) if speeds else ()),
    )
    rows = tuple(
        (
            *(((titles.get(check.card, check.card),),) if titles else ()),
            *_row(gpu.record, check),
            *(((speeds.get(check.card, formatting.MISSING),),) if speeds else ()),
        )
        for check in checks
    )
    note = "An error is the largest of all elements of a case, in percent of what the tolerance allows there."
    if speeds:
        note += f" “{beside}” is the geometric mean of the timed cases, which are not the fuzzed ones, and its range."
    return Section(_title(checks), (Table(columns, rows), Paragraph((note,))), worth=25)


def _title(checks: Sequence[Check]) -> str:
    passed = sum(result.passed for check in checks for result in check.results)
    total = sum(len(check.results) for check in checks)
    asked = sum(check.asked or 0 for check in checks)
    missing = f"; {asked} were asked for" if asked > total else ""
    return f"Fuzzing: {passed} of {formatting.counted(total, 'case')} passed{missing}"


def _row(record: RunRecord, check: Check) -> tuple[Line, ...]:
    passed = sum(result.passed for result in check.results)
    found = error_shares(check)
    shares = [_share(one) for one in (found.median, found.p90, found.worst.error_ratio or 0.0)] if found else []
    return (
        (f"{passed} of {len(check.results)}",),
        (pass_rate(check),),
        *((one,) for one in shares or [formatting.MISSING] * 3),
        _case(record, check, found.worst) if found else (formatting.MISSING,),
    )


def _case(record: RunRecord, check: Check, result: FuzzResult) -> tuple[Piece, ...]:
    """By its axes; an exact kernel has no worst case."""
    return correctness.label(record, check.card, result) if result.error_ratio else (formatting.MISSING,)


def _where(record: RunRecord, check: Check, result: FuzzResult) -> Line:
    if not result.error_ratio:
        return ()
    return (" in ", Code(result.id), " (", *correctness.label(record, check.card, result), ")")


def _speeds(gpu: GpuReport) -> dict[str, str]:
    """By card: how fast the timed cases are beside the reference. Of wrong results no speed is told."""
    found: dict[str, list[float]] = {}
    for one in () if gpu.is_wrong else gpu.cases:
        ratio = reference.times(one.case)
        if ratio is not None:
            found.setdefault(one.case.card, []).append(ratio)
    return {card: _speed(ratios) for card, ratios in found.items()}


def _speed(ratios: Sequence[float]) -> str:
    """ "1.00 (0.50 to 2.00)": the geometric mean, and between what."""
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else f"{mean:.2f}"


def _share(ratio: float) -> str:
    """Of the tolerance: rounded up beyond it, so that what fails is never called 100%."""
    if ratio > 10:
        return f"{formatting.significant(ratio, 3)}×"
    return f"{math.ceil(100 * ratio)}%" if ratio > 1 else f"{formatting.significant(100 * ratio, 2)}%"
