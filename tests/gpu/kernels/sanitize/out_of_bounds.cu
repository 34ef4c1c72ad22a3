// memcheck: the last thread of the grid writes one element past the end.
#include "../harness.cuh"

__global__ void write_past_the_end(float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) {
    out[i] = 1.0f;
  }
}

int main() {
  constexpr int kCount = 1000;
  float* out = ones(kCount);
  write_past_the_end<<<4, 256>>>(out, kCount);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
