// DRAM bound: c = a + b over arrays far larger than any second-level cache.
#include "harness.cuh"

__global__ void add(const float4* a, const float4* b, float4* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const float4 x = a[i];
    const float4 y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}

int main() {
  constexpr int kCount = 1 << 24;  // of 16 bytes: 256 MiB an array
  float* a = ones(size_t{4} * kCount);
  float* b = ones(size_t{4} * kCount);
  float* c = ones(size_t{4} * kCount);
  return run([&] {
    add<<<kCount / 256, 256>>>(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b), reinterpret_cast<float4*>(c),
                               kCount);
  });
}
