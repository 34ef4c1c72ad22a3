"""The processes of a run: started early, because loading torch takes seconds, and ended together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kernelgate.bench.system import memory_file, strays
from kernelgate.bench.system.worker_process import Child

VERIFIER = "kernelgate.bench.timing.verifier"
WORKER = "kernelgate.bench.timing.worker"


@dataclass
class Children:
    """Processes that wait for their first message, and those that have had it."""

    stack: ExitStack
    fd: int
    """Of the memory that they share on a CPU."""
    started: list[Child] = field(default_factory=list)
    waiting: dict[str, list[Child]] = field(default_factory=dict)
    """By module."""

    def take(self, module: str) -> Child:
        """One that has not loaded anything yet."""
        if not self.waiting.get(module):
            self.prepare(module, 1)
        return self.waiting[module].pop(0)

    def prepare(self, module: str, count: int) -> None:
        """Starts processes until so many wait."""
        waiting = self.waiting.setdefault(module, [])
        while len(waiting) < count:
            waiting.append(self.stack.enter_context(Child(module, (self.fd,))))
            self.started.append(waiting[-1])

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(child.pid for child in self.started if child.pid is not None)


@contextmanager
def started() -> Iterator[Children]:
    """A verifier and a measured process, which load torch side by side with whatever the block does before it asks for
    them. All end with the block."""
    strays.adopt()
    with memory_file.opened() as fd, ExitStack() as stack:
        children = Children(stack, fd)
        children.prepare(VERIFIER, 1)
        children.prepare(WORKER, 1)
        yield children
