"""All planted bugs, and those that nothing catches yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.fuzzing import attention_binding, attention_cpu, attention_gpu, int8_gemm, rmsnorm, swiglu
from benchmarks.fuzzing.bug import Bug, Device, KernelName, control

KERNELS: tuple[KernelName, ...] = ("attention", "rmsnorm", "swiglu", "int8_gemm")
BUGS: tuple[Bug, ...] = (
    *attention_binding.BUGS,
    *attention_cpu.BUGS,
    *attention_gpu.BUGS,
    *rmsnorm.BUGS,
    *swiglu.BUGS,
    *int8_gemm.BUGS,
)
CONTROLS: tuple[Bug, ...] = (
    control("attention", "cpu"),
    control("attention", "wgmma"),
    control("attention", "mma_sync"),
    control("rmsnorm", "binding"),
    control("swiglu", "triton"),
    control("int8_gemm", "binding"),
)
"""One for each path that is run by itself."""


def select(device: Device, kernels: Sequence[str] = (), names: Sequence[str] = ()) -> tuple[Bug, ...]:
    """The controls and bugs that this device shows, of these kernels and with these names or ids; all where none is
    named. Raises ValueError for a name that no bug has."""
    every = (*CONTROLS, *BUGS)
    unknown = [name for name in names if not any(name in (bug.name, bug.id) for bug in every)]
    if unknown:
        raise ValueError(f"there is no bug {', '.join(unknown)}")
    return tuple(
        bug
        for bug in every
        if device in bug.devices
        and (not kernels or bug.kernel in kernels)
        and (not names or bug.name in names or bug.id in names)
    )


HUGE = "no tensor of more than 2 GiB is tried on a CPU; the GPU's are"

SURVIVORS: Mapping[tuple[str, Device], str] = {
    ("attention/cpu/offset-32-bit", "cpu"): HUGE,
    ("rmsnorm/cpu/offset-32-bit", "cpu"): HUGE,
}
"""The bugs that nothing catches yet, and why, by the bug's id and the device: to be emptied."""
