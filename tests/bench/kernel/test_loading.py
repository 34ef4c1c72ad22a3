"""What a kernel throws reaches whoever reads, whatever torch puts before it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

from kernelgate.bench.kernel import loading

STABLE = "torch_call_dispatcher(…) API call failed at /include/torch/csrc/stable/ops.h, line 316"


def failing_call() -> None:
    """A call of an operator that does not exist, as a library of the stable ABI makes it."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    call = library.torch_call_dispatcher
    call.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64)
    assert call(b"aten::never_heard_of", b"", None, 0) != 0


def test_what_was_thrown_beyond_the_stable_abi_is_said() -> None:
    failing_call()
    error = ValueError("N must be a multiple of 8")
    assert loading.error_message(error) is error, "it is of another kind"
    assert "aten::never_heard_of" in str(loading.error_message(RuntimeError(STABLE)))


def test_a_torch_that_keeps_no_text_leaves_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_TEXT", "no_such_function")
    assert str(loading.error_message(RuntimeError(STABLE))) == STABLE


def test_a_text_that_is_no_utf8_is_said_all_the_same() -> None:
    with pytest.raises(UnicodeDecodeError) as raised:
        b"N is \xff\nand more".decode()
    assert str(loading.error_message(raised.value)).startswith("N is �")
