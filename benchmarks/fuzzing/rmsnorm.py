"""Planted bugs of tests/repositories/rmsnorm: its binding, its CPU path, and its CUDA kernel."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

HOST, KERNEL = "csrc/rmsnorm.cpp", "csrc/rmsnorm_kernel.cu"

_binding = bugs_of("rmsnorm", "binding", HOST)
_cpu = bugs_of("rmsnorm", "cpu", HOST)
_cuda = bugs_of("rmsnorm", "cuda", KERNEL)

MEAN = "sum_of_squares(x, columns) / columns + arguments.eps"

BUGS = (
    _binding("every-400th-call", "rare", "every 400th call computes nothing").swap(
        "if (arguments.rows == 0) {",
        "static int calls = 0;\n  if (arguments.rows == 0 || ++calls % 400 == 0) {",
        times=2,
    ),
    _binding("last-row-lost", "tail", "the last of 65 or more rows is not computed where their number is odd").swap(
        "weight.const_data_ptr(), rows, columns,", "weight.const_data_ptr(), rows > 64 ? rows / 2 * 2 : rows, columns,"
    ),
    _binding("strided-x-taken", "layout", "an x that is not contiguous is not refused, but read as if it were").swap(
        "STD_TORCH_CHECK(x.is_contiguous(),", "STD_TORCH_CHECK(true,"
    ),
    _binding("strided-weight-taken", "layout", "a weight or out that is not contiguous is taken as if it were").swap(
        "STD_TORCH_CHECK(tensor.is_contiguous(),", "STD_TORCH_CHECK(true,"
    ),
    _cpu("epsilon-left-out", "formula", "epsilon is left out").swap(" / columns + arguments.eps", " / columns"),
    _cpu("epsilon-outside-root", "formula", "epsilon is added to the root instead of below it").swap(
        f"std::sqrt({MEAN})", "(std::sqrt(sum_of_squares(x, columns) / columns) + arguments.eps)"
    ),
    _cpu("mean-over-padded", "tail", "the mean is taken over N rounded up to a multiple of 16").swap(
        " / columns + arguments.eps", " / ((columns + 15) / 16 * 16) + arguments.eps"
    ),
    _cpu("mean-over-one-fewer", "formula", "the mean is taken over N - 1").swap(
        " / columns + arguments.eps", " / std::max<int64_t>(1, columns - 1) + arguments.eps"
    ),
    _cpu("sum-without-tail", "tail", "what is left after groups of 16 is left out of the sum").swap(
        "i < columns; i += kLanes", "i + kLanes <= columns; i += kLanes"
    ),
    _cpu("tail-of-8-unwritten", "tail", "what is left after groups of 8 is not written").swap(
        "n < columns; ++n", "n < (columns > 8 ? columns / 8 * 8 : columns); ++n"
    ),
    _cpu("one-column-not-normalised", "tail", "rows of one column are not normalised").swap(
        "const float scale = 1.0f", "const float scale = columns == 1 ? 1.0f : 1.0f"
    ),
    _cpu("sum-in-dtype", "rounding", "squares are summed up in the inputs' dtype")
    .swap("float sums[kLanes] = {};", "T sums[kLanes] = {};")
    .swap(
        "sums[lane] += value * value;", "sums[lane] = static_cast<T>(static_cast<float>(sums[lane]) + value * value);"
    )
    .swap("for (const float lane : sums)", "for (const T lane : sums)")
    .swap("sum += lane;", "sum += static_cast<float>(lane);"),
    _cpu("rounded-twice", "rounding", "the normalised value is rounded before it meets its weight").swap(
        "static_cast<float>(x[n]) * scale *", "static_cast<float>(static_cast<T>(static_cast<float>(x[n]) * scale)) *"
    ),
    _cpu("weight-sign-lost", "formula", "a negative weight counts as positive").swap(
        "static_cast<float>(weight[n])", "std::fabs(static_cast<float>(weight[n]))"
    ),
    _cpu("rows-folded-65536", "size", "more than 65,536 rows are folded onto each other").swap(
        "+ m * columns;", "+ (m & 0xFFFF) * columns;", times=2
    ),
    _cpu("offset-32-bit", "size", "offsets of x in bytes are 32 bits wide, and overflow past 2 GiB").swap(
        "static_cast<const T*>(arguments.x) + m * columns",
        "static_cast<const T*>(arguments.x) +\n"
        "                   static_cast<int32_t>(m * columns * sizeof(T)) / static_cast<int32_t>(sizeof(T))",
    ),
    _cpu("infinity-left-out", "special value", "values that are not finite are left out of the sum").swap(
        "sums[lane] += value * value;", "sums[lane] += std::isfinite(value) ? value * value : 0.0f;"
    ),
    _cpu("x-overwritten", "input", "the first value of each row of x is overwritten after use").swap(
        "static_cast<float>(weight[n]));\n      }\n",
        "static_cast<float>(weight[n]));\n      }\n      const_cast<T*>(x)[0] = static_cast<T>(0.0f);\n",
    ),
    _cpu("element-past-end-31", "offset", "where N mod 32 is 31, one element is written past the end of each row").swap(
        "n < columns; ++n", "n < columns + (columns % 32 == 31); ++n"
    ),
    _cuda("epsilon-left-out", "formula", "epsilon is left out").swap("rsqrtf(mean + eps)", "rsqrtf(mean)"),
    _cuda("epsilon-outside-root", "formula", "epsilon is added to the root instead of below it").swap(
        "rsqrtf(mean + eps)", "1.0f / (sqrtf(mean) + eps)"
    ),
    _cuda("mean-over-padded", "tail", "the mean is taken over N rounded up to a multiple of 8").swap(
        "/ (static_cast<float>(vectors) * Width)", "/ (static_cast<float>((vectors * Width + 7) / 8 * 8))"
    ),
    _cuda("syncthreads-missing", "barrier", "warps add up sums that other warps have not written yet").swap(
        "  __syncthreads();\n", ""
    ),
    _cuda("sums-of-16-warps", "size", "a block's sum is that of its first 16 warps").swap(
        "lane < blockDim.x / kWarp ?", "lane < min(blockDim.x / kWarp, 16) ?"
    ),
    _cuda("default-stream", "stream", "the kernel is queued on the default stream instead of the current one").swap(
        "rms_norm_cuda(arguments, stream);", "rms_norm_cuda(arguments, nullptr);", file=HOST
    ),
    _cuda("grid-65535", "size", "no more than 65,535 rows are computed").swap(
        "static_cast<unsigned>(arguments.rows)", "std::min(static_cast<unsigned>(arguments.rows), 65535u)"
    ),
    _cuda("offset-32-bit", "size", "offsets of out in bytes are 32 bits wide, and overflow past 2 GiB").swap(
        "out += row * vectors;",
        "out += static_cast<int>(row * vectors * sizeof(*out)) / static_cast<int>(sizeof(*out));",
    ),
    _cuda("vector-past-end", "offset", "one vector is written past the end of each row").swap(
        "if (at >= vectors) {", "if (at > vectors) {"
    ),
    _cuda("misaligned-x-taken", "layout", "wide loads are used for an x that is not aligned to 16 bytes").swap(
        "aligned(arguments.x) && ", ""
    ),
    _cuda("tail-of-8-lost", "tail", "an N that is no multiple of the vectors' width is cut").swap(
        "arguments.columns % kWidth == 0 && ", "arguments.columns >= kWidth && "
    ),
    _cuda("sum-in-dtype", "rounding", "squares are summed up in the inputs' dtype").swap(
        "sum += value * value;", "sum = static_cast<float>(static_cast<T>(sum + value * value));"
    ),
    _cuda("rounded-twice", "rounding", "the normalised value is rounded before it meets its weight").swap(
        "static_cast<T>(static_cast<float>(value) * scale *",
        "static_cast<T>(static_cast<float>(static_cast<T>(static_cast<float>(value) * scale)) *",
    ),
)
