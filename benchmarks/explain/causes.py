"""All planted causes: what base and head are made of, and what the explanation must begin with."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fuzzing.bug import Bug, CodePath, Edit, KernelName

ATTENTION, TILE, PTX, SWIZZLE = (
    f"csrc/attention/{name}" for name in ("mma_sync/kernel.cuh", "mma_sync/tile.h", "mma_sync/ptx.cuh", "swizzle.cuh")
)
WGMMA = "csrc/attention/wgmma/kernel.cuh"
RMSNORM = "csrc/rmsnorm_kernel.cu"
GEMM, GEMM_PTX = "csrc/int8_gemm/gemm.cu", "csrc/int8_gemm/ptx.cuh"
SWIGLU = "my_kernels/swiglu.py"

TARGET = "s512_b32_h8_d64_fp16"
NORMS = "m4096_n4096_fp16"


@dataclass(frozen=True)
class Cause:
    """One difference between two builds of a kernel whose effect on the time is known by what it is."""

    name: str
    base: Bug
    head: Bug
    case: str
    named: tuple[str, ...]
    """The explanation is right if what it begins with, up to the first semicolon, has one of these words."""


def _build(kernel: KernelName, path: CodePath, name: str, *edits: Edit) -> Bug:
    return Bug(name, kernel, path, "speed", "only its speed differs", edits=edits, equivalent="only its speed differs")


AS_IT_IS = {
    "mma_sync": _build("attention", "mma_sync", "as-it-is"),
    "wgmma": _build("attention", "wgmma", "as-it-is"),
    "rmsnorm": _build("rmsnorm", "cuda", "as-it-is"),
    "int8_gemm": _build("int8_gemm", "cuda", "as-it-is"),
    "swiglu": _build("swiglu", "triton", "as-it-is"),
}

_ONE = "fminf(1.0f, scale_log2 * 1e30f)"  # 1, which the compiler does not know
_CORRECTION = "      const float correction = exp2_approx(before - maximum);\n"


def _chain(length: str, warps: str = "true") -> Edit:
    """Multiply-adds of which each waits for the one before, once in each step and row of the attention kernel."""
    return Edit(
        ATTENTION,
        _CORRECTION,
        "      float correction = exp2_approx(before - maximum);\n"
        f"      if ({warps}) {{\n"
        "#pragma unroll 1\n"
        f"        for (int i = 0; i < {length}; ++i) {{\n"
        f"          correction = fmaf(correction, {_ONE}, 0.0f);\n"
        "        }\n"
        "      }\n",
    )


_DEPENDENT = Edit(
    ATTENTION,
    _CORRECTION,
    "      float correction = exp2_approx(before - maximum);\n"
    "#pragma unroll\n"
    f"      for (int i = 0; i < 16; ++i) {{\n"
    f"        correction = fmaf(correction, {_ONE}, 0.0f);\n"
    "      }\n",
)
_INDEPENDENT = Edit(
    ATTENTION,
    "          x = exp2_approx(fmaf(x, scale_log2, -maximum));\n",
    "          x = exp2_approx(fmaf(x, scale_log2, -maximum));\n"
    f"          x = fmaf(x, {_ONE}, 0.0f);\n"
    f"          x = fmaf(x, {_ONE}, 0.0f);\n",
)
_SHARED = (
    Edit(ATTENTION, "if constexpr (Tile::kSharedBytes > kSharedWithoutOptIn) {", "{"),
    Edit(
        ATTENTION,
        "cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes)",
        "cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes + (96 << 10))",
    ),
    Edit(ATTENTION, "dynamicSmemBytes = Tile::kSharedBytes;", "dynamicSmemBytes = Tile::kSharedBytes + (96 << 10);"),
    Edit(ATTENTION, "  constexpr int kSharedWithoutOptIn = 48 * 1024;\n", ""),
)


def _sm90(blocks: int, tile: str = "DefaultTile") -> Edit:
    """Another tile of the attention kernel on sm_90, and so many blocks of it on a multiprocessor."""
    bound = "kSharedTotal = 228 * 1024;\n  static constexpr int kBlocksPerSm = {};\n  using Tile = {};"
    return Edit(TILE, bound.format(2, "DefaultTile"), bound.format(blocks, tile))


_SMALL_TILE = "MmaSyncTile<64, 64, 4, 2>"
_DIRECT_COPY = Edit(
    PTX,
    'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)'
    ' : "memory");',
    "const uint4 data = valid ? __ldcg(static_cast<const uint4*>(from)) : make_uint4(0, 0, 0, 0);\n"
    '  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(data.x), "r"(data.y), "r"(data.z),\n'
    '               "r"(data.w)\n'
    '               : "memory");',
)
_HEADS_APART = Edit(
    ATTENTION,
    "return {blockIdx.x / blocks_per_head, static_cast<int>(blockIdx.x % blocks_per_head) * Tile::kBlockM};",
    "const unsigned count = static_cast<unsigned>(heads);\n"
    "    return {blockIdx.x % count, static_cast<int>(blockIdx.x / count) * Tile::kBlockM};",
)
_FEWER_BLOCKS = Edit(
    WGMMA, "std::min(problem.tiles, multiprocessors)", "std::min(problem.tiles, multiprocessors * 3 / 4)"
)
_WGMMA_CHAIN = Edit(
    WGMMA,
    "    correction[half] = exp2_approx(rows.maximum[half] - maximum);\n",
    "    correction[half] = exp2_approx(rows.maximum[half] - maximum);\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 32; ++i) {\n"
    f"      correction[half] = fmaf(correction[half], {_ONE}, 0.0f);\n"
    "    }\n",
)
_SCATTERED = Edit(
    RMSNORM,
    "return (strip * kLoads + i) * blockDim.x + threadIdx.x; };",
    "\n    const unsigned warps = blockDim.x / kWarp;\n"
    "    return (strip * kLoads + i) * blockDim.x + threadIdx.x % kWarp * warps + threadIdx.x / kWarp;\n  };",
)
_SMALL_GRID = (
    Edit(RMSNORM, "unsigned vectors, float eps) {", "unsigned vectors, float eps, int64_t rows) {"),
    Edit(
        RMSNORM,
        "  const int64_t row = blockIdx.x;\n  x += row * vectors;\n  out += row * vectors;\n",
        "  const auto* const first_x = x;\n  auto* const first_out = out;\n"
        "  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {\n"
        "  x = first_x + row * vectors;\n  out = first_out + row * vectors;\n  __syncthreads();\n",
    ),
    Edit(RMSNORM, "      out[at] = values[i];\n    }\n  }\n", "      out[at] = values[i];\n    }\n  }\n  }\n"),
    Edit(RMSNORM, "<<<blocks, threads", "<<<std::min(blocks, 88u), threads"),
    Edit(RMSNORM, "vectors, arguments.eps);", "vectors, arguments.eps, arguments.rows);"),
)
_TWICE = Edit(
    RMSNORM,
    "  rms_norm_kernel<T, Width><<<",
    "  for (int i = 0; i < 2; ++i)\n  rms_norm_kernel<T, Width><<<",
)
_OTHER_ORDER = (
    Edit(
        GEMM,
        "  const int64_t block_row = int64_t{blockIdx.x % tiles_down} * kTile;\n"
        "  const int64_t block_column = int64_t{blockIdx.x / tiles_down} * kTile;\n",
        "  const auto tiles_across = gridDim.x / tiles_down;\n"
        "  const int64_t block_row = int64_t{blockIdx.x / tiles_across} * kTile;\n"
        "  const int64_t block_column = int64_t{blockIdx.x % tiles_across} * kTile;\n",
    ),
)
_MORE_BARRIERS = Edit(
    GEMM,
    "#pragma unroll\n      for (int m = 0; m < kWarpM / 16; ++m) {\n        mma_sync(",
    "      __syncthreads();\n#pragma unroll\n      for (int m = 0; m < kWarpM / 16; ++m) {\n        mma_sync(",
)
_WITHOUT_TENSOR_CORES = Edit(
    GEMM_PTX,
    '  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "\n'
    '      "{%0, %1, %2, %3};"\n'
    '      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])\n'
    '      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));\n',
    """\
  const int lane = threadIdx.x % 32;
  const uint32_t b[2] = {b0, b1};
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    uint32_t rows[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      rows[i] = __shfl_sync(0xFFFFFFFF, a[i], lane / 4 * 4 + part);
    }
#pragma unroll
    for (int column = 0; column < 2; ++column) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t other = __shfl_sync(0xFFFFFFFF, b[half], (lane % 4 * 2 + column) * 4 + part);
        sum[column] = __dp4a(static_cast<int>(rows[2 * half]), static_cast<int>(other), sum[column]);
        sum[2 + column] = __dp4a(static_cast<int>(rows[2 * half + 1]), static_cast<int>(other), sum[2 + column]);
      }
    }
  }
""",
)
_READ_AGAIN = Edit(
    SWIGLU,
    "    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up,",
    "    before = tl.load(out_ptr + offsets, mask=inside).to(tl.float32)\n"
    "    up = tl.where(before == 1.2676506002282294e30, 0.0, up)\n"  # 2**100: no bfloat16 is 1e30, so that went away
    "    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up,",
)


def _planted(name: str, named: tuple[str, ...], *edits: Edit, of: str = "mma_sync", case: str = TARGET) -> Cause:
    base = AS_IT_IS[of]
    return Cause(name, base, _build(base.kernel, base.path, name, *edits), case, named)


CAUSES = (
    _planted("dependent-arithmetic", ("instructions executed", "waits of fixed latency"), _DEPENDENT),
    _planted("more-instructions", ("instructions executed",), _INDEPENDENT),
    _planted("occupancy-by-shared-memory", ("occupancy ",), *_SHARED),
    Cause(
        "occupancy-by-registers",
        _build("attention", "mma_sync", "four-blocks", _sm90(4, _SMALL_TILE)),
        _build("attention", "mma_sync", "two-blocks", _sm90(2, _SMALL_TILE)),
        TARGET,
        ("occupancy ",),
    ),
    _planted("spills", ("spills, ",), _sm90(4)),
    _planted("bank-conflicts", ("bank conflicts",), Edit(SWIZZLE, "((chunk ^ (row & 7)) << 4)", "(chunk << 4)")),
    _planted("unbalanced-barrier", ("waits at barriers",), _chain("100", "threadIdx.x < 32")),
    _planted("divergence", ("warps diverge",), _chain("warp.lane * 2")),
    _planted("without-cp-async", ("asynchronous copies", "waits for L1, L2 or DRAM"), _DIRECT_COPY),
    _planted("heads-apart", ("DRAM traffic",), _HEADS_APART, case="s512_b48_h16_d64_fp16"),
    _planted("fewer-blocks", (" blocks, ",), _FEWER_BLOCKS, of="wgmma"),
    _planted(
        "dependent-arithmetic-wgmma", ("instructions executed", "waits of fixed latency"), _WGMMA_CHAIN, of="wgmma"
    ),
    _planted("uncoalesced", ("sectors moved",), _SCATTERED, of="rmsnorm", case=NORMS),
    _planted("small-grid", (" blocks, ",), *_SMALL_GRID, of="rmsnorm", case=NORMS),
    _planted("launched-twice", ("kernel launches",), _TWICE, of="rmsnorm", case=NORMS),
    _planted("other-tile-order", ("DRAM traffic",), *_OTHER_ORDER, of="int8_gemm", case="m4096_n14336_k4096_int8"),
    _planted("more-barriers", ("waits at barriers",), _MORE_BARRIERS, of="int8_gemm", case="m4096_n4096_k4096_int8"),
    _planted(
        "without-tensor-cores", ("tensor cores",), _WITHOUT_TENSOR_CORES, of="int8_gemm", case="m512_n4096_k4096_int8"
    ),
    _planted("more-dram-traffic", ("DRAM traffic",), _READ_AGAIN, of="swiglu", case="t4096_f14336_bf16"),
)
