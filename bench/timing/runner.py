"""Leads one worker process through its steps."""

from __future__ import annotations

from pydantic import TypeAdapter

from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.system.worker_process import Child, ChildError, Message
from kernelgate.bench.timing.protocol import CaseDone, Doing, Failed, FromChild, Ready

_MESSAGE: TypeAdapter[Doing | Ready | CaseDone | Failed] = TypeAdapter(FromChild)


class ProcessError(KernelgateError):
    """A process could not be finished."""


class LoadError(ProcessError):
    """A library could not be loaded together with the other one."""


class Runner:
    """A worker process, led step by step."""

    def __init__(self, child: Child, name: str, patience_s: float) -> None:
        self._child = child
        self._name = name
        self._patience_s = patience_s
        self._doing = Doing(what="starting", loading=True)

    def step(self, message: Message) -> Ready | CaseDone:
        """Sends a message and waits until the step that it asks for is done."""
        try:
            self._child.send(message)
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
            return LoadError(f"{self._name} failed while {self._doing.what}: {why}")
        return ProcessError(
            f"{self._name} failed while {self._doing.what}: {why}. `kernelgate fuzz` shows which inputs a kernel fails "
            "on; earlier processes are kept, and --resume continues after them"
        )
