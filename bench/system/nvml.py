"""What the NVIDIA driver says of a GPU, through NVML. A value that the driver or the device does not offer is None."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pynvml

from kernelgate.bench.core.errors import NoDeviceError

T = TypeVar("T")

REASONS: dict[int, str] = {
    pynvml.nvmlClocksEventReasonGpuIdle: "gpu_idle",
    pynvml.nvmlClocksEventReasonApplicationsClocksSetting: "applications_clocks_setting",
    pynvml.nvmlClocksEventReasonSwPowerCap: "sw_power_cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hw_slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync_boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "sw_thermal_slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hw_thermal_slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "hw_power_brake_slowdown",
    pynvml.nvmlClocksEventReasonDisplayClockSetting: "display_clock_setting",
}
"""Bits of the driver's mask; the first, the two settings and the last are no slowdown."""


@dataclass(frozen=True)
class Reading:
    """The GPU at one moment."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    max_sm_mhz: float | None = None


@dataclass(frozen=True)
class NvmlGpu:
    """An open GPU. Every method answers None (or empty) for what the driver does not offer."""

    handle: Any

    def reading(self) -> Reading:
        handle = self.handle
        mask = _ask(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        power = _ask(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
        return Reading(
            sm_mhz=_ask(lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
            max_sm_mhz=self._max_sm_mhz,
            memory_mhz=_ask(lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM))),
            temperature_c=_ask(lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
            power_w=None if power is None else power / 1000,
            throttle_reasons=reasons(mask),
        )

    def name(self) -> str | None:
        return _ask(lambda: str(pynvml.nvmlDeviceGetName(self.handle)))

    @cached_property
    def _max_sm_mhz(self) -> float | None:
        """Asked once: the driver takes milliseconds to answer."""
        return self.max_sm_mhz()

    def max_sm_mhz(self) -> float | None:
        return _ask(lambda: float(pynvml.nvmlDeviceGetMaxClockInfo(self.handle, pynvml.NVML_CLOCK_SM)))

    def lock_clock(self) -> str:
        """Holds the SM clock at its base frequency: "locked 1500 MHz", or why it cannot be held."""
        base_mhz = _ask(lambda: int(pynvml.nvmlDeviceGetDefaultApplicationsClock(self.handle, pynvml.NVML_CLOCK_SM)))
        if not base_mhz:
            return "the driver does not say the base clock"
        try:
            pynvml.nvmlDeviceSetGpuLockedClocks(self.handle, base_mhz, base_mhz)
        except pynvml.NVMLError as error:
            return f"the clock cannot be held: {error}"
        return f"locked {base_mhz} MHz"

    def unlock_clock(self) -> None:
        """Raises nothing: there is nobody left to tell."""
        _ask(lambda: pynvml.nvmlDeviceResetGpuLockedClocks(self.handle))

    def max_memory_mhz(self) -> float | None:
        return _ask(lambda: float(pynvml.nvmlDeviceGetMaxClockInfo(self.handle, pynvml.NVML_CLOCK_MEM)))

    def power_limit_w(self) -> float | None:
        """The limit that holds, of those that the device, the driver and the administrator set."""
        return _ask(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self.handle) / 1000)

    def ecc(self) -> bool | None:
        """Whether memory errors are corrected now; a change waits for the next reset."""
        return _ask(lambda: bool(pynvml.nvmlDeviceGetEccMode(self.handle)[0]))

    def mig(self) -> bool | None:
        """Whether the GPU is divided into instances."""
        return _ask(lambda: bool(pynvml.nvmlDeviceGetMigMode(self.handle)[0]))

    def pcie(self) -> str | None:
        """Such as "gen4 x16": what the link can do, for an idle one is slowed down."""
        generation = _ask(lambda: int(pynvml.nvmlDeviceGetMaxPcieLinkGeneration(self.handle)))
        width = _ask(lambda: int(pynvml.nvmlDeviceGetMaxPcieLinkWidth(self.handle)))
        return None if generation is None or width is None else f"gen{generation} x{width}"

    def persistence_mode(self) -> bool | None:
        return _ask(lambda: bool(pynvml.nvmlDeviceGetPersistenceMode(self.handle)))

    def process_ids(self) -> tuple[int, ...]:
        """Of the processes that compute on this GPU."""
        found = _ask(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle)) or ()
        return tuple(process.pid for process in found)

    def uncorrected_ecc_errors(self) -> int | None:
        """Since the driver was loaded; None also where ECC is off."""
        return _ask(
            lambda: int(
                pynvml.nvmlDeviceGetTotalEccErrors(
                    self.handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
                )
            )
        )


def reasons(mask: int) -> tuple[str, ...]:
    """The names of the bits in the driver's mask; one that is not known here keeps its number."""
    bits = (1 << position for position in range(mask.bit_length()))
    return tuple(REASONS.get(bit, f"reason_{bit:#x}") for bit in bits if mask & bit)


def driver_version() -> str | None:
    return _ask(lambda: str(pynvml.nvmlSystemGetDriverVersion()))


@contextmanager
def opened(uuid: str | None = None) -> Iterator[NvmlGpu]:
    """The GPU with this uuid ("GPU-…"), or the first one. Raises NoDeviceError where the driver gives none."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoDeviceError(f"the NVIDIA driver does not respond: {error}") from None
    try:
        yield NvmlGpu(_handle(uuid))
    finally:
        pynvml.nvmlShutdown()


def _handle(uuid: str | None) -> Any:
    try:
        return pynvml.nvmlDeviceGetHandleByIndex(0) if uuid is None else pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError as error:
        raise NoDeviceError(f"the NVIDIA driver reports no GPU {uuid or 'at all'}: {error}") from None


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except pynvml.NVMLError:
        return None
