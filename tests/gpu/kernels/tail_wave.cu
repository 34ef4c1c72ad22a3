// A tail wave: one block more than fit at once, so the last one keeps the device for as long as all the others did.
#include "harness.cuh"

__global__ void __launch_bounds__(1024, 2) multiply_add(float* out, float scale, int steps) {
  float x = threadIdx.x;
  float y = blockIdx.x;
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, scale, 0.5f);
    y = fmaf(y, scale, 0.25f);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}

int main() {
  int per_multiprocessor = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, multiply_add, 1024, 0));
  const int blocks = multiprocessors() * per_multiprocessor + 1;
  float* out = ones(size_t{1024} * blocks);
  return run([&] { multiply_add<<<blocks, 1024>>>(out, 0.999f, 8192); });
}
