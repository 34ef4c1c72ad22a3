"""Looks at everything: the GPU, torch, the machine, what compiles, and the checkout's own kernels."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, NoDeviceError
from kernelgate.bench.doctor import compiling, gpu, kernels, machine
from kernelgate.bench.doctor.check import MachineCheck
from kernelgate.bench.system import environment, isolation, progress


def examine(repo: Path, root: Path = Path("/"), gpu_wanted: bool = False) -> tuple[MachineCheck, ...]:
    """The GPU through its driver, torch in a fresh process, the machine under `root`, and the kernels of `repo`.

    `gpu_wanted`: for a runner. A machine without a GPU fails, instead of being one that measures the CPU kernel, and
    nothing is compiled: a runner is handed libraries.
    """
    checks: list[MachineCheck] = []
    with progress.track("doctor", 3 if gpu_wanted else 4, alike=False) as advance:
        found = gpu.gpu_facts()
        if isinstance(found, NoDeviceError):
            checks.append(gpu.gpu_absent(root, found, gpu_wanted))
        else:
            checks += gpu.gpu_checks(found, root)
        advance("torch")
        torch = _torch()
        checks.append(compiling.torch_check(torch, has_gpu=isinstance(found, gpu.GpuFacts)))
        advance("the machine")
        checks += machine.machine_checks(root)
        if gpu_wanted:
            checks.append(machine.isolation_check(isolation.unusable(isolation.command_line({}))))
            advance("")
            return tuple(checks)
        advance("kernels")
        known = torch if isinstance(torch, record.Environment) else None
        checks += compiling.compile_checks(known.device.compute_capability if known else None)
        checks += kernels.kernel_checks(repo, known) if known else []
        advance("")
    return tuple(checks)


def _torch() -> record.Environment | KernelgateError:
    try:
        return environment.describe()
    except KernelgateError as error:
        return error
