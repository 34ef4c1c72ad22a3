// Bound by the tensor cores: mma.sync of 16x8x16 float16 on registers, nothing else.
#include <cstdint>

#include "harness.cuh"

constexpr int kTiles = 16;

__global__ void __launch_bounds__(256) multiply(float* out, uint32_t seed, int steps) {
  float sums[kTiles][4] = {};
  const uint32_t a[4] = {seed, seed + threadIdx.x, seed + 1, seed + 2};
  const uint32_t b[2] = {seed + threadIdx.x, seed};
  for (int i = 0; i < steps; ++i) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  float total = 0.0f;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    total += sums[t][0] + sums[t][1] + sums[t][2] + sums[t][3];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

int main() {
  const int blocks = multiprocessors() * 8;
  float* out = ones(size_t{256} * blocks);
  return run([&] { multiply<<<blocks, 256>>>(out, 0x3C003C00u, 512); });
}
