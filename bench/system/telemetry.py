"""The device while it is timed: clocks, temperature, power and throttle reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from kernelgate.bench import record
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import nvml
from kernelgate.bench.system.nvml import Reading

Source = Callable[[], Reading]


@contextmanager
def source(device: str, uuid: str | None = None) -> Iterator[Source]:
    """Reads the GPU through NVML, or of a CPU what the kernel offers under /sys. Without NVML, readings are empty."""
    with ExitStack() as stack:
        yield _cpu if device == "cpu" else _gpu(stack, uuid)


def summary(readings: Sequence[Reading]) -> record.Telemetry:
    """Medians, the hottest temperature, and every throttle reason that was seen."""
    given = Counter(reason for reading in readings for reason in reading.throttle_reasons)
    temperatures = [reading.temperature_c for reading in readings if reading.temperature_c is not None]
    return record.Telemetry(
        sm_mhz=_median(reading.sm_mhz for reading in readings),
        max_sm_mhz=_median(reading.max_sm_mhz for reading in readings),
        memory_mhz=_median(reading.memory_mhz for reading in readings),
        temperature_c=max(temperatures, default=None),
        power_w=_median(reading.power_w for reading in readings),
        throttle_reasons=tuple(sorted(given)),
        throttle_shares={reason: count / len(readings) for reason, count in sorted(given.items())},
    )


def cpu_reading(root: Path) -> Reading:
    """The mean clock of the cores and the hottest zone, as the kernel tells them under `root`; power is not offered."""
    clocks = [_number(path) for path in root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")]
    zones = [_number(path) for path in root.glob("sys/class/thermal/thermal_zone*/temp")]
    known_mhz = [kilohertz / 1000 for kilohertz in clocks if kilohertz is not None]
    known_c = [thousandths / 1000 for thousandths in zones if thousandths is not None]
    return Reading(
        sm_mhz=sum(known_mhz) / len(known_mhz) if known_mhz else None, temperature_c=max(known_c, default=None)
    )


def _cpu() -> Reading:
    return cpu_reading(Path("/"))


def _gpu(stack: ExitStack, uuid: str | None) -> Source:
    try:
        return stack.enter_context(nvml.opened(uuid)).reading
    except NoDeviceError:
        return Reading


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None
