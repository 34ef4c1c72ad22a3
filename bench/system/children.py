"""Processes that are started before they are needed, because loading torch takes seconds, and that end together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kernelgate.bench.system import isolation, orphans, temporary
from kernelgate.bench.system.worker_process import Child


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
        self.prepare({module: 1})
        return self.waiting[module].pop(0)

    def prepare(self, counts: Mapping[str, int]) -> None:
        """Starts processes until so many of each module wait."""
        for module, count in counts.items():
            waiting = self.waiting.setdefault(module, [])
            while len(waiting) < count:
                waiting.append(self.stack.enter_context(Child(module, (self.fd,), isolation.here())))
                self.started.append(waiting[-1])

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(child.pid for child in self.started if child.pid is not None)


@contextmanager
def opened() -> Iterator[Children]:
    """None yet. All that are started end with the block."""
    orphans.adopt_orphans()
    with temporary.memory_file() as fd, ExitStack() as stack:
        yield Children(stack, fd)
