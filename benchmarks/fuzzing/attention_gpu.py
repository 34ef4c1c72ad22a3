"""Planted bugs of the attention's two GPU paths."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

NUMERIC = "csrc/attention/numeric.cuh"
WGMMA, MMA_SYNC = (f"csrc/attention/{path}/kernel.cuh" for path in ("wgmma", "mma_sync"))

_wgmma = bugs_of("attention", "wgmma", WGMMA)
_mma_sync = bugs_of("attention", "mma_sync", MMA_SYNC)

BUGS = (
    _wgmma(
        "padding-63-unmasked", "mask", "where S mod 64 is 63 and not causal, the key past the end has a weight"
    ).swap("if (Causal || visible % 32 != 0) {", "if (Causal || (visible % 32 != 0 && seq % 64 != 63)) {"),
    _wgmma(
        "padding-16-unmasked", "mask", "where S mod 32 is 16 and not causal, 16 keys past the end have a weight"
    ).swap("if (Causal || visible % 32 != 0) {", "if (Causal || visible % 16 != 0) {"),
    _wgmma("key-33-lost", "tail", "the last key is left out where a tile has 33 of them").swap(
        "if (visible <= 32) {", "if (visible <= 33) {"
    ),
    _wgmma("causal-one-too-many", "mask", "each query sees the key after its own").swap(
        "min(row + half * 8, seq - 1)", "min(row + half * 8 + 1, seq - 1)"
    ),
    _wgmma("causal-border", "mask", "the first query of each tile but the first sees one key too many").swap(
        "min(row + half * 8, seq - 1)", "min(row + half * 8 + (half == 0 && row > 0 && row % 64 == 0), seq - 1)"
    ),
    _wgmma("store-past-end", "offset", "rows past the end of a head are stored, too").swap(
        "lane == 0 && first_row + warp * kWarpM < seq)",
        "lane == 0)",
        equivalent="TMA never writes what lies past the tensor's seq",
    ),
    _wgmma("seq-cut-1024", "size", "keys past the first 1,024 are left out").swap(
        "Causal ? min(problem.seq, work.first_query + Tile::kBlockM) : problem.seq;",
        "min(1024, Causal ? min(problem.seq, work.first_query + Tile::kBlockM) : problem.seq);",
    ),
    _wgmma("heads-folded-1024", "size", "more than 1,024 heads times batches are folded onto each other").swap(
        "return work_of<Causal>(tile, problem.heads, problem.seq, Tile::kBlockM);",
        "Work work = work_of<Causal>(tile, problem.heads, problem.seq, Tile::kBlockM);\n"
        "  work.head %= 1024;\n  return work;",
    ),
    _wgmma("tiles-65535", "size", "no more than 65,535 tiles are computed").swap(
        "std::min(problem.tiles, multiprocessors)",
        "std::min(problem.tiles = std::min(problem.tiles, 65535), multiprocessors)",
    ),
    _wgmma("value-of-another-head", "offset", "values are those of the head modulo 512").swap(
        "maps.v, step * Tile::kBlockN, work.head,", "maps.v, step * Tile::kBlockN, work.head % 512,"
    ),
    _wgmma("maps-kept", "data-dependent", "what describes the tensors is kept as long as the address of q is the same")
    .swap(
        "const TensorMaps maps = tensor_maps(arguments,",
        "static const void* last = nullptr;\n  static TensorMaps maps;\n"
        "  if (last != arguments.q) maps = tensor_maps(arguments,",
    )
    .swap("cudaLaunchConfig_t config{};", "last = arguments.q;\n  cudaLaunchConfig_t config{};"),
    _wgmma("syncwarp-missing", "barrier", "a warp's output is stored before all of its lanes have written theirs").swap(
        "__syncwarp();\n  if (lane == 0 &&",
        "if (lane == 0 &&",
        equivalent="CUDA 13.0 compiles it to the same instructions but for NOPs: stmatrix leaves the lanes together",
    ),
    _wgmma(
        "proxy-fence-missing", "barrier", "TMA may store shared memory as it was before the output was written there"
    ).swap("fence_proxy_async();\n  __syncwarp();", "__syncwarp();"),
    _wgmma(
        "barrier-before-output-missing", "barrier", "a warp's output overwrites queries that the others still read"
    ).swap(
        "named_barrier_sync(own_barrier, 128);  // all four",
        "// all four",
        latent="each warp writes the 16 rows of Q that its own part of the product reads, and has awaited that",
    ),
    _wgmma(
        "negation-unfinished", "barrier", "products begin before all queries are negated, for a negative scale"
    ).swap(
        "  named_barrier_sync(barrier, 128);\n",
        "",
        latent="each product begins with WARPGROUP.ARRIVE, at which the four warps meet",
    ),
    _wgmma("values-released-early", "wait", "a stage of values is given back while the product still reads it")
    .swap("wgmma_wait<1>();\n", "wgmma_wait<1>();\n      arrive(shared.empty(last_stage));\n")
    .swap(
        "last ones\n      arrive(shared.empty(last_stage));\n",
        "last ones\n",
        latent="the product has ended long before the copy that was asked for arrives",
    ),
    _wgmma(
        "store-not-awaited", "wait", "the queries of a next tile may arrive where an output is still being stored from"
    ).swap(
        "tma_store_wait_read();\n      mbarrier_arrive(shared.q_empty",
        "mbarrier_arrive(shared.q_empty",
        latent="the store has read its rows long before the next tile's queries, asked for after it, arrive",
    ),
    _wgmma(
        "output-not-rescaled", "rescaling", "the output so far is not brought down where the maximum rises late"
    ).swap("      rescale_output(rows, correction);\n", ""),
    _wgmma("sum-not-rescaled", "rescaling", "the sum so far is not brought down where the maximum rises late").swap(
        "    rows.sum[half] *= correction[half];\n", ""
    ),
    _wgmma("weights-overflow", "data-dependent", "weights may grow to 2^80, which float16 does not hold").swap(
        "const float maximum = fmaxf(rows.maximum[half], maxima[half]);",
        "const float maximum = maxima[half] > rows.maximum[half] + 80.0f ? maxima[half] : rows.maximum[half];",
    ),
    _wgmma(
        "maximum-forgotten", "data-dependent", "each step's maximum is its own: far below the one before, sums overflow"
    ).swap("const float maximum = fmaxf(rows.maximum[half], maxima[half]);", "const float maximum = maxima[half];"),
    _wgmma("maximum-of-two-lanes", "rescaling", "a row's maximum is that of two lanes of four, which then differ").swap(
        "return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));", "return x;", file=NUMERIC
    ),
    _wgmma("weights-truncated", "rounding", "bfloat16 weights and outputs are cut instead of rounded").swap(
        "cvt.rn.bf16x2.f32", "cvt.rz.bf16x2.f32", file=NUMERIC
    ),
    _wgmma("weights-truncated-float16", "rounding", "float16 weights and outputs are cut instead of rounded").swap(
        "cvt.rn.f16x2.f32", "cvt.rz.f16x2.f32", file=NUMERIC
    ),
    _wgmma("accumulator-float16", "rounding", "the output so far is rounded to float16 in each step").swap(
        "      rescale_output(rows, correction);\n",
        "      rescale_output(rows, correction);\n"
        '      for (float& x : rows.out) asm volatile("{.reg .b16 h;\\ncvt.rn.f16.f32 h, %0;\\ncvt.f32.f16 %0, h;}"'
        ' : "+f"(x));\n',
    ),
    _wgmma("scale-sign-lost", "formula", "a negative scale is taken as its opposite, and queries are not negated").swap(
        "problem.negate = arguments.scale < 0.0f;", "problem.negate = false;"
    ),
    _wgmma("scale-zero", "special value", "at a scale of 0 masked scores are NaN").swap(
        "std::fmax(std::fabs(arguments.scale) * kLog2E, FLT_MIN)", "std::fabs(arguments.scale) * kLog2E"
    ),
    _wgmma("nan-weighs-nothing", "special value", "a score that is NaN becomes a weight of 0").swap(
        "exp2_approx(fmaf(x, scale_log2, -rows.maximum[half]))",
        "exp2_approx(fmaxf(fmaf(x, scale_log2, -rows.maximum[half]), -1000.0f))",
    ),
    _mma_sync(
        "padding-63-unmasked", "mask", "where S mod 64 is 63 and not causal, the key past the end has a weight"
    ).swap("first_key + Tile::kBlockN - 1 > last_visible", "first_key + Tile::kBlockN - 2 > last_visible"),
    _mma_sync("seq-cut-1024", "size", "keys past the first 1,024 are left out").swap(
        "Causal ? min(seq, block.first_query + Tile::kBlockM) : seq;",
        "min(1024, Causal ? min(seq, block.first_query + Tile::kBlockM) : seq);",
    ),
    _mma_sync("offset-32-bit", "size", "offsets in bytes are 32 bits wide, and overflow past 2 GiB").swap(
        "const int64_t head_offset = block.head * seq * kRowBytes;",
        "const int head_offset = static_cast<int>(block.head) * seq * kRowBytes;",
    ),
    _mma_sync("grid-65535", "size", "no more than 65,535 blocks are launched").swap(
        "dim3(static_cast<unsigned>(blocks))", "dim3(static_cast<unsigned>(blocks < 65535 ? blocks : 65535))"
    ),
    _mma_sync(
        "scale-sign-lost", "formula", "a negative scale is taken as its opposite, and queries are not negated"
    ).swap("first_row, arguments.scale < 0.0f);", "first_row, false);"),
    _mma_sync(
        "syncthreads-missing", "barrier", "threads read keys and values whose copies others have not finished"
    ).swap("__syncthreads();\n    copy_step(step + Tile::kStages - 1);", "copy_step(step + Tile::kStages - 1);"),
    _mma_sync("copies-not-awaited", "wait", "a step begins while its keys and values are still on their way").swap(
        "wait_group<Tile::kStages - 2>();", "wait_group<Tile::kStages - 1>();"
    ),
    _mma_sync(
        "syncwarp-missing", "barrier", "lanes read output that other lanes of the warp have not written yet"
    ).swap("__syncwarp();  // no other", "// no other"),
    _mma_sync(
        "syncwarp-before-output-missing", "barrier", "in a head of one step output may overwrite queries still read"
    ).swap(
        "__syncwarp();  // in a head",
        "// in a head",
        latent="the lanes of a warp come out of ldmatrix and mma together, and nothing parts them before the output",
    ),
    _mma_sync(
        "row-written-past-end", "offset", "a row is written past the end of each head that is no multiple of 128"
    ).swap("warp.first_query + row < seq", "warp.first_query + row <= seq"),
    _mma_sync(
        "output-half-rescaled", "rescaling", "every other column of the output is not brought down to the new maximum"
    ).swap("warp.out[m][n][half * 2 + 1] *= correction;", ""),
    _mma_sync("blocks-in-another-order", "offset", "with causal, the blocks with the fewest keys go first").swap(
        "static_cast<int>(blocks_per_head - 1 - blockIdx.x / count)",
        "static_cast<int>(blockIdx.x / count)",
        equivalent="blocks are independent: their order changes only the time",
    ),
    _mma_sync("padding-holds-last-row", "initial value", "past the end, the last row is copied instead of zeros").swap(
        "source + i * kRowBytes, first + row + i < seq);",
        "head + min(first + row + i, seq - 1) * kRowBytes + chunk * 16, true);",
        equivalent="its weight is 0, and that row is in the same tile anyway",
    ),
)
