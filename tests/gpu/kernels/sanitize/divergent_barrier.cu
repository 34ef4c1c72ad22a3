// synccheck: a quarter of the block meets a barrier that is for all of it.
#include "../harness.cuh"

__global__ void meet_alone(float* out) {
  __shared__ float shared[64];
  shared[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 16) {
    __syncthreads();
  }
  out[threadIdx.x] = shared[threadIdx.x];
}

int main() {
  float* out = ones(64);
  meet_alone<<<1, 64>>>(out);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
