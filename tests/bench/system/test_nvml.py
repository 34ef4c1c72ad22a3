"""A GPU through a driver that stands in for NVML. The process that lets go of a clock is real."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml
import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import nvml, orphans
from kernelgate.bench.system.nvml import Reading
from tests.bench import driver


def test_a_reading_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonGpuIdle
    driver.install(monkeypatch, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: mask)
    with nvml.readings("cuda", "GPU-1") as read:
        assert read() == Reading(1980, 3201, 41, 123.456, ("gpu_idle", "sw_power_cap"), 1980)


def test_what_a_driver_does_not_offer_is_null_and_a_gpu_that_it_does_not_know_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = ("ClockInfo", "MaxClockInfo", "Temperature", "PowerUsage", "CurrentClocksThrottleReasons")
    driver.install(monkeypatch, **{f"nvmlDeviceGet{name}": driver.refused for name in functions})
    for device in ("cuda", "cuda", "cpu"):
        with nvml.readings(device) as read:
            assert read() == Reading()
        driver.install(monkeypatch, nvmlInit=driver.refused)
    driver.install(monkeypatch, nvmlDeviceGetHandleByUUID=driver.refused)
    with pytest.raises(NoDeviceError, match="reports no GPU GPU-1"), nvml.opened("GPU-1"):
        pytest.fail("there is no such GPU")


def test_a_summary_holds_medians_the_hottest_moment_and_every_reason() -> None:
    readings = [
        Reading(1000, 3000, 50, 100, ("sw_power_cap",)),
        Reading(1980, None, 80, 300, max_sm_mhz=1980),
        Reading(1900, 3000, 60, 200, ("gpu_idle", "sw_power_cap")),
    ]
    shares = {"gpu_idle": 1 / 3, "sw_power_cap": 2 / 3}
    found = nvml.telemetry(readings)
    assert (found.sm_mhz, found.max_sm_mhz, found.memory_mhz) == (1900, 1980, 3000)
    assert (found.temperature_c, found.power_w) == (80, 200)
    assert (found.throttle_reasons, found.throttle_shares) == (tuple(shares), shares)
    assert nvml.telemetry([Reading()]) == record.Telemetry()
    assert nvml.reasons(1 << 3 | 1 << 40) == ("hw_slowdown", f"reason_{1 << 40:#x}"), "a new one keeps its number"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the process that lets go was told; at last b"", when it hears no more."""
    words: list[bytes] = []

    @contextmanager
    def watchdog(*_: object) -> Iterator[Callable[[bytes], None]]:
        yield words.append
        words.append(b"")

    monkeypatch.setattr(orphans, "watchdog", watchdog)
    return words


def test_the_clock_is_held_and_let_go_of_where_that_was_asked_for(
    told: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with nvml.locked_clock("GPU-1", wanted=False) as said:
        assert (said, told) == ("default", [])
    asked: list[tuple[int, int]] = []

    def lock(_: Any, low: int, high: int) -> None:
        assert told == [nvml.HELD], "whoever is killed now leaves no clock held"
        asked.append((low, high))

    driver.install(monkeypatch, nvmlDeviceSetGpuLockedClocks=lock)
    with nvml.locked_clock("GPU-1", wanted=True) as said:
        assert (said, told) == ("locked 1500 MHz", [nvml.HELD])
    assert (asked, told) == ([(1500, 1500)], [nvml.HELD, b""])


@pytest.mark.parametrize("name", ["nvmlDeviceSetGpuLockedClocks", "nvmlDeviceGetDefaultApplicationsClock"])
def test_a_driver_that_refuses_is_no_error(told: list[bytes], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    driver.install(monkeypatch, **{name: driver.refused})
    with nvml.locked_clock("GPU-1", wanted=True) as said:
        assert said.startswith("default (")
    assert told == [nvml.HELD, nvml.FREE, b""], "what somebody else holds stays held"


@pytest.mark.parametrize(("words", "lets_go"), [(b"1", True), (b"10", False), (b"", False)])
def test_the_watchdog_lets_go_once_its_parent_is_gone(
    monkeypatch: pytest.MonkeyPatch, words: bytes, lets_go: bool
) -> None:
    released: list[Any] = []
    driver.install(monkeypatch, nvmlDeviceResetGpuLockedClocks=released.append)
    monkeypatch.setattr(orphans.signal, "signal", lambda *_: None)
    ends = iter([words, b""])
    monkeypatch.setattr(orphans.os, "read", lambda *_: next(ends))
    monkeypatch.setattr(sys, "argv", ["clocks", "GPU-1"])
    nvml.main()
    assert released == (["handle"] if lets_go else [])


def test_the_watchdog_outlives_a_killed_parent() -> None:
    """It ends by itself, although its parent had no time to tell it anything; here there is no GPU to let go of."""
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
