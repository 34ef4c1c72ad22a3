// Latency bound by low occupancy: shared memory that the kernel hardly uses leaves room for few warps.
#include "harness.cuh"

__global__ void walk(const int* next, float* out, int steps) {
  extern __shared__ float scratch[];
  scratch[threadIdx.x] = 1.0f;
  int at = (blockIdx.x * blockDim.x + threadIdx.x) * 8 % (1 << 20);
  float sum = 0.0f;
  for (int i = 0; i < steps; ++i) {
    at = (at + next[at] + 4099) & ((1 << 20) - 1);  // each load waits for the one before
    sum += at * scratch[threadIdx.x];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  constexpr int kThreads = 64;
  constexpr int kSharedBytes = 96 * 1024;  // one block on sm_89, two on sm_90
  const int blocks = multiprocessors() * 24;
  CHECK(cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  float* next = ones(1 << 20);
  int* links = reinterpret_cast<int*>(next);
  CHECK(cudaMemset(links, 0, sizeof(int) << 20));
  float* out = ones(size_t{kThreads} * blocks);
  return run([&] { walk<<<blocks, kThreads, kSharedBytes>>>(links, out, 128); });
}
