"""Leads one other process through its steps: the verifier, or a measured one."""

from __future__ import annotations

from typing import TypeVar

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.worker import Message, WorkerError, WorkerFailedError, WorkerProcess

NOT_SHARED = "SharingError"
"""What a process raises that cannot share memory."""

A = TypeVar("A", bound=Message)


class ProcessError(KernelgateError):
    """A process could not be finished."""

    def __init__(self, fault: str, advice: str = "") -> None:
        super().__init__(f"{fault}{advice}")
        self.fault = fault
        """What happened, without what to do about it in a comparison."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


class NotSharedError(Exception):
    """The measured process cannot map the verifier's memory."""


class Runner:
    """A process, led step by step."""

    def __init__(self, worker: WorkerProcess, name: str, patience_s: float) -> None:
        self._worker = worker
        self.name = name
        self._patience_s = patience_s

    def ask(self, message: Message, kind: type[A]) -> A:
        """The answer to a message, which must be of this kind. Raises ProcessError, and NotSharedError."""
        self.send(message)
        return self.answer(kind)

    def send(self, message: Message) -> None:
        """Sends a message and does not wait."""
        try:
            self._worker.send(message)
        except WorkerError as error:
            raise self._error(error) from None

    def answer(self, kind: type[A]) -> A:
        """Waits until the step that was asked for is done."""
        try:
            return self._worker.receive(kind, self._patience_s)
        except WorkerError as error:
            raise self._error(error) from None

    def _error(self, error: WorkerError) -> Exception:
        if isinstance(error, WorkerFailedError) and error.error == NOT_SHARED:
            return NotSharedError(str(error))
        fault = f"{self.name} failed while {self._worker.doing.doing}: {error}"
        if self._worker.doing.loading:
            return LoadError(fault)
        return ProcessError(
            fault,
            ". `kernelgate fuzz` shows which inputs a kernel fails on; earlier processes are kept, and --resume "
            "continues after them",
        )
