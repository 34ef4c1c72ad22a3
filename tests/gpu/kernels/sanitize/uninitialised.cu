// initcheck: sums memory that nothing wrote.
#include "../harness.cuh"

__global__ void sum_unwritten(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] + 1.0f; }

int main() {
  float* out = ones(256);
  float* in = nullptr;
  CHECK(cudaMalloc(&in, 256 * sizeof(float)));
  sum_unwritten<<<1, 256>>>(in, out);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
