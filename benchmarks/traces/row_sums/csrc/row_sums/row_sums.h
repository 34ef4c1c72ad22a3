// out[m] = sum of x[m, :]; x is row-major without gaps, at most 65535 rows.
#pragma once

#include <cstdint>

namespace row_sums {

// Queues the kernel on `stream`, a cudaStream_t of the current device. Throws std::runtime_error if CUDA refuses it.
void row_sums_cuda(float* out, const float* x, int64_t rows, int64_t columns, void* stream);

}  // namespace row_sums
