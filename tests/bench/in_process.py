"""A worker of bench in a thread of the test, in place of a process that would first import torch for two seconds.

The messages are the real ones and travel as JSON. What only a process can do (crash, hang, refuse another library)
is tested with processes.
"""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Self

import pytest
from pydantic import BaseModel

from kernelgate.bench.system import worker
from kernelgate.bench.system.worker import Doing, Leader, Ready, WorkerProcess
from tests.forked_reader import read_cards_in_forks


class ThreadWorker(WorkerProcess):
    """Whose function runs in a thread."""

    pid = None
    touched = False
    _stderr = io.BytesIO()

    def __init__(self, function: str, fds: Sequence[int] = (), apart: object = None, python: object = None) -> None:  # noqa: ARG002
        self.function = function
        self.doing = Doing(doing="starting", loading=True)
        self.to: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.out: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Lines of JSON; an empty one where the other end is gone."""
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            worker.serve(self.function, ThreadLeader(self))
        except SystemExit:
            pass
        finally:
            self.out.put("")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.to.put("")
        self.thread.join(60)
        assert not self.thread.is_alive()

    def pause(self) -> None:
        """What it imports is here already."""

    go_on = pause

    def send(self, message: BaseModel) -> None:
        self.to.put(message.model_dump_json())

    def _line(self, deadline: float) -> bytes:
        return self.out.get(timeout=deadline - time.monotonic()).encode()

    def _ended(self) -> str:
        return "ended early"

    def _last_lines(self) -> str:
        return ""


class ThreadLeader(Leader):
    """As a worker in a ThreadWorker sees it."""

    def __init__(self, thread: ThreadWorker) -> None:
        self.thread = thread

    def send(self, message: BaseModel) -> None:
        self.thread.out.put(message.model_dump_json(by_alias=True))

    def line(self) -> bytes:
        return self.thread.to.get().encode()


def _started_in_turn(make_calls: Callable[..., None], starting: threading.Lock) -> Callable[..., None]:
    """Until a worker is ready, no other one starts: a thread that waits for the loader, with Python's lock, would keep
    Python from the library that another thread loads."""

    @wraps(make_calls)
    def started(request: object, leader: Leader) -> None:
        with ExitStack() as stack:
            stack.enter_context(starting)
            send = leader.send

            def sent(message: BaseModel) -> None:
                if isinstance(message, Ready):
                    stack.close()
                send(message)

            leader.send = sent  # type: ignore[method-assign, assignment]
            make_calls(request, leader)

    return started


def put_workers_in_threads(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone. Pools are small, warm-ups short, and there is one witness, however long that takes."""
    from kernelgate.bench.kernel import card_check
    from kernelgate.bench.timing import case_timing, pool, process, verifier
    from kernelgate.bench.timing import worker as timing_worker

    for leader in (worker, card_check):
        patch.setattr(leader, "WorkerProcess", ThreadWorker)
    read_cards_in_forks(patch)
    patch.setattr(timing_worker, "make_calls", _started_in_turn(timing_worker.make_calls, threading.Lock()))
    patch.setattr(process, "MAX_CPU_CACHE", min(process.MAX_CPU_CACHE, 1 << 16))  # a large pool takes long to draw
    patch.setattr(pool, "MANY", 64)
    patch.setattr(verifier, "MAX_SLOTS", 64)
    patch.setitem(verifier.LEAST_US, "cpu", 1e9)
    patch.setitem(process.WITNESS_TURNS, "cpu", 1)
    patch.setitem(process.BATCH_US, "cpu", 1_000.0)
    patch.setattr(verifier.orphans, "keep_private", lambda: None)
    patch.setattr(verifier.orphans, "watch_stops", lambda: lambda: 0)
    patch.setattr(case_timing, "WARM_UP_S", 0.01)
    patch.setattr(case_timing, "CASE_WARM_UP_S", 0.01)
    patch.setattr(case_timing, "SHORTEST_US", 5.0)
