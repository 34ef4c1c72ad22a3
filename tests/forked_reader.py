"""Cards are read by forks of one process, in place of processes that would each first import the reader.

The messages are the real ones. As a program, this is the process that forks: it has imported no torch.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO, Any, Self, cast

import pytest
from pydantic import BaseModel

from kernelgate.bench.kernel import card_reader, cards
from kernelgate.bench.system import worker
from kernelgate.bench.system.worker import Doing, Leader, WorkerProcess

READ = f"{card_reader.__name__}:read"
ENDED = b"ended "


class ForkedReader(WorkerProcess):
    """Whose function runs in a fork."""

    pid = None
    _stderr = io.BytesIO()

    def __init__(self, function: str, **_: object) -> None:
        assert function == READ
        self.doing = Doing(doing="starting", loading=True)
        self.code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self.code is None:
            self._line()

    def send(self, message: BaseModel) -> None:
        to = cast(IO[bytes], forking().stdin)
        to.write(json.dumps([str(Path.cwd()), message.model_dump_json()]).encode() + b"\n")
        to.flush()

    def _line(self, _deadline: float = 0.0) -> bytes:
        line = cast(IO[bytes], forking().stdout).readline().rstrip()
        if not line.startswith(ENDED):
            return line
        self.code = int(line.removeprefix(ENDED))
        return b""

    def _ended(self) -> str:
        return worker.exit_status(self.code or 0)

    @property
    def ended_itself(self) -> bool:
        return self.code is not None and self.code not in (-signal.SIGKILL, -signal.SIGTERM)

    def _last_lines(self) -> str:
        return ""


@cache
def forking() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(command, stdin=-1, stdout=-1, env={**worker.STEADY, **worker.child_environment()})


def read_cards_in_forks(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone."""
    patch.setattr(cards, "WorkerProcess", ForkedReader)


class ForkLeader(Leader):
    """As the function in a fork sees it."""

    asked = ""

    def receive(self, kind: Any) -> Any:
        return kind.model_validate_json(self.asked)


def main() -> None:
    leader = ForkLeader(os.dup(0), os.dup(1))
    os.dup2(2, 1)
    for line in leader._in:
        folder, leader.asked = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(folder)
            worker.serve(READ, leader)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        leader._out.write(ENDED + f"{code}\n".encode())
        leader._out.flush()


if __name__ == "__main__":
    main()
