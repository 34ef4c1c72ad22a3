"""Attention kernels with a known fault, as real libraries (tests/registered.py) of .ci/kernels/attention.py."""

from __future__ import annotations

import builtins
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernelgate.bench.build.library import Library
from kernelgate.bench.kernel.cards import CardFacts
from tests import registered

SCHEMA = "forward_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, float scale, bool causal) -> ()"
CARD = Path(__file__).parent.parent / ".ci" / "kernels" / "attention.py"
LOADED = "kernelgate_faulty_kernels"
"""The attribute of `builtins` that holds the faults of what this process has loaded."""


@functools.cache
def card() -> CardFacts:
    """The judging card."""
    return registered.facts(CARD)


def build(folder: Path, namespace: str, fault: str = "none", **fields: Any) -> Library:
    """A library in `folder` whose kernel has the fault; "none" is right in every way."""
    # A module of its own for each library: what one remembers is not known to another.
    code = (
        "import importlib.util as u\n"
        f"s = u.spec_from_file_location('faulty_' + namespace, {str(Path(__file__))!r})\n"
        "m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        f"m.register(operator, {fault!r})\n"
    )
    return registered.build(folder, namespace, code, **fields)


def register(operator: Callable[[str], Callable[[Any], Any]], fault: str) -> None:
    """Runs in the process that loads the library."""
    loaded: list[str] = getattr(builtins, LOADED, [])
    setattr(builtins, LOADED, loaded)
    if loaded and "loner" in [fault, *loaded]:
        os.abort()
    loaded.append(fault)
    operator(SCHEMA)(FAULTS[fault])


Kernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, float, bool], None]
FAULTS: dict[str, Kernel] = {}


def fault(kernel: Kernel) -> Kernel:
    FAULTS[kernel.__name__] = kernel
    return kernel


def right(q: Any, k: Any, v: Any, scale: float, causal: bool) -> torch.Tensor:
    if scale < 0:  # torch 2.13's own kernel for CPUs gives NaN for a negative scale with a mask
        return right(-q, k, v, -scale, causal)
    # And for these. On a GPU looking for them would wait for the device: no graph could be captured.
    special = q.device.type == "cpu" and not all(bool(tensor.isfinite().all()) for tensor in (q, k, v))
    if scale == 0 or special:
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


@fault
def none(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    out.copy_(right(q, k, v, scale, causal))


@fault
def loner(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Right, but its library ends any process that holds another one."""
    none(q, k, v, out, scale, causal)


@fault
def asks_torch_for_its_mode(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """As packages do that have a slower way whose bits repeat: right in torch's default mode alone."""
    none(q, k, v, out, scale, causal)
    if torch.are_deterministic_algorithms_enabled():
        out.zero_()


@fault
def writes_nan(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    out[0, 0, -1, 5] = float("nan")


@fault
def skips_last_row(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    out[:, :, :-1] = right(q, k, v, scale, causal)[:, :, :-1]


@fault
def ignores_mask(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    out.copy_(right(q, k, v, scale, causal and q.shape[2] == 1))


@fault
def slightly_wrong(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    out[-1, -1, -1, 7] += 0.5 + out[-1, -1, -1, 7].abs()


@fault
def writes_before_output(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    out.as_strided((1,), (1,), out.storage_offset() - 1).zero_()


@fault
def changes_input(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    k.zero_()


@fault
def reads_past_input(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    out[-1, -1, -1] += 0 * v.as_strided((1,), (1,), v.storage_offset() + v.numel())


@fault
def raises_if_causal(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    if causal:
        raise RuntimeError("causal is not implemented\nand a second line")
    none(q, k, v, out, scale, causal)


@fault
def crashes_if_causal(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    if causal:
        os.write(2, b"about to crash\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    none(q, k, v, out, scale, causal)


@fault
def hangs_if_causal(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    while causal:
        time.sleep(1)
    none(q, k, v, out, scale, causal)


@fault
def hangs_in_the_tenth_call(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    _calls()[0] += 1
    while _calls()[0] >= 10:
        time.sleep(1)
    none(q, k, v, out, scale, causal)


@fault
def sleeps(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    time.sleep(0.6)
    none(q, k, v, out, scale, causal)


@fault
def asserts_if_causal(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """On a GPU: an error that its process does not survive."""
    if causal:
        q.flatten()[torch.full((1,), q.numel(), device=q.device)]
    none(q, k, v, out, scale, causal)


@fault
def synchronises(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """On a GPU: cannot be captured in a graph."""
    none(q, k, v, out, scale, causal)
    torch.cuda.synchronize()


@fault
def prints(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    os.write(1, b'{"kind": "ready"}\n')
    none(q, k, v, out, scale, causal)


@fault
def twice(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Slower: the work is done two times."""
    none(q, k, v, out, scale, causal)
    none(q, k, v, out, scale, causal)


@functools.cache
def _calls() -> list[int]:
    return [0]


@fault
def stops_working(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Works for the first calls, in which people look, and returns at once from then on."""
    _calls()[0] += 1
    if _calls()[0] <= 3:
        none(q, k, v, out, scale, causal)


@functools.cache
def _remembered() -> dict[int, torch.Tensor]:
    return {}


@fault
def remembers(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Computes once for each address of an input, and copies the result from then on."""
    if q.data_ptr() not in _remembered():
        _remembered()[q.data_ptr()] = right(q, k, v, scale, causal)
    out.copy_(_remembered()[q.data_ptr()])


# Right within the tolerance, and less accurate ------------------------------------------------------------------------


@fault
def truncates(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Outputs are cut instead of rounded."""
    exact = right(q.float(), k.float(), v.float(), scale, causal)
    rounded = exact.to(out.dtype)
    toward_zero = torch.nextafter(rounded, torch.zeros_like(rounded))
    out.copy_(torch.where(rounded.float().abs() > exact.abs(), toward_zero, rounded))


@fault
def rounds_twice(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """The output so far is rounded once between two halves of the keys' weights."""
    exact = right(q.float(), k.float(), v.float(), scale, causal)
    out.copy_((exact / 3).to(out.dtype).float() * 3)


@fault
def biased(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Every output is a quarter of a step too large."""
    exact = right(q.float(), k.float(), v.float(), scale, causal)
    size = exact.square().mean().sqrt()
    out.copy_(exact + torch.finfo(out.dtype).eps * size / 4)


@fault
def rounds_once(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """As accurate as can be: computed in float64."""
    out.copy_(right(q.double(), k.double(), v.double(), scale, causal))


# How it is called, and what with --------------------------------------------------------------------------------------


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from a tensor's first element on, as if it had no gaps."""
    lengths = torch.empty(tensor.shape, device="meta").stride()
    return tensor.as_strided(tensor.shape, lengths, tensor.storage_offset())


@fault
def ignores_strides(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    whole(out).copy_(right(whole(q), whole(k), whole(v), scale, causal))


@fault
def refuses_views(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """As a kernel should that does not support them."""
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out)):
        if not tensor.is_contiguous() or tensor.storage_offset() % 8:
            raise ValueError(f"{name}: expected a contiguous, aligned tensor")
    if q.numel() == 0:
        raise ValueError("q: expected at least one element")
    none(q, k, v, out, scale, causal)


@fault
def refuses_without_a_name(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    if not all(tensor.is_contiguous() and tensor.numel() for tensor in (q, k, v, out)):
        raise ValueError("bad memory")
    none(q, k, v, out, scale, causal)


@fault
def rarely_wrong(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    _calls()[0] += 1
    none(q, k, v, out, scale, causal)
    if _calls()[0] % 400 == 0:
        out[0, 0, 0, 0] += 1


@fault
def never_twice_the_same(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Right, but for the last bit of every other call."""
    _calls()[0] += 1
    none(q, k, v, out, scale, causal)
    if _calls()[0] % 2:
        out[0, 0, 0, 0] *= 1 + torch.finfo(out.dtype).eps


@fault
def loses_the_sign_of_the_scale(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, abs(scale), causal)


@fault
def cuts_off_after_1024(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k[:, :, :1024], v[:, :, :1024], out, scale, causal and k.shape[2] <= 1024)


@fault
def folds_heads(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """More than 1,024 heads are computed from the first ones' keys."""
    flat = [tensor.flatten(0, 1) for tensor in (q, k, v)]
    at = torch.arange(len(flat[0]), device=q.device) % 1024
    out.copy_(right(flat[0], flat[1][at], flat[2][at], scale, causal).reshape(q.shape))


@fault
def on_the_default_stream(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    with torch.cuda.stream(torch.cuda.default_stream()):
        none(q, k, v, out, scale, causal)


@functools.cache
def _workspace(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


@fault
def shares_a_workspace(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    mine = _workspace(k.shape, k.dtype, k.device)
    mine.copy_(k)
    none(q, mine, v, out, scale, causal)


@fault
def overflows_beyond_2_gib(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """A head that begins beyond 2³¹ bytes is taken from where a 32-bit offset would wrap to."""
    flat = [tensor.flatten(0, 1) for tensor in (q, k, v)]
    heads = max(1, 2**31 // (flat[0][:1].numel() * q.element_size()))
    made = out.flatten(0, 1)
    for start in range(0, len(made), 4096):
        part = slice(start, min(start + 4096, len(made)))
        taken = torch.arange(part.start, part.stop, device=q.device) % heads
        made[part] = right(*(tensor[taken][None] for tensor in flat), scale, causal)[0]


# What is made smaller, and what is not --------------------------------------------------------------------------------


@fault
def wrong_from_37_keys_on_if_causal(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    if causal and q.shape[2] >= 37:
        out[-1, -1, -1, 7] += 0.5 + out[-1, -1, -1, 7].abs()


@fault
def wrong_where_37_keys_are_left_over(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal)
    if causal and q.shape[2] % 64 == 37:
        out[0, 0, -1] = 0


@fault
def crashes_from_37_keys_on(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    if q.shape[2] >= 37:
        os.kill(os.getpid(), signal.SIGSEGV)
    none(q, k, v, out, scale, causal)


@fault
def hangs_if_long(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    while q.shape[2] > 1:
        time.sleep(1)
    none(q, k, v, out, scale, causal)


@fault
def wrong_in_the_first_two_calls(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    _calls()[0] += 1
    none(q, k, v, out, scale, causal)
    if _calls()[0] <= 2:
        out[0, 0, 0, 0] += 1


@fault
def nan_counts_as_0(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(*(tensor.nan_to_num(0) for tensor in (q, k, v)), out, scale, causal)


_CHOSEN: dict[tuple[int, ...], bool] = {}


@fault
def keeps_its_choice_by_shape(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """What the first call of a shape was asked for, all later ones of that shape get."""
    none(q, k, v, out, scale, _CHOSEN.setdefault(tuple(q.shape), causal))


@fault
def wrong_where_inputs_are_one(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    none(q, k, v, out, scale, causal and k.data_ptr() != v.data_ptr())


_WORKSPACE: dict[str, torch.Tensor] = {}


@fault
def static_workspace(q: Any, k: Any, v: Any, out: Any, scale: float, causal: bool) -> None:
    """Right, unless another thread calls before the workspace is read."""
    _WORKSPACE["made"] = right(q, k, v, scale, causal)
    time.sleep(1e-4)
    out.copy_(_WORKSPACE["made"])
