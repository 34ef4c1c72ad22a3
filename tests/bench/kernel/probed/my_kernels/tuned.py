import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": 128}, num_warps=2),
    triton.Config({"BLOCK": 256}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK": 4096}, num_warps=8),
]


def smaller(configs, named_args, **_):
    return [config for config in configs if config.kwargs["BLOCK"] <= named_args["n"]]


@triton.autotune(configs=CONFIGS, key=["n"], prune_configs_by={"early_config_prune": smaller})
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.static_assert(BLOCK != 256, "this block is not possible")
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < (offsets + 1 if EVEN else n)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=inside), mask=inside)


def scale(x, out):
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())


@triton.autotune(configs=CONFIGS[:1], key=["n"])
@triton.jit
def single_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK)))


def single(x, out):
    single_kernel[(1,)](x, out, x.numel())
