// Register spills: 96 running sums under a limit of 40 registers a thread live in local memory.
#include "harness.cuh"

constexpr int kSums = 96;

__global__ void __launch_bounds__(256, 6) running_sums(const float* in, float* out, int steps) {
  float sums[kSums];
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    sums[s] = in[s];
  }
  for (int i = 0; i < steps; ++i) {
    const float x = in[(i * 32 + threadIdx.x) % 4096];
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      sums[s] = fmaf(sums[s], x, sums[(s + 1) % kSums]);
    }
  }
  float total = 0.0f;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    total += sums[s] * s;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

int main() {
  const int blocks = multiprocessors() * 24;
  float* in = ones(4096);
  float* out = ones(size_t{256} * blocks);
  return run([&] { running_sums<<<blocks, 256>>>(in, out, 64); });
}
