"""compute-sanitizer over a program that is no kernel of a card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelgate.bench.check import sanitize
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CheckFinding
from kernelgate.bench.system import supervise
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.worker import child_environment


def program(sanitizer: Path, tool: str, words: Sequence[str | Path]) -> tuple[CheckFinding, ...]:
    """What one tool finds in a program. Raises KernelgateError where it could not look."""
    command = (*sanitize.words(sanitizer, tool), *words)
    with supervise.running(command, cwd=ROOT, env=child_environment()) as running:
        run = sanitize.followed(tool, running, (), sanitize.TIMEOUT_S)
    if run.problem and not run.findings:
        raise KernelgateError(run.problem)
    return run.findings
