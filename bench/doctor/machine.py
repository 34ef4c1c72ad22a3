"""The machine and its GPU: driver, clocks, temperature, memory errors, counters, disk, load, and who else computes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import cuda_tools, nvml
from kernelgate.bench.system.environment import text_of


class Level(StrEnum):
    PASSED = "passed"
    WARNING = "warning"
    """Measuring works; the numbers may be worse, or something beside measuring does not work."""
    FAILED = "failed"
    """This machine should not measure."""


@dataclass(frozen=True)
class MachineCheck:
    """One thing looked at."""

    name: str
    level: Level
    found: str
    fix: str | None = None
    """What to do about it; None where it passed."""


def fit(checks: Sequence[MachineCheck]) -> bool:
    return all(check.level is not Level.FAILED for check in checks)


def report(checks: Sequence[MachineCheck]) -> str:
    """The checks for a person, the worst last, with how to fix them."""
    order = {level: place for place, level in enumerate(Level)}
    lines = []
    for check in sorted(checks, key=lambda check: order[check.level]):
        lines.append(f"{check.level:8} {check.name}: {check.found}")
        if check.fix:
            lines.append(f"{'':8} → {check.fix}")
    return "\n".join([*lines, "", "This machine is fit to measure." if fit(checks) else "Not fit to measure."])


def to_json(checks: Sequence[MachineCheck]) -> str:
    """`fit`, and the `checks` with their `name`, `level`, `found` and `fix`, in the order they were made in."""
    return json.dumps({"fit": fit(checks), "checks": [asdict(check) for check in checks]}, indent=2, ensure_ascii=False)


# ----------------------------------------------------------------------------------------------------------------------
# The GPU, as its driver describes it
# ----------------------------------------------------------------------------------------------------------------------

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
    now = gpu.reading
    return [
        MachineCheck("GPU", Level.PASSED, f"{gpu.name or 'an NVIDIA GPU'}, driver {gpu.driver or 'unknown'}"),
        persistence_check(gpu.persistence_mode),
        processes_check(gpu.process_ids),
        throttle_check(now.throttle_reasons),
        temperature_check(now.temperature_c),
        MachineCheck(
            "clocks", Level.PASSED, f"SM at {_mhz(gpu.reading.sm_mhz)} now, {_mhz(gpu.reading.max_sm_mhz)} at most"
        ),
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


# ----------------------------------------------------------------------------------------------------------------------
# The machine around it
# ----------------------------------------------------------------------------------------------------------------------

FREE_BYTES = 2 << 30
"""For libraries, logs and reports of a few runs."""
STEAL_SHARE = 0.01
STEAL_WINDOW_S = 0.5
LOAD_SHARE = 0.25
"""Of the cores: a higher load average means that somebody else computes."""


def machine_checks(root: Path) -> list[MachineCheck]:
    cores = os.cpu_count() or 1
    before = text_of(root / "proc/stat")
    time.sleep(STEAL_WINDOW_S)
    after = text_of(root / "proc/stat")
    return [
        disk_check({folder: shutil.disk_usage(folder).free for folder in (Path.cwd(), Path(tempfile.gettempdir()))}),
        governor_check(root),
        load_check(text_of(root / "proc/loadavg"), cores),
        steal_check(steal_of(before, after) if before and after else None),
    ]


def isolation_check(why: str | None) -> MachineCheck:
    """Whether kernels can be kept apart from what else is on a runner."""
    if why is None:
        return MachineCheck("isolation", Level.PASSED, "bubblewrap: a kernel's process is kept apart from the runner")
    fix = "sudo apt-get install bubblewrap, and let it make user namespaces: .ci/runner/prepare.sh does both"
    return MachineCheck("isolation", Level.WARNING, f"a kernel has all rights of the runner's user: {why}", fix)


def disk_check(free_bytes: dict[Path, int]) -> MachineCheck:
    folder, least = min(free_bytes.items(), key=lambda item: item[1])
    found = f"{least / 2**30:.1f} GiB free in {folder}"
    if least >= FREE_BYTES:
        return MachineCheck("disk", Level.PASSED, found)
    fix = f"free some: {FREE_BYTES / 2**30:.0f} GiB are wanted for libraries and reports"
    return MachineCheck("disk", Level.FAILED, found, fix)


def governor_check(root: Path) -> MachineCheck:
    found = {text_of(path) for path in root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")}
    governors = sorted(governor for governor in found if governor)
    if not governors or governors == ["performance"]:
        return MachineCheck("CPU clock", Level.PASSED, governors[0] if governors else "cannot be set on this machine")
    fix = "sudo cpupower frequency-set -g performance"
    return MachineCheck("CPU clock", Level.WARNING, f"governor {', '.join(governors)}: host times vary", fix)


def load_check(loadavg: str | None, cores: int) -> MachineCheck:
    load = float(loadavg.split()[0]) if loadavg else 0.0
    found = f"{load:.2f} over the last minute on {cores} cores"
    if load <= LOAD_SHARE * cores:
        return MachineCheck("load", Level.PASSED, found)
    return MachineCheck("load", Level.WARNING, found, "end what else computes here (top shows it), or wait a minute")


def steal_check(share: float | None) -> MachineCheck:
    if share is None or share <= STEAL_SHARE:
        return MachineCheck("stolen time", Level.PASSED, "not told here" if share is None else f"{100 * share:.1f}%")
    found = f"{100 * share:.1f}% of the CPU goes to other virtual machines"
    return MachineCheck("stolen time", Level.WARNING, found, "use a machine, or an instance type, that is not shared")


def steal_of(before: str, after: str) -> float | None:
    """The share of CPU time between two readings of /proc/stat that the hypervisor gave to others."""
    ticks = [[int(number) for number in text.split("\n")[0].split()[1:9]] for text in (before, after)]
    if any(len(numbers) < 8 for numbers in ticks):
        return None
    spent = [later - earlier for earlier, later in zip(*ticks, strict=True)]
    return spent[7] / sum(spent) if sum(spent) else None
