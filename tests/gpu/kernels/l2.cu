// L2 bound: every block reads the same 8 MiB, which the second-level cache holds and the first-level one is kept from.
#include "harness.cuh"

__global__ void read_all(const float4* in, float* out, int count) {
  float sum = 0.0f;
  const int first = blockIdx.x * 1021 * blockDim.x;
#pragma unroll 8
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const float4 x = __ldcg(in + (first + i) % count);
    sum += x.x + x.y + x.z + x.w;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  constexpr int kCount = 1 << 19;  // of 16 bytes
  constexpr int kThreads = 512;
  const int blocks = multiprocessors() * 4;
  float* in = ones(size_t{4} * kCount);
  float* out = ones(size_t{kThreads} * blocks);
  return run([&] { read_all<<<blocks, kThreads>>>(reinterpret_cast<float4*>(in), out, kCount); });
}
