"""Libraries that go from the machine that compiles to the one that measures, and from an earlier run to a later one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernelgate.bench.build.cache import adopt
from kernelgate.bench.build.library import Libraries, folder_digest, read_all
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import commit
from kernelgate.ci.github.actions import Step


def export(built: Libraries, folder: Path) -> Libraries:
    """Copies of the libraries in `folder`. In a workflow the step's output `digest` says what is in it."""
    copies = commit.export(built, folder)
    step = Step()
    if step.in_workflow:
        step.output(digest=folder_digest(folder))
    return copies


def take_over(folders: Iterable[Path], step: Step) -> int:
    """Puts libraries that can be trusted into the build cache, where each is found by the key of its sources, recipe
    and compilers; how many. What is not as its manifest says is left out, and will be compiled."""
    taken = 0
    for folder in folders:
        try:
            for found in read_all(folder).built.values():
                adopt(found)
                taken += 1
                step.log(
                    f"{found.manifest.card} of {(found.manifest.sha or 'no commit')[:9]}: need not be compiled again"
                )
        except KernelgateError as error:
            step.warn(f"what the default branch compiled is not used: {error}")
    return taken
