"""A GPU that is not there: what Triton, torch and a kernel's wrapper are told of it while kernels are compiled.

A wrapper picks its launch by what it asks: is this tensor on a GPU, of what compute capability, with how many
multiprocessors? Here tensors are the CPU's and say that they are cuda:0; nothing is launched and nothing takes time.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from kernelgate.bench.build.archs import Target
from kernelgate.bench.core import hardware
from kernelgate.bench.kernel.package import importer as package_import

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
REGISTERS, THREADS = 32, 1024
"""What a loaded kernel is said to have: registers of a thread, and the most threads of a block."""
_CUDA_NAME = re.compile(r"cuda(:\d+)?")
_RUN_THE_KERNEL = frozenset({"CUDA", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"})
"""Dispatch keys under which an operator's own code is registered."""


def pretend(target: Target, alias: str) -> None:
    """From now on this process sees one GPU of the target's compute capability. It is never taken back.

    `alias`: what the package that is about to be imported is called in sys.modules.
    """
    properties = _properties(target)
    for name, value in _torch_cuda(properties).items():
        setattr(torch.cuda, name, value)
    torch.Tensor.record_stream = _saying(None)  # type: ignore[method-assign]
    torch.version.cuda = torch.version.cuda or "13.0"
    if importlib.util.find_spec("triton"):
        from triton.runtime import driver

        driver.set_active(_Driver(properties))
    claims = ClaimsCuda()
    torch.library.Library.impl = _on_the_cpu(torch.library.Library.impl, claims, alias)  # type: ignore[method-assign]
    claims.__enter__()  # type: ignore[no-untyped-call]


# ----------------------------------------------------------------------------------------------------------------------
# Tensors and operators
# ----------------------------------------------------------------------------------------------------------------------


class ClaimsCuda(TorchFunctionMode):
    """While it is entered, every tensor says that it is on cuda:0, and what is wanted there is made on the CPU."""

    _answers: Mapping[Any, Any] = {
        torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
        torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
        torch.Tensor.device.__get__: CUDA,
        torch.Tensor.get_device: 0,
    }
    _unchanged = (torch.Tensor.cuda, torch.Tensor.pin_memory)
    _products = frozenset(
        {
            *(torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.einsum, torch.nn.functional.linear),
            *(torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.mm, torch.Tensor.bmm),
            *(torch.conv1d, torch.conv2d, torch.conv3d),
        }
    )
    """What takes a GPU a moment and a CPU minutes."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in self._answers:
            return self._answers[func]
        if func in self._unchanged:
            return args[0]
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        named = dict(kwargs or {})
        if "device" in named and named["device"] is not None:
            named["device"] = CPU
        if "pin_memory" in named:
            named["pin_memory"] = False
        if func in self._products:
            return _zeros(func, args, named)
        return func(*(CPU if _is_cuda(one) else one for one in args), **named)


def _zeros(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A result of the right shape and dtype."""
    if kwargs.get("out") is not None:
        return kwargs["out"]
    shape = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), (args, kwargs))
    return torch.zeros_like(func(*shape[0], **shape[1]), device=CPU)


def _is_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and _CUDA_NAME.fullmatch(value) is not None


def _on_the_cpu(register: Callable[..., None], claims: ClaimsCuda, alias: str) -> Callable[..., None]:
    """Library.impl for operators that the package defines: what is meant for CUDA is called for the CPU's tensors.

    An operator's code runs where torch has left every mode, and is put back into this one.
    """
    for_cuda: set[tuple[str, str]] = set()

    def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        key = dispatch_key or library.dispatch_key
        operator = (library.ns, str(op_name))
        if key not in _RUN_THE_KERNEL or not package_import.called_by(alias):
            return register(library, op_name, fn, key, **options)
        if key == "CUDA":
            for_cuda.add(operator)
            key, options["allow_override"] = "CPU", True
        elif key == "CPU" and operator in for_cuda:
            return None

        @functools.wraps(fn)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with claims:
                return fn(*args, **kwargs)

        return register(library, op_name, inside, key, **options)

    return impl


# ----------------------------------------------------------------------------------------------------------------------
# torch.cuda
# ----------------------------------------------------------------------------------------------------------------------


class _Idle:
    """A stream or an event: everything on it is done at once."""

    cuda_stream = 0
    device = CUDA

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    wait = synchronize = record_event = wait_event = wait_stream = record

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Any) -> float:
        return 1.0


class _Within(nullcontext[None]):
    """`with torch.cuda.device(x):` or `with torch.cuda.stream(s):`."""

    def __init__(self, *_: Any) -> None:
        super().__init__()


def _torch_cuda(properties: SimpleNamespace) -> dict[str, Any]:
    """By name, what takes the place of torch.cuda's own."""

    answers: dict[str, Any] = {
        **dict.fromkeys(
            ("init", "_lazy_init", "set_device", "synchronize", "empty_cache", "set_stream", "manual_seed")
        ),
        **dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported"), True),
        **dict.fromkeys(("current_stream", "default_stream"), _Idle()),
        "device_count": 1,
        "current_device": 0,
        "is_current_stream_capturing": False,
        "get_device_name": properties.name,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_properties": properties,
    }
    return {
        **dict.fromkeys(("Stream", "ExternalStream", "Event"), _Idle),
        **dict.fromkeys(("device", "device_of", "stream"), _Within),
        **{name: _saying(answer) for name, answer in answers.items()},
    }


def _saying(answer: Any) -> Callable[..., Any]:
    """A function of its own for each name, for torch.compile's tables hold no function twice."""
    return lambda *_, **__: answer


def _properties(target: Target) -> SimpleNamespace:
    """As torch.cuda.get_device_properties names them: of the first GPU in the table with this compute capability, or of
    the one that comes before it."""
    major, minor = target[0], target[1]
    of_capability: dict[tuple[int, int], hardware.GpuModel] = {}
    for model in hardware.GPUS.values():
        of_capability.setdefault(_capability(model), model)
    older = [one for one in of_capability if one <= (major, minor)]
    model = of_capability[max(older, default=min(of_capability))]
    return SimpleNamespace(
        name=f"NVIDIA {model.name}",
        major=major,
        minor=minor,
        multi_processor_count=model.sm_count,
        total_memory=80 * 2**30,
        warp_size=32,
        max_threads_per_multi_processor=32 * model.limits.warps,
        regs_per_multiprocessor=model.limits.registers,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=model.limits.block_shared_bytes,
        shared_memory_per_multiprocessor=model.limits.shared_bytes,
        L2_cache_size=int(model.l2_bytes),
    )


def _capability(model: hardware.GpuModel) -> tuple[int, int]:
    digits = model.limits.target.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


# ----------------------------------------------------------------------------------------------------------------------
# Triton's driver
# ----------------------------------------------------------------------------------------------------------------------


class _Utils:
    """What Triton asks of CUDA's driver."""

    def __init__(self, properties: SimpleNamespace) -> None:
        self._properties = {
            "max_shared_mem": properties.shared_memory_per_block_optin,
            "max_num_regs": properties.regs_per_multiprocessor,
            "multiprocessor_count": properties.multi_processor_count,
            "warpSize": properties.warp_size,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_500_000,
            "mem_bus_width": 5120,
        }

    def get_device_properties(self, _: Any = 0) -> dict[str, int]:
        return self._properties

    def load_binary(self, *_: Any) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills, the most threads."""
        return 0, 0, REGISTERS, 0, THREADS

    def unload_module(self, _: Any) -> None:
        pass


class _Driver:
    """In place of triton.runtime.driver.active."""

    def __init__(self, properties: SimpleNamespace) -> None:
        from triton.backends.compiler import GPUTarget

        self.utils = _Utils(properties)
        self._capability = properties.major, properties.minor
        self._target = GPUTarget("cuda", 10 * properties.major + properties.minor, properties.warp_size)

    def launcher_cls(self, *_: Any) -> Callable[..., None]:
        return lambda *_: None

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _: int) -> None:
        pass

    def get_current_stream(self, _: Any = None) -> int:
        return 0

    def get_device_capability(self, _: Any = None) -> tuple[int, int]:
        return self._capability

    def get_active_torch_device(self) -> torch.device:
        return CUDA

    def get_device_interface(self) -> Any:
        return torch.cuda
