// Uncoalesced access: each lane of a warp reads and writes another row, so a warp's request touches 32 sectors.
#include "harness.cuh"

__global__ void scale_columns(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = blockIdx.y * 32;
  if (row < rows) {
    for (int column = first; column < first + 32; ++column) {
      out[size_t{1} * row * columns + column] = 2.0f * in[size_t{1} * row * columns + column];
    }
  }
}

int main() {
  constexpr int kRows = 8192;
  constexpr int kColumns = 4096;
  float* in = ones(size_t{kRows} * kColumns);
  float* out = ones(size_t{kRows} * kColumns);
  return run([&] { scale_columns<<<dim3(kRows / 256, kColumns / 32), 256>>>(in, out, kRows, kColumns); });
}
