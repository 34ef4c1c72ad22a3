// Launch bound: so little work that starting the kernel takes longer than the kernel.
#include "harness.cuh"

__global__ void scale(float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    x[i] *= 0.5f;
  }
}

int main() {
  constexpr int kCount = 1 << 18;
  float* x = ones(kCount);
  return run([&] { scale<<<kCount / 256, 256>>>(x, kCount); });
}
