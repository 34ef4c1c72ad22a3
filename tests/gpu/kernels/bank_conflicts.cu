// Shared-memory bank conflicts: the lanes of a warp read down a column of 32 words, which all stand in one bank.
#include "harness.cuh"

__global__ void columns(float* out, int steps) {
  __shared__ float tile[32][32];
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x / 32;
  for (int r = row; r < 32; r += blockDim.x / 32) {
    tile[r][lane] = r + lane;
  }
  __syncthreads();
  float sum = 0.0f;
#pragma unroll 4
  for (int i = 0; i < steps; ++i) {
    sum += tile[lane][(row + i) % 32];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  const int blocks = multiprocessors() * 32;
  float* out = ones(size_t{256} * blocks);
  return run([&] { columns<<<blocks, 256>>>(out, 256); });
}
