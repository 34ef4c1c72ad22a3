// Bound by float32 arithmetic: independent chains of fused multiply-adds in registers.
#include "harness.cuh"

constexpr int kChains = 8;

__global__ void multiply_add(float* out, float scale, int steps) {
  float x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
    x[c] = threadIdx.x + c;
  }
  for (int i = 0; i < steps; ++i) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      x[c] = fmaf(x[c], scale, 0.5f);
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
    sum += x[c];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  const int blocks = multiprocessors() * 32;
  float* out = ones(size_t{256} * blocks);
  return run([&] { multiply_add<<<blocks, 256>>>(out, 0.999f, 4096); });
}
