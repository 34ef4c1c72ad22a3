"""What a kernel itself says of an error, where torch puts other words before it.

Through torch's stable ABI an exception that a kernel throws inside of `parallel_for`, or that an operator of torch
throws in a kernel's call, arrives as "… API call failed at …"; torch keeps its own text for whoever asks.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from kernelgate.bench.core.errors import first_line

_STABLE_CALL = " API call failed at "
_LIBRARY = "libtorch_cpu.so"
_TEXT = "torch_exception_get_what_without_backtrace"


def told(error: Exception) -> Exception:
    """The error, or one that says what was thrown. To be asked in the thread, and soon after."""
    if isinstance(error, UnicodeDecodeError):  # the text itself could not be read
        return RuntimeError(error.object.decode(errors="replace"))
    text = _kept_by_torch() if _STABLE_CALL in first_line(error) else ""
    return RuntimeError(text) if text else error


def _kept_by_torch() -> str:
    """The text of the error that torch turned into a number last in this thread; empty for a torch that keeps none."""
    import torch

    try:
        text = getattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / _LIBRARY)), _TEXT)
    except (OSError, AttributeError):
        return ""
    text.restype = ctypes.c_char_p
    said: bytes = text() or b""
    return said.decode(errors="replace").strip()
