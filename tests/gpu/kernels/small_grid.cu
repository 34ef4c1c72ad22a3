// Too small a grid: a quarter of the multiprocessors work, the others have nothing to do.
#include "harness.cuh"

__global__ void multiply_add(float* out, float scale, int steps) {
  float x = threadIdx.x;
  float y = blockIdx.x;
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, scale, 0.5f);
    y = fmaf(y, scale, 0.25f);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}

int main() {
  const int blocks = multiprocessors() / 4;
  float* out = ones(size_t{512} * blocks);
  return run([&] { multiply_add<<<blocks, 512>>>(out, 0.999f, 16384); });
}
