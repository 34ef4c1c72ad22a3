"""Holding a GPU's clock. The driver is made up; the process that lets go is a real one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kernelgate.bench.system import nvml
from tests.bench import driver


class Watchdog:
    """In place of the process that lets go."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.stdin = self
        self.told = b""
        self.closed = self.waited = False
        watchdogs.append(self)

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, word: bytes) -> int:
        self.told += word
        return len(word)

    def close(self) -> None:
        self.closed = True

    def wait(self, limit_s: float) -> int:
        assert limit_s > 0
        self.waited = self.closed
        return 0


watchdogs: list[Watchdog] = []


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdogs.clear()
    monkeypatch.setattr(nvml.subprocess, "Popen", Watchdog)


def test_nothing_is_held_that_nobody_asked_for() -> None:
    with nvml.locked_clock("GPU-1", wanted=False) as said:
        assert said == "default"
    assert watchdogs == []


def test_the_clock_is_held_and_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def lock(_: Any, low: int, high: int) -> None:
        assert watchdogs[0].told == nvml.HELD, "whoever is killed now leaves no clock held"
        asked.append((low, high))

    driver.install(monkeypatch, nvmlDeviceSetGpuLockedClocks=lock)
    with nvml.locked_clock("GPU-1", wanted=True) as said:
        assert said == "locked 1500 MHz"
        assert not watchdogs[0].closed
    assert asked == [(1500, 1500)]
    assert watchdogs[0].told == nvml.HELD
    assert watchdogs[0].waited


@pytest.mark.parametrize("name", ["nvmlDeviceSetGpuLockedClocks", "nvmlDeviceGetDefaultApplicationsClock"])
def test_a_driver_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    driver.install(monkeypatch, **{name: driver.refused})
    with nvml.locked_clock("GPU-1", wanted=True) as said:
        assert said.startswith("default (")
    assert watchdogs[0].told.endswith(nvml.FREE), "what somebody else holds stays held"
    assert watchdogs[0].waited


@pytest.mark.parametrize(("told", "lets_go"), [((b"1",), True), ((b"1", b"0"), False), ((b"10",), False), ((), False)])
def test_the_watchdog_lets_go_once_its_parent_is_gone(
    monkeypatch: pytest.MonkeyPatch, told: tuple[bytes, ...], lets_go: bool
) -> None:
    released: list[Any] = []
    driver.install(monkeypatch, nvmlDeviceResetGpuLockedClocks=released.append)
    monkeypatch.setattr(nvml.signal, "signal", lambda *_: None)
    ends = iter([*told, b""])
    monkeypatch.setattr(nvml.os, "read", lambda *_: next(ends))
    monkeypatch.setattr(sys, "argv", ["clocks", "GPU-1"])
    nvml.main()
    assert released == (["handle"] if lets_go else [])


def test_the_watchdog_outlives_a_killed_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends by itself, although its parent had no time to tell it anything; here there is no GPU to let go of."""
    monkeypatch.undo()
    code = (
        "import os, subprocess, sys\n"
        "from kernelgate.bench.system import nvml\n"
        "child = subprocess.Popen([sys.executable, '-m', nvml.__name__, 'GPU-1'], stdin=subprocess.PIPE, bufsize=0)\n"
        "child.stdin.write(nvml.HELD)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9
    assert "release it with nvidia-smi --reset-gpu-clocks" in done.stderr, "it came to letting go"
