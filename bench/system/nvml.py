"""A GPU through NVML: what its driver says of it, readings while it is timed, and its clock, held and let go of.

A value that the driver or the device does not offer is None.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, TypeVar

import pynvml

from kernelgate.bench import record
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import orphans, progress
from kernelgate.bench.system.worker import child_environment

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
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    max_sm_mhz: float | None = None


@dataclass(frozen=True)
class GpuFacts:
    """What tells whether a GPU is fit to measure."""

    name: str | None
    driver: str | None
    reading: Reading
    persistence_mode: bool | None
    process_ids: tuple[int, ...]
    """Of those that compute on it."""
    uncorrected_ecc_errors: int | None
    """Since the driver was loaded; None also where ECC is off."""


@dataclass(frozen=True)
class NvmlGpu:
    handle: Any

    def _ask(self, kind: Callable[[Any], T], question: Callable[..., Any], *about: int) -> T | None:
        return _ask(lambda: kind(question(self.handle, *about)))

    def reading(self) -> Reading:
        return Reading(
            sm_mhz=self._ask(float, pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
            max_sm_mhz=self.max_sm_mhz,
            memory_mhz=self._ask(float, pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
            temperature_c=self._ask(float, pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            power_w=self._ask(lambda milliwatts: milliwatts / 1000, pynvml.nvmlDeviceGetPowerUsage),
            throttle_reasons=self._ask(reasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons) or (),
        )

    @cached_property
    def max_sm_mhz(self) -> float | None:
        """Asked once: the driver takes milliseconds to answer."""
        return self._ask(float, pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)

    def lock_clock(self) -> str:
        """Holds the SM clock at its base frequency: "locked 1500 MHz", or why it cannot be held."""
        base_mhz = self._ask(int, pynvml.nvmlDeviceGetDefaultApplicationsClock, pynvml.NVML_CLOCK_SM)
        if not base_mhz:
            return "the driver does not say the base clock"
        try:
            pynvml.nvmlDeviceSetGpuLockedClocks(self.handle, base_mhz, base_mhz)
        except pynvml.NVMLError as error:
            return f"the clock cannot be held: {error}"
        return f"locked {base_mhz} MHz"

    def of_device(self) -> dict[str, object]:
        """The fields of a record's Device that only the driver knows. Of the power limits it is the one that holds; of
        the link what it can do, for an idle one is slowed down."""
        generation = self._ask(int, pynvml.nvmlDeviceGetMaxPcieLinkGeneration)
        width = self._ask(int, pynvml.nvmlDeviceGetMaxPcieLinkWidth)
        return {
            "driver": driver_version(),
            "power_limit_w": self._ask(lambda milliwatts: milliwatts / 1000, pynvml.nvmlDeviceGetEnforcedPowerLimit),
            "max_sm_mhz": self.max_sm_mhz,
            "max_memory_mhz": self._ask(float, pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM),
            # Of the mode that is on, and the one that will be.
            "ecc": self._ask(lambda modes: bool(modes[0]), pynvml.nvmlDeviceGetEccMode),
            "mig": self._ask(lambda modes: bool(modes[0]), pynvml.nvmlDeviceGetMigMode),
            "pcie": None if generation is None or width is None else f"gen{generation} x{width}",
        }

    def facts(self) -> GpuFacts:
        uncorrected = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
        processes = self._ask(list, pynvml.nvmlDeviceGetComputeRunningProcesses) or []
        return GpuFacts(
            name=self._ask(str, pynvml.nvmlDeviceGetName),
            driver=driver_version(),
            reading=self.reading(),
            persistence_mode=self._ask(bool, pynvml.nvmlDeviceGetPersistenceMode),
            process_ids=tuple(process.pid for process in processes),
            uncorrected_ecc_errors=self._ask(int, pynvml.nvmlDeviceGetTotalEccErrors, *uncorrected),
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
    with ExitStack() as stack:
        stack.callback(pynvml.nvmlShutdown)
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else pynvml.nvmlDeviceGetHandleByIndex(0)
        except pynvml.NVMLError as error:
            raise NoDeviceError(f"the NVIDIA driver reports no GPU {uuid or 'at all'}: {error}") from None
        yield NvmlGpu(handle)


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except pynvml.NVMLError:
        return None


# ---- The device while it is timed ------------------------------------------------------------------------------------

Source = Callable[[], Reading]


@contextmanager
def readings(device: str, uuid: str | None = None) -> Iterator[Source]:
    """Reads the GPU through NVML. Without NVML, and of a CPU, readings are empty."""
    with ExitStack() as stack:
        source: Source = Reading
        if device != "cpu":
            with suppress(NoDeviceError):
                source = stack.enter_context(opened(uuid)).reading
        yield source


def telemetry(readings: Sequence[Reading]) -> record.Telemetry:
    """Medians, the hottest temperature, and every throttle reason that was seen."""
    given = Counter(reason for reading in readings for reason in reading.throttle_reasons)
    temperatures = [reading.temperature_c for reading in readings if reading.temperature_c is not None]
    medians = {}
    for name in ("sm_mhz", "max_sm_mhz", "memory_mhz", "power_w"):
        known = [value for reading in readings if (value := getattr(reading, name)) is not None]
        medians[name] = median(known) if known else None
    return record.Telemetry(
        **medians,
        temperature_c=max(temperatures, default=None),
        throttle_reasons=tuple(sorted(given)),
        throttle_shares={reason: count / len(readings) for reason, count in sorted(given.items())},
    )


# ---- The clock. A process of its own lets go of it when its parent's pipe closes: also where that was killed ---------

DEFAULT = "default"
HELD, FREE = b"1", b"0"
"""What the watchdog is told. A clock that somebody else holds is none of its business."""


@contextmanager
def locked_clock(uuid: str | None, wanted: bool) -> Iterator[str]:
    """Until the block ends, the SM clock stays at its base frequency, where the driver lets this user say so.

    Yields what is so, for the record: "locked 1500 MHz", "default", or "default (why)".
    """
    if not wanted:
        yield DEFAULT
        return
    with orphans.watchdog([sys.executable, "-P", "-m", __name__, uuid or ""], child_environment()) as tell:
        tell(HELD)  # before it is: whoever ends this process in between leaves no clock held
        try:
            with opened(uuid) as gpu:
                said = gpu.lock_clock()
        except NoDeviceError as error:
            said = str(error)
        if said.startswith("locked"):
            yield said
        else:
            tell(FREE)
            yield f"{DEFAULT} ({said})"


def main() -> None:
    """Waits for the end of its parent's pipe, and lets go of the clock if the last it was told is `HELD`."""
    if orphans.last_told() != HELD:
        return
    try:
        with opened(sys.argv[1] or None) as gpu:
            _ask(lambda: pynvml.nvmlDeviceResetGpuLockedClocks(gpu.handle))
    except NoDeviceError as error:
        progress.say(f"the GPU's clock may still be held: {error}; release it with nvidia-smi --reset-gpu-clocks")


if __name__ == "__main__":
    main()
