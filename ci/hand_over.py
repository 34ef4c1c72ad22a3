"""Libraries that go from the machine that compiles to the one that measures."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench.build.library import Libraries, folder_digest
from kernelgate.bench.kernel import commit
from kernelgate.ci.github.actions import Step


def export(built: Libraries, folder: Path) -> Libraries:
    """Copies of the libraries in `folder`. In a workflow the step's output `digest` says what is in it."""
    copies = commit.export(built, folder)
    step = Step()
    if step.in_workflow:
        step.output(digest=folder_digest(folder))
    return copies
