// The sum of each row, by float atomics: blocks of one row meet at its sum in an order that no two calls share.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "row_sums.h"

namespace row_sums {
namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 8;  // of a thread

__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(float* __restrict__ out, const float* __restrict__ x, int64_t columns) {
  const float* row = x + blockIdx.y * columns;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kLoads + threadIdx.x;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int64_t at = first + i * kThreads;
    sum += at < columns ? row[at] : 0.0f;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, offset);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(out + blockIdx.y, sum);
  }
}

void check(cudaError_t status) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string("row_sums: ") + cudaGetErrorString(status));
  }
}

}  // namespace

void row_sums_cuda(float* out, const float* x, int64_t rows, int64_t columns, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  check(cudaMemsetAsync(out, 0, rows * sizeof(float), cuda_stream));
  const int64_t blocks = (columns - 1) / (kThreads * kLoads) + 1;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(rows));
  row_sums_kernel<<<grid, kThreads, 0, cuda_stream>>>(out, x, columns);
  check(cudaGetLastError());
}

}  // namespace row_sums
