"""NVIDIA's driver as `pynvml` shows it, with one GPU that says what a test wants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

NAMES = [name for name in dir(pynvml) if name.startswith(("NVML_", "nvmlClocks")) or name == "NVMLError"]


def refused(*_: object) -> Any:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def install(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Puts the driver under system/nvml.py. `changes` replace its functions; `refused` is what it does not offer."""
    clocks = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}
    functions = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda _: "handle",
        "nvmlDeviceGetHandleByUUID": lambda _: "handle",
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetName": lambda _: "NVIDIA H200",
        "nvmlDeviceGetClockInfo": lambda _, clock: clocks[clock],
        "nvmlDeviceGetMaxClockInfo": lambda _, clock: clocks[clock],
        "nvmlDeviceGetTemperature": lambda *_: 41,
        "nvmlDeviceGetPowerUsage": lambda _: 123_456,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 0,
        "nvmlDeviceGetPersistenceMode": lambda _: 1,
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [],
        "nvmlDeviceGetTotalEccErrors": lambda *_: 0,
        "nvmlDeviceGetEnforcedPowerLimit": lambda _: 700_000,
        "nvmlDeviceGetEccMode": lambda _: [1, 1],
        "nvmlDeviceGetMigMode": lambda _: [0, 0],
        "nvmlDeviceGetDefaultApplicationsClock": lambda *_: 1500,
        "nvmlDeviceSetGpuLockedClocks": lambda *_: None,
        "nvmlDeviceResetGpuLockedClocks": lambda _: None,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 16,
    }
    unknown = changes.keys() - functions.keys()
    assert not unknown, unknown
    constants = {name: getattr(pynvml, name) for name in NAMES}
    monkeypatch.setattr("kernelgate.bench.system.nvml.pynvml", SimpleNamespace(**constants, **{**functions, **changes}))
