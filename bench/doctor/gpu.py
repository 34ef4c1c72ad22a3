"""The GPU, as its driver describes it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.doctor.check import Level, MachineCheck, text_of
from kernelgate.bench.system import cuda_tools, nvml

HOT_C = 80.0
HARMLESS = frozenset({"gpu_idle", "applications_clocks_setting", "display_clock_setting"})
"""Throttle reasons that slow nothing down."""
NVIDIA = "0x10de"
"""The vendor's number on the PCI bus."""


@dataclass(frozen=True)
class GpuFacts:
    """What the driver says of the GPU."""

    name: str | None
    driver: str | None
    reading: nvml.Reading
    max_sm_mhz: float | None
    persistence_mode: bool | None
    process_ids: tuple[int, ...]
    uncorrected_ecc_errors: int | None


def gpu_facts() -> GpuFacts | NoDeviceError:
    """Of the first GPU, or why there is none."""
    try:
        with nvml.opened() as gpu:
            return GpuFacts(
                name=gpu.name(),
                driver=nvml.driver_version(),
                reading=gpu.reading(),
                max_sm_mhz=gpu.max_sm_mhz(),
                persistence_mode=gpu.persistence_mode(),
                process_ids=gpu.process_ids(),
                uncorrected_ecc_errors=gpu.uncorrected_ecc_errors(),
            )
    except NoDeviceError as error:
        return error


def gpu_absent(root: Path, error: NoDeviceError, wanted: bool = False) -> MachineCheck:
    """No GPU is a machine like any other; a GPU without a driver that answers is a broken one."""
    vendors = [text_of(path) for path in root.glob("sys/bus/pci/devices/*/vendor")]
    if NVIDIA in vendors:
        fix = "install NVIDIA's driver, or load it (sudo modprobe nvidia) and look at dmesg"
        return MachineCheck("GPU", Level.FAILED, f"an NVIDIA GPU is on the bus, but {error}", fix)
    if wanted:
        fix = "see whether the card is still in its slot and seen by the machine: lspci -d 10de:"
        return MachineCheck("GPU", Level.FAILED, f"no NVIDIA GPU is on the bus: {error}", fix)
    fix = "to measure a GPU, run this on a machine that has one"
    return MachineCheck("GPU", Level.WARNING, "this machine has no NVIDIA GPU: the CPU kernel will be measured", fix)


def gpu_checks(gpu: GpuFacts, root: Path) -> list[MachineCheck]:
    return [
        MachineCheck("GPU", Level.PASSED, f"{gpu.name or 'an NVIDIA GPU'}, driver {gpu.driver or 'unknown'}"),
        persistence_check(gpu.persistence_mode),
        processes_check(gpu.process_ids),
        throttle_check(gpu.reading.throttle_reasons),
        temperature_check(gpu.reading.temperature_c),
        MachineCheck("clocks", Level.PASSED, f"SM at {_mhz(gpu.reading.sm_mhz)} now, {_mhz(gpu.max_sm_mhz)} at most"),
        ecc_check(gpu.uncorrected_ecc_errors),
        ncu_check(root),
        counters_check(root, os.geteuid()),
    ]


def persistence_check(on: bool | None) -> MachineCheck:
    if on is not False:
        return MachineCheck("persistence mode", Level.PASSED, "on" if on else "not offered by this driver")
    found = "off: the driver may unload between processes, which slows each start and resets clocks"
    return MachineCheck("persistence mode", Level.WARNING, found, "sudo nvidia-smi -pm 1")


def processes_check(process_ids: Sequence[int]) -> MachineCheck:
    if not process_ids:
        return MachineCheck("other processes", Level.PASSED, "none on the GPU")
    ids = " ".join(map(str, process_ids))
    found = f"{len(process_ids)} on the GPU ({ids}): single samples can be 100 times too long"
    return MachineCheck("other processes", Level.FAILED, found, f"terminate them, or wait: ps -fp {ids}")


def throttle_check(reasons: Sequence[str]) -> MachineCheck:
    slowing = sorted(set(reasons) - HARMLESS)
    if not slowing:
        return MachineCheck("throttling", Level.PASSED, "none")
    fix = "better cooling or a higher power limit; nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE shows which"
    return MachineCheck("throttling", Level.FAILED, ", ".join(slowing), fix)


def temperature_check(temperature_c: float | None) -> MachineCheck:
    if temperature_c is None:
        return MachineCheck("temperature", Level.PASSED, "not offered by this driver")
    if temperature_c <= HOT_C:
        return MachineCheck("temperature", Level.PASSED, f"{temperature_c:.0f} °C")
    found = f"{temperature_c:.0f} °C, above {HOT_C:.0f} °C before anything runs"
    return MachineCheck("temperature", Level.FAILED, found, "let it cool down; check fans and airflow")


def ecc_check(errors: int | None) -> MachineCheck:
    if not errors:
        return MachineCheck("memory errors", Level.PASSED, "not counted by this GPU" if errors is None else "none")
    found = f"{errors} uncorrected ECC errors since the driver was loaded"
    return MachineCheck(
        "memory errors", Level.FAILED, found, "reset the GPU or restart the machine; if they return, replace it"
    )


def ncu_check(root: Path) -> MachineCheck:
    ncu = next(cuda_tools.candidates("ncu", root), None)
    if ncu:
        return MachineCheck("Nsight Compute", Level.PASSED, str(ncu))
    fix = f"from NVIDIA's CUDA repository: {cuda_tools.TOOLS['ncu'].install}"
    return MachineCheck("Nsight Compute", Level.WARNING, f"runs cannot be profiled: {cuda_tools.absent('ncu')}", fix)


def counters_check(root: Path, user_id: int) -> MachineCheck:
    """Whether this user may read the hardware counters that ncu needs."""
    restricted = re.search(r"RmProfilingAdminOnly:\s*1", text_of(root / "proc/driver/nvidia/params") or "")
    if not restricted or user_id == 0:
        return MachineCheck("hardware counters", Level.PASSED, "open to this user")
    fix = (
        "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo tee /etc/modprobe.d/kernelgate.conf, "
        "then restart the machine"
    )
    return MachineCheck("hardware counters", Level.WARNING, "restricted to root: ncu will fail", fix)


def _mhz(clock: float | None) -> str:
    return "an unknown clock" if clock is None else f"{clock:.0f} MHz"
