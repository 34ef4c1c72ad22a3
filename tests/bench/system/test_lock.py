"""One measurement at a time, temporary folders that a killed process leaves behind: between real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import lock
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.worker import child_environment

UUID = "GPU-0123"
HOLD = f"from kernelgate.bench.system import lock\nwith lock.device({UUID!r}):\n    print('held', flush=True); input()"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@contextmanager
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until a line is sent to it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_held_device_is_refused_in_the_end_naming_the_holder() -> None:
    """Who that is, is known without waiting for it, too. Other devices are free."""
    assert lock.holder(UUID) is None, "nobody ever did"
    with holder() as process:
        said = rf"GPU-0123 is being measured by process {process.pid} since \d{{4}}-"
        with pytest.raises(KernelgateError, match=said), lock.device(UUID, wait_s=0.3):
            pytest.fail("the lock was taken twice")
        assert (lock.holder(UUID) or "").startswith(f"process {process.pid} since ")
        assert lock.holder(None) is None
        lock.path(UUID).write_text("[" * 1000, encoding="utf-8")  # any user may
        assert lock.holder(UUID) == "another process"
        with lock.device(None, wait_s=0), lock.device("GPU-4567", wait_s=0):
            names = {path.name for path in lock.path(None).parent.glob("*.lock")}
        process.kill()
        process.wait()
        assert lock.holder(UUID) is None, "whoever is killed holds nothing"
        with lock.device(UUID, wait_s=30):
            assert lock.path(UUID).exists()
    assert names == {"kernelgate-cpu.lock", "kernelgate-GPU-0123.lock", "kernelgate-GPU-4567.lock"}


def test_a_process_that_holds_a_device_takes_it_again_at_once() -> None:
    """As the phases of one command do. It is free once the outermost block ends, also by an error."""
    with lock.device(UUID, wait_s=0):
        with lock.device(UUID, wait_s=0), pytest.raises(OSError, match="inside"), lock.device(UUID, wait_s=0):
            raise OSError("inside")
        assert (lock.holder(UUID) or "").startswith(f"process {os.getpid()} since ")
    assert lock.holder(UUID) is None


TURN = f"""
import os, sys
from kernelgate.bench.system import lock, progress
progress.say("loads what another user may not read")
os.setuid(int(sys.argv[3]))
with lock.device({UUID!r}), open(sys.argv[1], "a") as served:
    served.write(sys.argv[2])
"""


@contextmanager
def waiter(served: Path, name: str, user: int = os.getuid()) -> Iterator[subprocess.Popen[str]]:
    """A process that queues, and writes its name once it has the device."""
    words = [sys.executable, "-B", "-c", TURN, str(served), name, str(user)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def place(process: subprocess.Popen[str]) -> str:
    """The next that a waiter is told of its place: a line comes when that changes."""
    lines = iter(process.stderr or ())
    return next(line.rpartition("in its queue: ")[2].strip() for line in lines if "in its queue: " in line)


def test_who_came_first_is_served_first_and_told_its_place(tmp_path: Path) -> None:
    """And who dies while it waits keeps nobody waiting."""
    served = tmp_path / "served"
    with holder() as first, waiter(served, "a") as a, ExitStack() as others:
        assert place(a) == "1st", "nobody knows yet how long the device is held"
        b, c = (others.enter_context(waiter(served, name)) for name in "bc")
        assert {place(b), place(c)} == {"2nd", "3rd"}
        # Which of the two came first, the system decided.
        d = others.enter_context(waiter(served, "d"))
        assert place(d) == "4th"
        b.kill()
        b.wait()
        assert place(d) == "3rd"
        first.communicate("\n")
        assert [one.wait(timeout=60) for one in (a, c, d)] == [0, 0, 0]
    assert served.read_text() == "acd"


def test_the_last_measurements_say_how_long_a_waiter_waits(tmp_path: Path) -> None:
    """Three of them took 3 minutes, and a mere look at the device none that counts."""
    queue = os.open(lock.path(UUID).with_suffix(".queue"), os.O_RDWR | os.O_CREAT)
    for seconds in (180.0, 9.0, 180.0, 0.2, 180.0):
        lock.remember(queue, seconds)
    os.close(queue)
    with holder(), waiter(tmp_path / "served", "a") as a:
        assert place(a) == "1st, about 3 minutes"
        with waiter(tmp_path / "served", "b") as b:
            assert place(b) == "2nd, about 6 minutes"


@pytest.mark.skipif(os.geteuid() != 0, reason="one user cannot start a process of another")
def test_users_of_one_machine_share_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", shared)
        monkeypatch.setenv("TMPDIR", shared)
        served = Path(shared, "served")
        served.touch()
        served.chmod(0o666)
        with holder() as first, waiter(served, "a", user=65534) as a:
            assert place(a) == "1st"
            with waiter(served, "b") as b:
                assert place(b) == "2nd"
                a.kill()
                a.wait()
                assert place(b) == "1st"
                first.communicate("\n")
                assert b.wait(timeout=60) == 0
        assert served.read_text() == "b"


def test_waiting_is_counted_apart_from_work() -> None:
    with holder() as other:
        took, begun = lock.stopwatch(), time.monotonic()
        threading.Timer(1.0, other.kill).start()
        with lock.device(UUID, wait_s=60):
            assert time.monotonic() - begun - took() >= 0.5


def test_a_time_zone_that_is_none_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XXX+99:99:99")
        time.tzset()
        with lock.device(None):
            pass
    time.tzset()


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with (
        pytest.raises(KernelgateError, match=r"/proc/nowhere/kernelgate-cpu\.lock cannot be made .* set TMPDIR"),
        lock.device(None),
    ):
        pytest.fail("there is no such folder")


# ---- temporary folders, and memory without a name --------------------------------------------------------------------

PREFIX = "kernelgate-tried-"
HOLDING = (
    "from kernelgate.bench.system import lock\n"
    f"with lock.temporary_folder({PREFIX!r}) as folder:\n"
    "    (folder / 'file').write_text('x'); print(folder, flush=True); input()"
)


def test_what_a_living_process_has_stays_and_what_a_killed_one_had_goes() -> None:
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        held = Path(other.stdout.readline().strip())
        with lock.temporary_folder(PREFIX):
            assert (held / "file").exists()
        other.kill()
        other.wait()
        assert (held / "file").exists()
    with lock.temporary_folder(PREFIX):
        assert not held.exists()


def test_a_log_counts_what_processes_held_a_device_for_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one that is held still; what is started within another log is a part of that one, too."""
    clock = [100.0]
    monkeypatch.setattr(lock.time, "monotonic", lambda: clock[0])
    with lock.device_log() as log:
        monkeypatch.setenv(*next(iter(log.variables.items())))
        clock[0] += 50
        with lock.device(UUID):
            clock[0] += 3
            assert log.held_s() == 3
            clock[0] += 4
        clock[0] += 50
        with lock.device_log() as inner:
            with lock.device(None):
                clock[0] += 1
            assert inner.held_s() == 1
        assert log.held_s() == 8
    assert not log.file.exists()
