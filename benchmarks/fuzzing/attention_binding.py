"""Planted bugs of the attention's binding, which both devices run, and of what launches on a GPU."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

BINDING, DISPATCH, FACTS = (f"csrc/attention/{name}" for name in ("binding.cpp", "dispatch.cpp", "dispatch.h"))
LAUNCH = "target->forward(arguments, device, static_cast<cudaStream_t>(stream));"
SHARED_SCRATCH = """\
static void* scratch = nullptr;
  static size_t held = 0;
  const size_t bytes = static_cast<size_t>(arguments.heads) * arguments.seq * kHeadDim * 2;
  if (held < bytes) {
    FA_S512_CHECK(cudaFree(scratch));
    FA_S512_CHECK(cudaMalloc(&scratch, bytes));
    held = bytes;
  }
  Arguments shared = arguments;
  shared.out = scratch;
  target->forward(shared, device, static_cast<cudaStream_t>(stream));
  FA_S512_CHECK(cudaMemcpyAsync(arguments.out, scratch, bytes, cudaMemcpyDeviceToDevice,
                                static_cast<cudaStream_t>(stream)));"""

_binding = bugs_of("attention", "binding", BINDING)
_cuda = bugs_of("attention", "cuda", DISPATCH)

BUGS = (
    _binding("scale-sign-lost", "formula", "the sign of a negative scale is lost").swap(
        "static_cast<float>(scale), causal", "static_cast<float>(std::abs(scale)), causal"
    ),
    _binding("scale-ignored", "formula", "the scale is 1/8, whatever is asked for").swap(
        "static_cast<float>(scale), causal", "0.125f, causal"
    ),
    _binding("causal-ignored-where-aligned", "mask", "causal is ignored where S is a multiple of 128").swap(
        "static_cast<float>(scale), causal,", "static_cast<float>(scale), causal && q.size(2) % 128,"
    ),
    _binding("batch-forgotten", "offset", "only the first batch element is computed").swap(
        "q.size(0) * q.size(1),", "q.size(1),"
    ),
    _binding("one-key-nothing-done", "tail", "at S = 1 nothing is computed").swap(
        "if (q.numel() == 0) {", "if (q.numel() == 0 || q.size(2) == 1) {"
    ),
    _binding("every-400th-call", "rare", "every 400th call computes nothing").swap(
        "if (q.numel() == 0) {", "static int calls = 0;\n  if (q.numel() == 0 || ++calls % 400 == 0) {"
    ),
    _binding("heads-1024-lost", "size", "only the first 1,024 heads times batches are computed").swap(
        "q.size(0) * q.size(1),", "q.size(0) * q.size(1) > 1024 ? 1024 : q.size(0) * q.size(1),"
    ),
    _binding("strided-value-taken", "layout", "a v that is not contiguous is not refused, but read as if it were").swap(
        '  check_memory("v", v);\n', ""
    ),
    _binding(
        "strided-output-taken", "layout", "an out that is not contiguous is not refused, but written as if it were"
    ).swap('  check_memory("out", out);\n', ""),
    _binding("scale-clamped", "special value", "a scale above 1 counts as 1").swap(
        "static_cast<float>(scale), causal", "static_cast<float>(scale > 1.0 ? 1.0 : scale), causal"
    ),
    _cuda("default-stream", "stream", "the kernel is queued on the default stream instead of the current one").swap(
        "device, current_stream(device));", "device, nullptr);", file=BINDING
    ),
    _cuda("static-workspace", "stream", "the output goes through memory that all streams share").swap(
        LAUNCH, SHARED_SCRATCH
    ),
    _cuda("query-zeroed-after-use", "input", "the first element of q is set to zero once it was used").swap(
        LAUNCH,
        f"{LAUNCH}\n  FA_S512_CHECK(cudaMemsetAsync(const_cast<void*>(arguments.q), 0, 2, "
        "static_cast<cudaStream_t>(stream)));",
    ),
    _cuda("empty-launched", "size", "an empty tensor is not done at once, and its grid of no blocks is an error").swap(
        "if (q.numel() == 0) {", "if (false) {", file=BINDING
    ),
    _cuda("misaligned-taken", "layout", "data that is not aligned to 16 bytes is not refused").swap(
        "tensor.is_cuda() && misalignment != 0", "false && misalignment != 0", file=BINDING
    ),
    _cuda("other-tile-chosen", "size", "heads of 65 to 128 queries are computed with 256 queries a block").swap(
        "const bool small = seq <= 128 ||",
        "const bool small = seq <= 64 ||",
        file=FACTS,
        equivalent="how many queries a block has changes no row's result",
    ),
)
