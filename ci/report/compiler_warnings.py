"""What compilers warn of in the files that a pull request changes, and did not of the base; folded."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.bench.record import CompilerWarning
from kernelgate.ci.document.model import Bullets, Code, Line, Paragraph, Section
from kernelgate.ci.judge import new_warnings
from kernelgate.ci.judge.new_warnings import NewWarnings
from kernelgate.ci.report.gpu import GpuReport

MAX_LISTED = 20


def news(gpus: Sequence[GpuReport]) -> tuple[CompilerWarning, ...]:
    """Of all GPUs, each once: mostly all measure one and the same build."""
    return tuple(dict.fromkeys(warning for found in _found(gpus) for warning in found.warnings))


def sections(gpus: Sequence[GpuReport]) -> tuple[Section, ...]:
    """One for all GPUs; none where nothing is new."""
    warnings = news(gpus)
    if not warnings:
        return ()
    lines = tuple(map(_line, warnings[:MAX_LISTED]))
    if len(warnings) > MAX_LISTED:
        lines = (*lines, (f"{len(warnings) - MAX_LISTED} more are in the run record.",))
    known = all(found.against_base for found in _found(gpus) if found.warnings)
    note = "The base does not have these." if known else "Whether the base has these, too, is not known."
    title = f"{'New compiler warnings' if known else 'Compiler warnings'} ({len(warnings)})"
    return (Section(title, (Bullets(lines), Paragraph((note,))), worth=70),)


def _found(gpus: Sequence[GpuReport]) -> tuple[NewWarnings, ...]:
    return tuple(
        found for gpu in gpus if gpu.record is not None for found in new_warnings.of_record(gpu.record, gpu.changed)
    )


def _line(one: CompilerWarning) -> Line:
    where = f"{one.file}:{one.line}" if one.line else one.file
    return (Code(where, most=200), ": ", Code(one.text, most=300))
