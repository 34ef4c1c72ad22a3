// Barrier stalls: between two barriers one warp of 32 works, in turn, and the other 31 wait for it.
#include "harness.cuh"

__global__ void in_turn(float* out, int rounds) {
  __shared__ float shared[32];
  const int warp = threadIdx.x / 32;
  float x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    if (warp == i % 32) {
      for (int j = 0; j < 32; ++j) {
        x = fmaf(x, 0.999f, 0.5f);
      }
      shared[threadIdx.x % 32] = x;
    }
    __syncthreads();
    x += shared[threadIdx.x % 32];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main() {
  const int blocks = multiprocessors() * 8;
  float* out = ones(size_t{1024} * blocks);
  return run([&] { in_turn<<<blocks, 1024>>>(out, 512); });
}
