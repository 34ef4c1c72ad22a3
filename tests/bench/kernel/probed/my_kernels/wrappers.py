"""What wrappers ask before they launch."""

import functools

import torch
import triton
import triton.language as tl

from .plain import launch, scale_kernel

DEVICE = triton.runtime.driver.active.get_active_torch_device()
CAPABILITY = torch.cuda.get_device_capability()
LIMITS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)


@functools.lru_cache
def multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


def on_a_gpu(x, out):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert x.is_cuda
    assert not x.is_cpu
    assert x.device == out.device == DEVICE == torch.device("cuda", torch.cuda.current_device())
    assert x.device.type == "cuda"
    with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.current_stream()):
        launch(x, out, 128)
    assert torch._C._cuda_getCurrentRawStream(x.device.index) == 0
    torch.cuda.synchronize()


def own_tensors(x, out):
    table = torch.arange(4, device="cuda").to(x.device, torch.int32)
    workspace = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy = torch.empty_like(x, device="cuda:0").copy_(x.cuda())
    x.record_stream(torch.cuda.current_stream())
    assert workspace.is_cuda
    assert table.device == torch.zeros(1, device=DEVICE).device
    product = x.view(64, -1) @ torch.randn(x.numel() // 64, 2**20, dtype=x.dtype, device=DEVICE)
    assert product.shape == (64, 2**20)
    assert torch.mm(copy.view(64, -1), x.view(64, -1)).device == DEVICE
    counts = torch.histc(table, bins=table.max(), min=0, max=3)  # which the CPU has for no integers
    assert counts.is_cuda
    launch(copy, out, 16 * len(counts) + 16)


def by_capability(x, out):
    """A variant for each GPU: sm_80 has no fp8, and the number of multiprocessors decides the block."""
    block = triton.next_power_of_2(multiprocessors(x.device))
    assert LIMITS["max_shared_mem"] > 48 * 1024
    assert LIMITS["multiprocessor_count"] == multiprocessors(0)
    if CAPABILITY >= (9, 0):
        hopper_kernel[(1,)](x, out)
    launch(x, out, block)


@triton.jit
def hopper_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


def asks_the_kernel(x, out):
    """As Triton's tutorial on softmax does: the kernel's resources decide how many programs there are."""
    kernel = scale_kernel.warmup(x, out, x.numel(), 2.0, BLOCK=32, grid=(1,))
    kernel._init_handles()
    programs = LIMITS["max_num_regs"] // (kernel.n_regs * 128)
    assert kernel.metadata.shared <= LIMITS["max_shared_mem"]
    kernel[(programs, 1, 1)](x, out, x.numel(), 2.0, 32)


def measures_itself(x, out):
    """As a library that tunes its kernels without triton.autotune does."""
    measure = triton.runtime.driver.active.get_benchmarker()
    times = {
        block: measure(lambda block=block: scale_kernel[(1,)](x, out, x.numel(), 2.0, block), quantiles=(0.5, 0.2))[0]
        for block in (32, 64)
    }
    scale_kernel[(1,)](x, out, x.numel(), 2.0, min(times, key=times.get))
