"""The machine, its software and torch's settings, as the record keeps them.

`describe` asks a fresh process, so that the one that orchestrates never opens the GPU nor waits for torch.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, NoDeviceError
from kernelgate.bench.system import beside, nvml
from kernelgate.bench.system.worker import WorkerError, WorkerPool, WorkerProcess

DeviceKind = Literal["cuda", "cpu"]
DESCRIBES = f"{__name__}:seen_by_torch"
PATIENCE_S = 180.0


def describe(workers: WorkerPool | None = None) -> record.Environment:
    """What kernels run on here: the first GPU that torch sees, else the CPU. `workers`: processes that were started
    before; one of DESCRIBES has the answer by now."""
    with workers.take(DESCRIBES) if workers else WorkerProcess(DESCRIBES) as worker:
        try:
            return worker.receive(record.Environment, PATIENCE_S)
        except WorkerError as error:
            raise KernelgateError(f"torch does not start here: {error}") from None


def kind(environment: record.Environment) -> DeviceKind:
    return "cpu" if environment.device.compute_capability is None else "cuda"


def seen_by_torch() -> record.Environment:
    """The same, in this process, whose numerics are set as where kernels run."""
    import torch

    pin_numerics()
    return here("cuda" if torch.cuda.is_available() else "cpu")


def here(device: DeviceKind) -> record.Environment:
    """This machine, with torch's numerics as they are set in this process."""
    import torch

    cuda = torch.cuda
    return record.Environment(
        device=gpu(cuda.get_device_properties(cuda.current_device())) if device == "cuda" else cpu(Path("/")),
        torch=torch.__version__,
        cuda=torch.version.cuda,
        triton=beside.version("triton"),
        python=platform.python_version(),
        interpreter=sys.executable,
        os=f"{platform.system()} {platform.release()}",
        host=platform.node() or None,
        numerics=numerics(),
    )


def gpu(properties: Any) -> record.Device:
    """What torch says of a GPU, and what its driver adds where it answers."""
    seen = record.Device(
        name=properties.name,
        compute_capability=f"{properties.major}.{properties.minor}",
        uuid=f"GPU-{properties.uuid}",
        memory_bytes=properties.total_memory,
        sm_count=properties.multi_processor_count,
        l2_bytes=properties.L2_cache_size,
    )
    try:
        with nvml.opened(seen.uuid) as gpu:
            return seen.model_copy(update=gpu.of_device())
    except NoDeviceError:
        return seen


def cpu(root: Path) -> record.Device:
    """The CPU as the kernel describes it under `root`; `l2_bytes` is the last level of its cache."""
    memory = _first(root / "proc/meminfo", r"MemTotal:\s+(\d+) kB")
    kib = (_first(path, r"^(\d+)K$") for path in root.glob("sys/devices/system/cpu/cpu0/cache/index*/size"))
    return record.Device(
        name=_first(root / "proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.machine() or "CPU",
        memory_bytes=int(memory) * 1024 if memory else None,
        sm_count=len(os.sched_getaffinity(0)),
        l2_bytes=max((int(size) * 1024 for size in kib if size), default=None),
    )


def differences(before: record.Environment, now: record.Environment, in_kind: bool = False) -> tuple[str, ...]:
    """What makes two measurements incomparable, in words: "torch 2.11.0, now 2.13.0". `in_kind`: where another machine
    of the same kind is as good."""
    compared: dict[str, tuple[object, object]] = {
        "device": (before.device.name, now.device.name),
        "driver": (before.device.driver, now.device.driver),
        "torch": (before.torch, now.torch),
        "numerics": (before.numerics and before.numerics.words, now.numerics and now.numerics.words),
    }
    if not in_kind:
        compared |= {"device uuid": (before.device.uuid, now.device.uuid), "host": (before.host, now.host)}
    return tuple(f"{what} {was}, now {is_}" for what, (was, is_) in compared.items() if was != is_)


def _first(path: Path, pattern: str) -> str | None:
    found = re.search(pattern, text_of(path) or "")
    return found[1].strip() if found else None


def text_of(path: Path) -> str | None:
    """The contents without the space around them; None where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None


# ---- How torch computes where kernels, references and oracles run ----------------------------------------------------

VARIABLES = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE")
"""They change what NVIDIA's libraries compute, whatever torch asks of them."""


def pin_numerics() -> None:
    """Afterwards, products and convolutions in float32 are of float32.

    Whether operators repeat their bits stays as torch has it by default: a kernel's package may ask for that, and
    choose a slower way.
    """
    import torch

    backends: Any = torch.backends  # whose stubs lack half of these
    # Both of torch's ways of saying it: where a card has used one, the other alone leaves a mixture that torch refuses.
    torch.set_float32_matmul_precision("highest")
    backends.cuda.matmul.allow_tf32 = False
    backends.cudnn.allow_tf32 = False
    if hasattr(backends, "fp32_precision"):  # from torch 2.9 on
        for level in (backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
            level.fp32_precision = "ieee"
    backends.cudnn.benchmark = False
    torch.set_deterministic_debug_mode("default")  # use_deterministic_algorithms() loads dynamo, for seconds


@contextmanager
def repeating_bits() -> Iterator[None]:
    """For oracles: in the block, operators that can repeat their bits do. New tensors stay uninitialised, for filling
    them takes time."""
    import torch
    import torch.utils.deterministic

    filling: Any = torch.utils.deterministic
    mode, fills = torch.get_deterministic_debug_mode(), filling.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")
    filling.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        filling.fill_uninitialized_memory = fills


def changed_numerics() -> str | None:
    """What is set otherwise than `pin` did, such as by a kernel's package that was imported; None where nothing is."""
    now = numerics()
    return None if (now.matmul, now.convolution, now.deterministic) == ("ieee", "ieee", False) else now.words


def numerics() -> record.Numerics:
    import torch

    backends: Any = torch.backends

    def precision(level: Any) -> str:
        return getattr(level, "fp32_precision", None) or ("tf32" if level.allow_tf32 else "ieee")

    return record.Numerics(
        matmul=precision(backends.cuda.matmul),
        convolution=precision(getattr(backends.cudnn, "conv", backends.cudnn)),
        deterministic=torch.are_deterministic_algorithms_enabled(),
        variables=tuple(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ),
    )
