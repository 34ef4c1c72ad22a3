"""All planted bugs, and those that nothing catches yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.fuzzing import attention_binding, attention_cpu, attention_gpu, int8_gemm, rmsnorm, swiglu
from benchmarks.fuzzing.bug import Bug, CodePath, Device, KernelName, control

KERNELS: tuple[KernelName, ...] = ("attention", "rmsnorm", "swiglu", "int8_gemm")
_MODULES = (attention_binding, attention_cpu, attention_gpu, rmsnorm, swiglu, int8_gemm)
BUGS = tuple(bug for module in _MODULES for bug in module.BUGS)
_PATHS: tuple[tuple[KernelName, CodePath], ...] = (
    *(("attention", "cpu"), ("attention", "wgmma"), ("attention", "mma_sync")),
    *(("rmsnorm", "binding"), ("swiglu", "triton"), ("int8_gemm", "binding")),
)
CONTROLS = tuple(control(kernel, path) for kernel, path in _PATHS)
"""One for each path that is run by itself."""


def select(device: Device, names: Sequence[str] = ()) -> tuple[Bug, ...]:
    """The controls and bugs that this device shows, of these kernels or with these names or ids; all where none is
    named. Raises ValueError for a name that no bug has."""
    every = (*CONTROLS, *BUGS)
    unknown = [name for name in names if not any(name in (bug.kernel, bug.name, bug.id) for bug in every)]
    if unknown:
        raise ValueError(f"there is no bug {', '.join(unknown)}")
    shown = [bug for bug in every if device in bug.devices]
    return tuple(bug for bug in shown if not names or {bug.kernel, bug.name, bug.id} & set(names))


SURVIVORS: Mapping[tuple[str, Device], str] = {
    (f"{kernel}/cpu/offset-32-bit", "cpu"): "no tensor of more than 2 GiB is tried on a CPU; the GPU's are"
    for kernel in ("attention", "rmsnorm")
}
"""The bugs that nothing catches yet, and why, by the bug's id and the device: to be emptied."""
