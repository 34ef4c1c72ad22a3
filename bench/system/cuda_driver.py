"""The CUDA driver: device memory that processes share, and kernels from PTX. Used on torch's context, beside torch.

Nothing is opened before the first use. From then on the driver's functions are held here, so that code which replaces
them elsewhere changes nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from kernelgate.bench.core.errors import KernelgateError

LIBRARY = "libcuda.so.1"
IPC_HANDLE_BYTES = 64
SHARED_BLOCK = 2 << 20
"""IPC shares device memory in blocks of this size."""
_LAZY_PEER_ACCESS = 1

_as_tensor = torch.as_tensor


class CudaDriverError(KernelgateError):
    """A function of the CUDA driver failed, or there is no driver."""


class _IpcHandle(ctypes.Structure):
    """Passed by value."""

    _fields_ = [("reserved", ctypes.c_char * IPC_HANDLE_BYTES)]


class _DeviceBytes:
    """What torch makes a tensor of without copying."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {"version": 2, "typestr": "|u1", "shape": (size,), "data": (pointer, False)}


class Module:
    """Kernels of a PTX text, compiled by the driver for the current device. It stays loaded while the process lives."""

    def __init__(self, ptx: str) -> None:
        self._handle = ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self._handle), ptx.encode() + b"\0")

    def function(self, name: str) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        _call("cuModuleGetFunction", ctypes.byref(found), self._handle, name.encode())
        return found


def launch(
    function: ctypes.c_void_p,
    blocks: tuple[int, int],
    threads: int,
    stream: int,
    arguments: Sequence[ctypes._SimpleCData[Any]],
) -> None:
    """Queues a kernel on `stream`, torch's `cuda_stream`. Each argument has the ctypes type of the kernel's parameter.

    `blocks` are those in x and y. The driver copies the arguments before this returns.
    """
    addresses = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    _call("cuLaunchKernel", function, *blocks, 1, threads, 1, 1, 0, stream, addresses, None)


def allocate(size: int) -> int:
    """The address of at least `size` new bytes: whole blocks of IPC, so that sharing them shares nothing else."""
    pointer = ctypes.c_uint64()
    _call("cuMemAlloc_v2", ctypes.byref(pointer), -(-size // SHARED_BLOCK) * SHARED_BLOCK)
    return pointer.value


def free(pointer: int) -> None:
    """Gives back what `allocate` gave; where other processes have it open, they must have closed it before."""
    _call("cuMemFree_v2", pointer)


def ipc_handle(pointer: int) -> bytes:
    """What another process opens the memory with, of an address that `allocate` gave."""
    handle = _IpcHandle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
    return bytes(handle)


def open_ipc(handle: bytes) -> int:
    """The address, in this process, of another one's memory. The process that allocated it cannot open it."""
    pointer = ctypes.c_uint64()
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), _IpcHandle.from_buffer_copy(handle), _LAZY_PEER_ACCESS)
    return pointer.value


def close_ipc(pointer: int) -> None:
    _call("cuIpcCloseMemHandle", pointer)


def as_tensor(pointer: int, size: int) -> torch.Tensor:
    """`size` bytes of device memory as uint8, not copied. The memory must not be freed before the tensor's last use."""
    return _as_tensor(_DeviceBytes(pointer, size), device="cuda")


# ---- The library and the context -------------------------------------------------------------------------------------

_UNSIGNED, _ADDRESS, _POINTER = ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p
_TYPES: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (_UNSIGNED,),
    "cuGetErrorName": (ctypes.c_int, _POINTER),
    "cuGetErrorString": (ctypes.c_int, _POINTER),
    "cuCtxGetCurrent": (_POINTER,),
    "cuCtxSetCurrent": (_POINTER,),
    "cuDeviceGet": (_POINTER, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (_POINTER, ctypes.c_int),
    "cuMemAlloc_v2": (_POINTER, ctypes.c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuIpcGetMemHandle": (_POINTER, _ADDRESS),
    "cuIpcOpenMemHandle_v2": (_POINTER, _IpcHandle, _UNSIGNED),
    "cuIpcCloseMemHandle": (_ADDRESS,),
    "cuModuleLoadData": (_POINTER, ctypes.c_char_p),
    "cuModuleGetFunction": (_POINTER, _POINTER, ctypes.c_char_p),
    "cuLaunchKernel": (_POINTER, *[_UNSIGNED] * 7, _POINTER, _POINTER, _POINTER),
}
"""Of the driver's functions, the parameters; each returns a CUresult."""
_thread = threading.local()


@cache
def _functions() -> Mapping[str, Callable[..., int]]:
    torch.cuda.init()  # type: ignore[no-untyped-call]
    try:
        library = ctypes.CDLL(LIBRARY)
        return {name: ctypes.CFUNCTYPE(ctypes.c_int, *types)((name, library)) for name, types in _TYPES.items()}
    except OSError as error:
        raise CudaDriverError(f"the CUDA driver cannot be loaded: {error}") from None
    except AttributeError as error:
        raise CudaDriverError(f"the CUDA driver is too old: {error}") from None


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver, with a context current in this thread. Raises CudaDriverError where it fails."""
    if not hasattr(_thread, "has_context"):
        _take_context()
        _thread.has_context = True
    _checked(name, *arguments)


def _take_context() -> None:
    """Where this thread has no context, it gets the one that torch has on its current device."""
    _checked("cuInit", 0)
    context, device = ctypes.c_void_p(), ctypes.c_int()
    _checked("cuCtxGetCurrent", ctypes.byref(context))
    if not context.value:
        _checked("cuDeviceGet", ctypes.byref(device), torch.cuda.current_device())
        _checked("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        _checked("cuCtxSetCurrent", context)


def _checked(name: str, *arguments: Any) -> None:
    functions = _functions()
    status = functions[name](*arguments)
    if status == 0:
        return
    # Such as "CUDA_ERROR_OUT_OF_MEMORY: out of memory"; a number that the driver does not know stays one.
    texts = [ctypes.c_char_p(), ctypes.c_char_p()]
    for describe, text in zip(("cuGetErrorName", "cuGetErrorString"), texts, strict=True):
        functions[describe](status, ctypes.byref(text))
    words = ": ".join(text.value.decode() for text in texts if text.value)
    raise CudaDriverError(f"{name} failed: {words or f'error {status}'}")
