"""Leads one other process through its steps: the verifier, or a measured one."""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.worker_process import Child, ChildError, Message
from kernelgate.bench.timing.protocol import Answer, Doing, Failed, FromChild

_MESSAGE: TypeAdapter[Answer | Doing | Failed] = TypeAdapter(FromChild)

A = TypeVar("A")


class ProcessError(KernelgateError):
    """A process could not be finished."""

    def __init__(self, fault: str, advice: str = "") -> None:
        super().__init__(f"{fault}{advice}")
        self.fault = fault
        """What happened, without what to do about it in a comparison."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


class Runner:
    """A process, led step by step."""

    def __init__(self, child: Child, name: str, patience_s: float) -> None:
        self._child = child
        self.name = name
        self._patience_s = patience_s
        self._doing = Doing(what="starting", loading=True)

    def ask(self, message: Message, kind: type[A]) -> A:
        """Sends a message and waits for its answer, which must be of this kind."""
        return self._checked(self.step(message), kind)

    def answer(self, kind: type[A]) -> A:
        """Waits until the step that was asked for is done. Raises ProcessError for an answer of another kind."""
        return self._checked(self._next(), kind)

    def _checked(self, answer: Answer, kind: type[A]) -> A:
        if not isinstance(answer, kind):
            raise self._error(f"it answered {type(answer).__name__} where {kind.__name__} was due")
        return answer

    def step(self, message: Message) -> Answer:
        """Sends a message and waits until the step that it asks for is done."""
        self.send(message)
        return self._next()

    def send(self, message: Message) -> None:
        """Sends a message and does not wait."""
        try:
            self._child.send(message)
        except ChildError as error:
            raise self._error(f"the process {error}") from None

    def _next(self) -> Answer:
        try:
            while True:
                answer = self._child.receive(_MESSAGE, self._patience_s)
                if isinstance(answer, Failed):
                    raise self._error(answer.why)
                if not isinstance(answer, Doing):
                    return answer
                self._doing = answer
        except ChildError as error:
            raise self._error(f"the process {error}") from None

    def _error(self, why: str) -> ProcessError:
        if self._doing.loading:
            return LoadError(f"{self.name} failed while {self._doing.what}: {why}")
        return ProcessError(
            f"{self.name} failed while {self._doing.what}: {why}",
            ". `kernelgate fuzz` shows which inputs a kernel fails on; earlier processes are kept, and --resume "
            "continues after them",
        )
