"""Verbs that a signal ends, for real: nothing that they started runs on, and nothing is left where others look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernelgate.bench.system.worker import MODULE, ROOT
from tests.processes import marked, wait_for
from tests.shards import Checkout

pytestmark = pytest.mark.nightly

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


def ended(number: int) -> int:
    """What Popen says of a verb that the signal has ended: killed, or unwound by kernelgate."""
    return -number if number == signal.SIGKILL else 128 + number


def command_line(pid: int) -> str:
    """Empty where the process has gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


class Marked(Checkout):
    """Whose processes are known by its folder, which stands in their variables."""

    def left(self) -> list[str]:
        return [path.name for path in (self.folder.parent / "tmp").iterdir() if path.suffix != ".lock"]

    def processes(self) -> list[int]:
        return marked(str(self.folder.parent))


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Marked]:
    made = Marked(tmp_path)
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def endless_compiler(tmp_path: Path, compiler: Callable[[str], Path]) -> Path:
    """Where a compiler that never ends writes its processes' numbers."""
    notes = tmp_path / "compilers"
    compiler(f'echo $$ >>{notes}; trap "" TERM; sleep 1000')
    return notes


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("words", [("build", "--ref", "HEAD"), ("pr",)], ids=["build", "pr"])
def test_a_verb_that_is_ended_while_it_compiles_leaves_nothing(
    words: tuple[str, ...], number: signal.Signals, checkout: Marked, endless_compiler: Path
) -> None:
    with checkout.start(*words, PATH=os.environ["PATH"]) as verb:
        wait_for(endless_compiler.exists, what="nothing was compiled")
        verb.send_signal(number)
        _, said = verb.communicate(timeout=90)
    assert verb.returncode == ended(number)
    assert "Traceback" not in said
    wait_for(lambda: not checkout.processes(), what="something runs on")
    if number != signal.SIGKILL:
        assert checkout.left() == []


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_verb_that_is_ended_while_its_worker_loads_torch_leaves_nothing(
    number: signal.Signals, checkout: Marked
) -> None:
    def worker_is_there() -> bool:
        return any(MODULE in words for words in map(command_line, checkout.processes()))

    with checkout.start("fuzz") as verb:
        wait_for(worker_is_there, what="no worker was started")
        verb.send_signal(number)
        verb.communicate(timeout=90)
    assert verb.returncode == ended(number)
    wait_for(lambda: not checkout.processes(), what="something runs on")


def test_the_build_after_a_killed_one_cleans_up_and_works(
    checkout: Marked, endless_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no lock of a dead process, and removes its work tree."""
    with checkout.start("build", "--ref", "HEAD", PATH=os.environ["PATH"]) as verb:
        wait_for(endless_compiler.exists, what="nothing was compiled")
        verb.kill()
        verb.communicate(timeout=90)
    assert checkout.left() != []
    monkeypatch.setenv("PATH", os.environ["PATH"].split(os.pathsep, 1)[1])
    with checkout.start("build", "--ref", "HEAD", PATH=os.environ["PATH"]) as again:
        _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert checkout.left() == []


@pytest.mark.parametrize("stops", [True, False], ids=["it stops it", "it does not"])
def test_a_leader_that_its_worker_stops_goes_on(stops: bool, tmp_path: Path) -> None:
    """Without a terminal, which would tell of it: each would wait for the other for ever."""
    (tmp_path / "script.py").write_text(
        "import os, signal\n"
        "from kernelgate.bench.system.worker import Leader, Ready, WorkerProcess\n"
        "def run(leader: Leader) -> Ready:\n"
        f"    os.kill(os.getppid(), signal.{'SIGSTOP' if stops else 'SIGCONT'})\n"
        "    return Ready()\n"
        "if __name__ == '__main__':\n"
        "    with WorkerProcess('script:run') as worker:\n"
        "        print(worker.receive(Ready, 60.0))\n"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    words = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(words, env=variables, stdout=subprocess.PIPE, start_new_session=True, timeout=90, check=False)
    assert done.stdout == b"ready=True\n"
