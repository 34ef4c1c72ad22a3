"""How much GPU memory one call takes beside its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch


def peak_bytes(call: Callable[[], object], handed: Iterable[torch.Tensor]) -> int:
    """The outputs that a call is handed, and the most that it holds of torch's allocator at once.

    What a kernel takes from CUDA by itself, such as a workspace of its own that it keeps, is not seen.
    """
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return sum(one.nbytes for one in handed) + torch.cuda.max_memory_allocated() - before
