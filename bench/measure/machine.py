"""The machine and its GPU: driver, clocks, temperature, memory errors, counters, disk, load, and who else computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import cuda_tools, lock, nvml
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


def passed(name: str, found: str) -> MachineCheck:
    return MachineCheck(name, Level.PASSED, found)


def warning(name: str, found: str, fix: str) -> MachineCheck:
    return MachineCheck(name, Level.WARNING, found, fix)


def failed(name: str, found: str, fix: str) -> MachineCheck:
    return MachineCheck(name, Level.FAILED, found, fix)


def judged(name: str, fine: str, wrong: str | None, fix: str, level: Level = Level.WARNING) -> MachineCheck:
    """`fine`: what is found where nothing is `wrong`."""
    return MachineCheck(name, level, wrong, fix) if wrong else passed(name, fine)


def fit(checks: Sequence[MachineCheck]) -> bool:
    return all(check.level is not Level.FAILED for check in checks)


def report(checks: Sequence[MachineCheck]) -> str:
    """The checks for a person, the worst last, with how to fix them."""
    lines = []
    for check in sorted(checks, key=lambda check: list(Level).index(check.level)):
        lines.append(f"{check.level:8} {check.name}: {check.found}")
        if check.fix:
            lines.append(f"{'':8} → {check.fix}")
    return "\n".join([*lines, "", "This machine is fit to measure." if fit(checks) else "Not fit to measure."])


# ---- The GPU, as its driver describes it -----------------------------------------------------------------------------

HOT_C = 80.0
HARMLESS = frozenset({"gpu_idle", "applications_clocks_setting", "display_clock_setting"})
"""Throttle reasons that slow nothing down."""
NVIDIA = "0x10de"
"""The vendor's number on the PCI bus."""


def gpu_absent(root: Path, error: NoDeviceError, wanted: bool = False) -> MachineCheck:
    """No GPU is a machine like any other; a GPU without a driver that answers is a broken one."""
    if NVIDIA in map(text_of, root.glob("sys/bus/pci/devices/*/vendor")):
        fix = "install NVIDIA's driver, or load it (sudo modprobe nvidia) and look at dmesg"
        return failed("GPU", f"an NVIDIA GPU is on the bus, but {error}", fix)
    if wanted:
        fix = "see whether the card is still in its slot and seen by the machine: lspci -d 10de:"
        return failed("GPU", f"no NVIDIA GPU is on the bus: {error}", fix)
    fix = "to measure a GPU, run this on a machine that has one"
    return warning("GPU", "this machine has no NVIDIA GPU: the CPU kernel will be measured", fix)


def gpu_checks(gpu: nvml.GpuFacts, root: Path, user_id: int) -> Iterator[MachineCheck]:
    """`user_id`: whose right to read the hardware counters that ncu needs is asked for; 0 is root."""
    yield passed("GPU", f"{gpu.name or 'an NVIDIA GPU'}, driver {gpu.driver or 'unknown'}")
    fine = "on" if gpu.persistence_mode else "not offered by this driver"
    off = "off: the driver may unload between processes, which slows each start and resets clocks"
    yield judged("persistence mode", fine, off if gpu.persistence_mode is False else None, "sudo nvidia-smi -pm 1")
    ids = " ".join(map(str, gpu.process_ids))
    found = ids and f"{len(gpu.process_ids)} on the GPU ({ids}): single samples can be 100 times too long"
    own = all("kernelgate" in (text_of(root / f"proc/{one}/cmdline") or "") for one in gpu.process_ids)
    waits = f"wait until this measurement of kernelgate ends; the check “{lock.CHECK}” says whose it is"
    fix = waits if own else f"terminate them, or wait: ps -fp {ids}"
    yield judged("other processes", "none on the GPU", found, fix, Level.FAILED)
    slowing = ", ".join(sorted(set(gpu.reading.throttle_reasons) - HARMLESS))
    fix = "better cooling or a higher power limit; nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE shows which"
    yield judged("throttling", "none", slowing, fix, Level.FAILED)
    hot = gpu.reading.temperature_c
    fine = "not offered by this driver" if hot is None else f"{hot:.0f} °C"
    wrong = f"{fine}, above {HOT_C:.0f} °C before anything runs" if (hot or 0.0) > HOT_C else None
    yield judged("temperature", fine, wrong, "let it cool down; check fans and airflow", Level.FAILED)
    errors = gpu.uncorrected_ecc_errors
    fine = "not counted by this GPU" if errors is None else "none"
    wrong = f"{errors} uncorrected ECC errors since the driver was loaded" if errors else None
    fix = "reset the GPU or restart the machine; if they return, replace it"
    yield judged("memory errors", fine, wrong, fix, Level.FAILED)
    ncu = next(cuda_tools.candidates("ncu", root), None)
    wrong = None if ncu else f"runs cannot be profiled: {cuda_tools.absent('ncu')}"
    fix = f"from NVIDIA's CUDA repository: {cuda_tools.TOOLS['ncu'].install}"
    yield judged("Nsight Compute", str(ncu), wrong, fix)
    limited = user_id and re.search(r"RmProfilingAdminOnly:\s*1", text_of(root / "proc/driver/nvidia/params") or "")
    option = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
    fix = f"echo {option} | sudo tee /etc/modprobe.d/kernelgate.conf, then restart the machine"
    wrong = "restricted to root: ncu will fail" if limited else None
    yield judged("hardware counters", "open to this user", wrong, fix)


# ---- The machine around it -------------------------------------------------------------------------------------------

FREE_BYTES = 2 << 30
"""For libraries, logs and reports of a few runs."""
LOAD_SHARE = 0.25
"""Of the cores: a higher load average means that somebody else computes."""


def lock_check(uuid: str | None) -> MachineCheck:
    """Whether somebody else measures the device (None: the CPU), as may be on a shared machine."""
    file, holder = lock.path(uuid), lock.holder(uuid)
    wrong = holder and f"{file} is held by {holder}"
    return judged(lock.CHECK, f"{file} is free", wrong, "wait: each measurement begins when that one ends")


def isolation_check(why: str | None) -> MachineCheck:
    """Whether kernels can be kept apart from what else is on a runner."""
    fix = "sudo apt-get install bubblewrap, and let it make user namespaces: "
    fix += page("runner.md#a-pull-requests-code-is-kept-apart")
    wrong = why and f"a kernel has all rights of the runner's user: {why}"
    return judged("isolation", "bubblewrap: a kernel's process is kept apart from the runner", wrong, fix)


def disk_check(free_bytes: dict[Path, int]) -> MachineCheck:
    folder, least = min(free_bytes.items(), key=lambda item: item[1])
    found = f"{least / 2**30:.1f} GiB free in {folder}"
    fix = f"free some: {FREE_BYTES / 2**30:.0f} GiB are wanted for libraries and reports"
    return judged("disk", found, found if least < FREE_BYTES else None, fix, Level.FAILED)


def governor_check(root: Path) -> MachineCheck:
    found = {text_of(path) for path in root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")}
    governors = sorted(filter(None, found))
    fine = governors[0] if governors else "cannot be set on this machine"
    wrong = None if governors in ([], ["performance"]) else f"governor {', '.join(governors)}: host times vary"
    return judged("CPU clock", fine, wrong, "sudo cpupower frequency-set -g performance")


def load_check(loadavg: str | None, cores: int) -> MachineCheck:
    load = float(loadavg.split()[0]) if loadavg else 0.0
    found = f"{load:.2f} over the last minute on {cores} cores"
    fix = "end what else computes here (top shows it), or wait a minute"
    return judged("load", found, found if load > LOAD_SHARE * cores else None, fix)
