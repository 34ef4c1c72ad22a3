"""A worker of bench in a thread of the test, in place of a process that would first import torch for two seconds.

The messages are the real ones and travel as JSON. What only a process can do (crash, hang, refuse another library)
is tested with processes.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Sequence
from typing import Any, Self

import pytest
from pydantic import BaseModel, TypeAdapter

from kernelgate.bench.system.worker_process import ChildError

Line = str | None
"""JSON, or None where the other end is gone."""


class ThreadChild(threading.Thread):
    """`worker_process.Child`, whose module runs in this thread."""

    pid = None

    def __init__(self, module: str, _fds: Sequence[int] = (), _apart: object = None) -> None:
        super().__init__(daemon=True)
        self.worker = importlib.import_module(module)
        self.to: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self.out: queue.SimpleQueue[Line] = queue.SimpleQueue()

    def run(self) -> None:
        try:
            self.worker.main()
        except SystemExit:
            pass
        finally:
            self.out.put(None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.to.put(None)
        self.join(60)
        assert not self.is_alive()

    def send(self, message: BaseModel) -> None:
        self.to.put(message.model_dump_json())

    def receive(self, kind: TypeAdapter[Any], patience_s: float) -> Any:
        line = self.out.get(timeout=patience_s)
        if line is None:
            raise ChildError("ended early")
        return kind.validate_json(line)


class ThreadParent:
    """`worker_process.Parent`, as a worker in a ThreadChild sees it."""

    def __init__(self) -> None:
        thread = threading.current_thread()
        assert isinstance(thread, ThreadChild)
        self.child = thread

    def send(self, message: BaseModel) -> None:
        self.child.out.put(message.model_dump_json(by_alias=True))

    def receive(self, kind: type[BaseModel]) -> BaseModel:
        line = self.child.to.get()
        if line is None:
            raise SystemExit
        return kind.model_validate_json(line)


def put_workers_in_threads(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone. A case is warmed up no longer than it must be."""
    from kernelgate.bench.check import accuracy_worker, fuzz_worker
    from kernelgate.bench.kernel import card_check
    from kernelgate.bench.system import children
    from kernelgate.bench.timing import case_timing, process, verifier, worker

    for leader, worked in (
        (children, worker),
        (children, verifier),
        (children, fuzz_worker),
        (children, accuracy_worker),
        (card_check, card_check),
    ):
        patch.setattr(leader, "Child", ThreadChild)
        patch.setattr(worked, "Parent", ThreadParent)
    patch.setattr(process, "MAX_CPU_CACHE", min(process.MAX_CPU_CACHE, 1 << 18))  # a large pool takes long to draw
    patch.setattr(verifier.prctl, "keep_private", lambda: None)
    patch.setattr(case_timing, "WARM_UP_S", 0.01)
    patch.setattr(case_timing, "CASE_WARM_UP_S", 0.01)
    patch.setattr(case_timing, "SHORTEST_US", 5.0)
