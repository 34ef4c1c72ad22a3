#include <cuda_runtime.h>

#include "attention128.h"

namespace {

__global__ void attention_kernel(const float* q, const float* k, const float* v, float* out, int64_t rows,
                                 int64_t seq) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows) {
    const int64_t head = row / seq * seq * kHeadDim;
    attend(q + row * kHeadDim, k + head, v + head, out + row * kHeadDim, seq);
  }
}

}  // namespace

void launch_attention(const float* q, const float* k, const float* v, float* out, int64_t rows, int64_t seq,
                      void* stream) {
  constexpr int kThreads = 128;
  if (rows > 0) {
    const auto blocks = static_cast<unsigned>((rows + kThreads - 1) / kThreads);
    attention_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(q, k, v, out, rows, seq);
  }
}
