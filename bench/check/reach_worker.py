"""Calls cases of a card under torch's profiler, and says which kernels each launches. Started by check/reach.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from kernelgate.bench.check.reach import LaunchedKernels, ReachRequest
from kernelgate.bench.kernel import calls, loading, triton_runtime, watched_call
from kernelgate.bench.system.worker import Leader, Ready


def launches(call: Callable[[], Any]) -> tuple[str, ...]:
    """The names of what a call runs on the GPU."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    events = profiler.events() or ()
    return tuple(dict.fromkeys(event.name for event in events if event.device_type.name == "CUDA"))


def launch_each(request: ReachRequest, leader: Leader) -> None:
    """Calls each case, in order."""
    with triton_runtime.shared([request.library.folder]):
        judge = loading.load(request.card)
        bound = calls.bind(request.library.read(), judge, "head")
        launches(lambda: None)  # the first time, the profiler takes seconds
        leader.send(Ready())
        for axes in request.cases:
            try:
                launched = LaunchedKernels(kernels=launches(watched_call.prepared_case(judge, bound, axes, "cuda")))
            except Exception:  # of the card's code, or of the kernel, which may refuse the case
                launched = LaunchedKernels()
                torch.cuda.synchronize()  # where the kernel has ended the context, that ends this process
            leader.send(launched)
