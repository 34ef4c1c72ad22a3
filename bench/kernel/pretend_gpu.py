"""A GPU that is not there: what Triton, torch and a kernel's wrapper are told of it while kernels are compiled.

A wrapper picks its launch by what it asks: is this tensor on a GPU, of what compute capability, with how many
multiprocessors? Here tensors are the CPU's and say that they are cuda:0; nothing is launched and nothing takes time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from kernelgate.bench.build import archs
from kernelgate.bench.build.archs import Target
from kernelgate.bench.core import hardware
from kernelgate.bench.core.dtypes import known
from kernelgate.bench.kernel import loading
from kernelgate.bench.kernel.operands import TORCH_DTYPES, Draw

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
LOADED = 0, 0, 32, 0, 1024
"""A loaded kernel: its module, function, registers, spills, and the most threads of a block."""
_RUN_THE_KERNEL = frozenset({"CUDA", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"})
"""Dispatch keys under which an operator's own code is registered."""


def pretend(target: Target, alias: str) -> None:
    """From now on this process sees one GPU of the target's compute capability. `alias`: what the package that is about
    to be imported is called in sys.modules."""
    properties = _properties(target)
    _replace_torch_cuda(properties)
    _answer(torch.Tensor, {"record_stream": None})
    torch.version.cuda = torch.version.cuda or "13.0"
    driver.set_active(_triton_driver(properties))
    claims = ClaimsCuda()
    torch.library.Library.impl = _on_the_cpu(claims, alias)  # type: ignore[method-assign]
    claims.__enter__()  # type: ignore[no-untyped-call]


class ClaimsCuda(TorchFunctionMode):
    """While it is entered, every tensor says that it is on cuda:0, and what is wanted there is made on the CPU."""

    _answers: Mapping[Any, Any] = {
        torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
        torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
        torch.Tensor.device.__get__: CUDA,
        torch.Tensor.get_device: 0,
    }
    _products = frozenset(
        {
            *(torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.einsum, torch.nn.functional.linear),
            *(torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.mm, torch.Tensor.bmm),
            *(torch.conv1d, torch.conv2d, torch.conv3d),
        }
    )
    """What takes a GPU a moment and a CPU minutes: answered with zeros of the right shape and dtype."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in self._answers:
            return self._answers[func]
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        named = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **named)
        if named.get("device") is not None:
            named["device"] = CPU
        if "pin_memory" in named:
            named["pin_memory"] = False
        if func not in self._products:
            return func(*(CPU if _is_cuda(value) else value for value in args), **named)
        if named.get("out") is not None:
            return named["out"]
        args, named = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), (args, named))
        return torch.zeros_like(func(*args, **named), device=CPU)


def _is_cuda(value: Any) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith("cuda")


def _on_the_cpu(claims: ClaimsCuda, alias: str) -> Callable[..., None]:
    """Library.impl for operators that the package defines: what is meant for CUDA is called for the CPU's tensors.

    An operator's code runs where torch has left every mode, and is put back into this one.
    """
    register: Callable[..., None] = torch.library.Library.impl
    for_cuda: set[tuple[str, str]] = set()

    def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        key = dispatch_key or library.dispatch_key
        operator = (library.ns, str(op_name))
        if key not in _RUN_THE_KERNEL or not loading.called_by(alias):
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


class BlankDraw(Draw):
    """Zeros in place of real numbers: compiling needs no values, and untouched zeros cost neither time nor memory."""

    def __call__(self, *shape: int, dtype: str | None = None) -> torch.Tensor:
        wanted = TORCH_DTYPES[known(dtype)] if dtype else self.dtype
        return _untouched(shape, wanted) if wanted.is_floating_point else super().__call__(*shape, dtype=dtype)

    def normal(self, *shape: int) -> torch.Tensor:
        return _untouched(shape, torch.float32)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:  # noqa: ARG002 - as Draw has them
        return _untouched(shape, torch.float32)


def _untouched(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that the system makes when they are read, as torch.zeros does not."""
    return torch.from_numpy(numpy.zeros(prod(shape) * dtype.itemsize, numpy.uint8)).view(dtype).view(shape)


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


def _replace_torch_cuda(properties: SimpleNamespace) -> None:
    nothing = ("init", "_lazy_init", "set_device", "synchronize", "empty_cache", "set_stream", "manual_seed")
    answers: dict[str, Any] = {
        **dict.fromkeys(nothing),
        **dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported"), True),
        **dict.fromkeys(("current_stream", "default_stream"), _Idle()),
        **dict.fromkeys(("device", "device_of", "stream"), nullcontext()),  # `with torch.cuda.device(x):`
        "device_count": 1,
        "current_device": 0,
        "is_current_stream_capturing": False,
        "get_device_name": properties.name,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_properties": properties,
    }
    _answer(torch.cuda, answers)
    for name in ("Stream", "ExternalStream", "Event"):
        setattr(torch.cuda, name, _Idle)


def _answer(asked: Any, answers: Mapping[str, Any]) -> Any:
    """Gives what is asked its answers: functions of their own, for torch.compile's tables hold no function twice."""
    for name, answer in answers.items():
        setattr(asked, name, lambda *_, answer=answer, **__: answer)
    return asked


def _properties(target: Target) -> SimpleNamespace:
    """As torch.cuda.get_device_properties names them: of the first GPU in the table with this compute capability, or of
    the one that comes before it."""
    major, minor = target[0], target[1]
    models = {archs.target(one.limits.target.removeprefix("sm_"))[:2]: one for one in (*hardware.GPUS.values(),)[::-1]}
    model = models[max((one for one in models if one <= (major, minor)), default=min(models))]
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


def _triton_driver(properties: SimpleNamespace) -> Any:
    """In place of triton.runtime.driver.active."""
    capability = properties.major, properties.minor
    asked = {
        "max_shared_mem": properties.shared_memory_per_block_optin,
        "max_num_regs": properties.regs_per_multiprocessor,
        "multiprocessor_count": properties.multi_processor_count,
        "warpSize": properties.warp_size,
        "sm_clock_rate": 1_500_000,
        "mem_clock_rate": 2_500_000,
        "mem_bus_width": 5120,
    }
    utils = {"get_device_properties": asked, "load_binary": LOADED, "unload_module": None}
    answers = {
        "launcher_cls": lambda *_: None,
        "get_current_target": GPUTarget("cuda", 10 * capability[0] + capability[1], properties.warp_size),
        "get_current_device": 0,
        "set_current_device": None,
        "get_current_stream": 0,
        "get_device_capability": capability,
        "get_active_torch_device": CUDA,
        "get_device_interface": torch.cuda,
    }
    return _answer(SimpleNamespace(utils=_answer(SimpleNamespace(), utils)), answers)
