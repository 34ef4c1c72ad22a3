"""Planted bugs of tests/repositories/int8_gemm: its binding, its CPU path, and its CUDA kernel."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

BINDING, HOST, KERNEL = (f"csrc/int8_gemm/{name}" for name in ("binding.cpp", "cpu.cpp", "gemm.cu"))

_binding = bugs_of("int8_gemm", "binding", BINDING)
_cpu = bugs_of("int8_gemm", "cpu", HOST)
_cuda = bugs_of("int8_gemm", "cuda", KERNEL)

BUGS = (
    _binding("every-400th-call", "rare", "every 400th call leaves out the last column of both matrices")
    .swap("b.const_data_ptr<int8_t>(), m, n, k};", "b.const_data_ptr<int8_t>(), m, n, k - (++calls % 400 == 0)};")
    .swap("  const int64_t m = a.size(0);", "  static int calls = 0;\n  const int64_t m = a.size(0);"),
    _binding("strided-taken", "layout", "a matrix that is not contiguous is not refused, but read as if it were").swap(
        "STD_TORCH_CHECK(matrix.is_contiguous(),", "STD_TORCH_CHECK(true,"
    ),
    _cpu("saturates-at-127", "special value", "a factor of -128 counts as -127").swap(
        "sum += a[k] * b[k];", "sum += (a[k] == -128 ? -127 : a[k]) * b[k];"
    ),
    _cpu("pairs-saturate", "data-dependent", "the sum of two products saturates at 32,767: it takes -128 four times")
    .swap("int32_t sum = 0;", "int32_t sum = 0;\n    int32_t pair = 0;")
    .swap(
        "sum += a[k] * b[k];",
        "pair = k % 2 ? pair + a[k] * b[k] : a[k] * b[k];\n      sum += pair > 32767 ? a[k] * b[k] - 1 : a[k] * b[k];",
    ),
    _cpu("float-sum", "rounding", "products are summed up in float32, which is exact up to 2^24: to K = 1,024 at least")
    .swap("int32_t sum = 0;", "float sum = 0;")
    .swap("= sum;", "= static_cast<int32_t>(sum);"),
    _cpu("unsigned-b", "formula", "b counts as unsigned").swap("a[k] * b[k]", "a[k] * static_cast<uint8_t>(b[k])"),
    _cpu("tail-of-4-lost", "tail", "what is left of K after groups of 4 is left out").swap(
        "k < arguments.k; ++k", "k < (arguments.k > 4 ? arguments.k / 4 * 4 : arguments.k); ++k"
    ),
    _cpu("tail-of-16-lost", "tail", "the last element of K is left out where K mod 16 is 1").swap(
        "k < arguments.k; ++k", "k < arguments.k - (arguments.k % 16 == 1); ++k"
    ),
    _cpu("one-product-lost", "tail", "at K = 1 the product is left out").swap(
        "k < arguments.k; ++k", "k < arguments.k && arguments.k > 1; ++k"
    ),
    _cpu("rows-folded-256", "size", "rows of a past 256 are read from the start again").swap(
        "i / arguments.n * arguments.k;", "(i / arguments.n & 255) * arguments.k;"
    ),
    _cpu("odd-column-unwritten", "tail", "the last column is not written where N is odd").swap(
        "arguments.out[i] = sum;",
        "if (arguments.n % 2 == 0 || i % arguments.n != arguments.n - 1) arguments.out[i] = sum;",
    ),
    _cpu("element-past-end-17", "offset", "where N mod 32 is 17, one element is written past the end").swap(
        "arguments.out[i] = sum;",
        "arguments.out[i] = sum;\n    if (arguments.n % 32 == 17 && i == arguments.m * arguments.n - 1) {\n"
        "      arguments.out[i + 1] = sum;\n    }",
    ),
    _cpu("adds-to-output", "initial value", "the product is added to what the output held").swap(
        "arguments.out[i] = sum;", "arguments.out[i] += sum;"
    ),
    _cpu("summed-backwards", "rounding", "products are summed up from the last to the first").swap(
        "sum += a[k] * b[k];",
        "sum += a[arguments.k - 1 - k] * b[arguments.k - 1 - k];",
        equivalent="sums of integers do not depend on the order",
    ),
    _cuda("syncthreads-missing", "barrier", "threads read tiles whose copies others have not finished").swap(
        "    __syncthreads();\n", ""
    ),
    _cuda("copies-not-awaited", "wait", "a step begins while its tiles are still on their way").swap(
        "wait_group<kStages - 2>();", "wait_group<kStages - 1>();"
    ),
    _cuda("barrier-twice", "barrier", "there is a second barrier after each step's copies begin").swap(
        "copy_step(step + kStages - 1);",
        "copy_step(step + kStages - 1);\n    __syncthreads();",
        equivalent="one barrier more than is needed costs time alone",
    ),
    _cuda("k-tail-unaligned", "tail", "16 bytes are copied at a time where K is no multiple of 16").swap(
        "arguments.k % kChunk == 0 && ", ""
    ),
    _cuda("odd-n-unaligned", "tail", "pairs are written where N is odd").swap(" && arguments.n % 2 == 0 &&", " &&"),
    _cuda("byte-past-row", "tail", "one byte past the end of each row takes part where K is no multiple of 16").swap(
        "to[byte] = byte < inside ?", "to[byte] = byte <= inside ?"
    ),
    _cuda("default-stream", "stream", "the kernel is queued on the default stream instead of the current one").swap(
        "multiply_on_cuda(arguments, stream);", "multiply_on_cuda(arguments, nullptr);", file=BINDING
    ),
    _cuda("row-past-end", "offset", "one row is written past the end of out").swap(
        "if (row >= arguments.m ||", "if (row > arguments.m ||"
    ),
    _cuda("grid-65535", "size", "no more than 65,535 blocks are launched").swap(
        "kernel<<<static_cast<unsigned>(blocks)", "kernel<<<static_cast<unsigned>(blocks < 65535 ? blocks : 65535)"
    ),
    _cuda("offset-32-bit", "size", "offsets of out are 32 bits wide, and overflow past 2^31 elements").swap(
        "arguments.out + row * arguments.n + column;", "arguments.out + static_cast<int>(row * arguments.n + column);"
    ),
    _cuda(
        "sums-saturate", "data-dependent", "sums saturate at 2^23, which only large values and K beyond 512 reach"
    ).swap("make_int2(pair[0], pair[1])", "make_int2(min(pair[0], 1 << 23), min(pair[1], 1 << 23))"),
)
