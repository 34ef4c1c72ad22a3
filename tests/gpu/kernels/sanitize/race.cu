// racecheck: a thread reads what its neighbour wrote, with no barrier between.
#include "../harness.cuh"

__global__ void read_the_neighbour(float* out) {
  __shared__ float shared[256];
  shared[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = shared[(threadIdx.x + 32) % 256];
}

int main() {
  float* out = ones(256);
  read_the_neighbour<<<1, 256>>>(out);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
