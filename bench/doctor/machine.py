"""The machine around the GPU: disk, clocks, load, and who else computes on it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from kernelgate.bench.doctor.check import Level, MachineCheck, text_of

FREE_BYTES = 2 << 30
"""For libraries, logs and reports of a few runs."""
STEAL_SHARE = 0.01
STEAL_WINDOW_S = 0.5
LOAD_SHARE = 0.25
"""Of the cores: a higher load average means that somebody else computes."""


def machine_checks(root: Path) -> list[MachineCheck]:
    cores = os.cpu_count() or 1
    return [
        disk_check({folder: shutil.disk_usage(folder).free for folder in (Path.cwd(), Path(tempfile.gettempdir()))}),
        governor_check(root),
        load_check(text_of(root / "proc/loadavg"), cores),
        steal_check(_steal_share(root)),
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


def _steal_share(root: Path) -> float | None:
    before = text_of(root / "proc/stat")
    time.sleep(STEAL_WINDOW_S)
    after = text_of(root / "proc/stat")
    return steal_of(before, after) if before and after else None
