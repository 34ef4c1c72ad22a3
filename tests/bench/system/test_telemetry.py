"""Readings of a GPU through a driver that stands in for NVML, and of a CPU from files."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import nvml
from kernelgate.bench.system.nvml import Reading
from tests.bench import driver


def test_a_reading_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonGpuIdle
    driver.install(monkeypatch, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: mask)
    with nvml.readings("cuda", "GPU-1") as read:
        assert read() == Reading(1980, 3201, 41, 123.456, ("gpu_idle", "sw_power_cap"), 1980)


def test_what_a_driver_does_not_offer_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = ("ClockInfo", "MaxClockInfo", "Temperature", "PowerUsage", "CurrentClocksThrottleReasons")
    driver.install(monkeypatch, **{f"nvmlDeviceGet{name}": driver.refused for name in functions})
    with nvml.readings("cuda", None) as read:
        assert read() == Reading()


def test_without_a_driver_readings_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    driver.install(monkeypatch, nvmlInit=driver.refused)
    with nvml.readings("cuda", "GPU-1") as read:
        assert read() == Reading()


def test_a_gpu_that_the_driver_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    driver.install(monkeypatch, nvmlDeviceGetHandleByUUID=driver.refused)
    with pytest.raises(NoDeviceError, match="reports no GPU GPU-1"), nvml.opened("GPU-1"):
        pytest.fail("there is no such GPU")


def test_reasons_that_are_new_keep_their_number() -> None:
    assert nvml.reasons(0) == ()
    assert nvml.reasons(1 << 3 | 1 << 40) == ("hw_slowdown", f"reason_{1 << 40:#x}")


def test_a_summary_holds_medians_the_hottest_moment_and_every_reason() -> None:
    readings = [
        Reading(1000, 3000, 50, 100, ("sw_power_cap",)),
        Reading(1980, None, 80, 300, max_sm_mhz=1980),
        Reading(1900, 3000, 60, 200, ("gpu_idle", "sw_power_cap")),
    ]
    assert nvml.telemetry(readings) == record.Telemetry(
        sm_mhz=1900,
        max_sm_mhz=1980,
        memory_mhz=3000,
        temperature_c=80,
        power_w=200,
        throttle_reasons=("gpu_idle", "sw_power_cap"),
        throttle_shares={"gpu_idle": 1 / 3, "sw_power_cap": 2 / 3},
    )
    assert nvml.telemetry([Reading()]) == record.Telemetry()


def test_a_cpu_is_read_from_files(tmp_path: Path) -> None:
    assert nvml.cpu_reading(tmp_path) == Reading()
    for core, kilohertz in enumerate(("3000000", "2000000", "unreadable")):
        clock = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"
        clock.parent.mkdir(parents=True)
        clock.write_text(kilohertz)
    for zone, thousandths in enumerate(("45000", "61500")):
        temperature = tmp_path / f"sys/class/thermal/thermal_zone{zone}/temp"
        temperature.parent.mkdir(parents=True)
        temperature.write_text(thousandths)
    assert nvml.cpu_reading(tmp_path) == Reading(sm_mhz=2500, temperature_c=61.5)
    with nvml.readings("cpu") as read:
        assert read().power_w is None
