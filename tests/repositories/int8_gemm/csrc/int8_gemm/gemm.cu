// out = a · bᵀ on tensor cores with mma.sync: sm_80 and newer.
//
// A block computes 128 × 128 of out. It walks over k in steps of 64, which wait in shared memory in a ring of three
// stages, filled by cp.async. Each of its 2 × 4 warps computes 64 × 32.
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "gemm.h"
#include "ptx.cuh"

namespace int8_gemm {
namespace {

constexpr int kTile = 128;  // rows of a and of b in a block
constexpr int kStep = 64;   // of k
constexpr int kStages = 3;
constexpr int kWarpM = 64;
constexpr int kWarpN = 32;
constexpr int kWarps = (kTile / kWarpM) * (kTile / kWarpN);
constexpr int kThreads = kWarps * 32;

constexpr int kChunk = 16;  // bytes that cp.async and ldmatrix move at a time
constexpr int kChunks = kStep / kChunk;

struct alignas(128) Stage {
  int8_t a[kTile * kStep];
  int8_t b[kTile * kStep];
};

static_assert(kStages * sizeof(Stage) <= 48 * 1024, "more shared memory than that must be asked for");

// ---------------------------------------------------------------------------------------------------------------------
// From global to shared memory
// ---------------------------------------------------------------------------------------------------------------------

// Where a chunk stands in a tile. Two rows fill all 32 banks, and ldmatrix takes the same chunk of eight rows at once:
// each pair of rows has its chunks in another order, so that the eight never meet in a bank.
__device__ int swizzle(int row, int chunk) { return row * kStep + (chunk ^ row / 2 % kChunks) * kChunk; }

// A row-major matrix of int8 without gaps.
struct Matrix {
  const int8_t* data;
  int64_t rows;
  int64_t columns;
};

// Copies the rows `row` … + kTile - 1, columns `column` … + kStep - 1 into a tile, with zeros for what lies outside of
// the matrix. Not Aligned: byte by byte, for rows that do not begin at a multiple of 16 bytes.
template <bool Aligned>
__device__ void copy_tile(int8_t* tile, const Matrix& matrix, int64_t row, int64_t column) {
#pragma unroll
  for (int i = 0; i < kTile * kChunks / kThreads; ++i) {
    const int index = i * kThreads + threadIdx.x;
    const int64_t from_row = row + index / kChunks;
    const int64_t from_column = column + index % kChunks * kChunk;
    const int64_t inside = from_row < matrix.rows ? matrix.columns - from_column : 0;  // bytes until the row's end
    const int8_t* from = matrix.data + (inside > 0 ? from_row * matrix.columns + from_column : 0);
    int8_t* to = tile + swizzle(index / kChunks, index % kChunks);
    if constexpr (Aligned) {
      cp_async(to, from, inside > 0);
    } else {
#pragma unroll
      for (int byte = 0; byte < kChunk; ++byte) {
        to[byte] = byte < inside ? from[byte] : 0;
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// A warp's part of the block's tile
// ---------------------------------------------------------------------------------------------------------------------

using Sums = int32_t[kWarpM / 16][kWarpN / 8][4];

__device__ void multiply(const Stage& stage, int first_row, int first_column, Sums& sums) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int chunk = 0; chunk < kChunks; chunk += 2) {  // an mma takes two chunks of k
    uint32_t a[kWarpM / 16][4];
#pragma unroll
    for (int m = 0; m < kWarpM / 16; ++m) {
      ldmatrix(a[m], stage.a + swizzle(first_row + m * 16 + lane % 16, chunk + lane / 16));
    }
#pragma unroll
    for (int n = 0; n < kWarpN / 16; ++n) {
      uint32_t b[4];  // 16 rows of b
      ldmatrix(b, stage.b + swizzle(first_column + n * 16 + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2));
#pragma unroll
      for (int m = 0; m < kWarpM / 16; ++m) {
        mma_sync(sums[m][2 * n], a[m], b[0], b[1]);
        mma_sync(sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

template <bool Aligned>
__device__ void write(const Sums& sums, const Arguments& arguments, int64_t first_row, int64_t first_column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < kWarpM / 16; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = first_row + m * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int n = 0; n < kWarpN / 8; ++n) {
        const int64_t column = first_column + n * 8 + lane % 4 * 2;
        const int32_t* pair = sums[m][n] + half * 2;
        int32_t* out = arguments.out + row * arguments.n + column;
        if (row >= arguments.m || column >= arguments.n) {
          continue;
        }
        if constexpr (Aligned) {
          *reinterpret_cast<int2*>(out) = make_int2(pair[0], pair[1]);
        } else {
          out[0] = pair[0];
          if (column + 1 < arguments.n) {
            out[1] = pair[1];
          }
        }
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernel and its launch
// ---------------------------------------------------------------------------------------------------------------------

// Blocks that run at the same time share rows of b, which is often the larger matrix: L2 then holds all of a.
template <bool Aligned>
__global__ void __launch_bounds__(kThreads, 2) int8_gemm_kernel(const __grid_constant__ Arguments arguments) {
  __shared__ Stage ring[kStages];
  const Matrix a{arguments.a, arguments.m, arguments.k};
  const Matrix b{arguments.b, arguments.n, arguments.k};
  const auto tiles_down = static_cast<unsigned>((arguments.m + kTile - 1) / kTile);
  const int64_t block_row = int64_t{blockIdx.x % tiles_down} * kTile;
  const int64_t block_column = int64_t{blockIdx.x / tiles_down} * kTile;
  const int steps = static_cast<int>((arguments.k + kStep - 1) / kStep);

  // Each step closes one group, also when nothing is left to copy, so that counting groups counts steps.
  const auto copy_step = [&](int step) {
    if (step < steps) {
      Stage& stage = ring[step % kStages];
      copy_tile<Aligned>(stage.a, a, block_row, int64_t{step} * kStep);
      copy_tile<Aligned>(stage.b, b, block_column, int64_t{step} * kStep);
    }
    commit_group();
  };

  for (int step = 0; step < kStages - 1; ++step) {
    copy_step(step);
  }
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % (kTile / kWarpM) * kWarpM;
  const int warp_column = warp / (kTile / kWarpM) * kWarpN;
  Sums sums{};
  for (int step = 0; step < steps; ++step) {
    // Past the barrier all copies of this step have arrived, and all warps are done with the step before it, whose
    // stage the next copies overwrite.
    wait_group<kStages - 2>();
    __syncthreads();
    copy_step(step + kStages - 1);
    multiply(ring[step % kStages], warp_row, warp_column, sums);
  }
  write<Aligned>(sums, arguments, block_row + warp_row, block_column + warp_column);
}

bool is_aligned(const void* data, int bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

}  // namespace

void multiply_on_cuda(const Arguments& arguments, void* stream) {
  const bool aligned = arguments.k % kChunk == 0 && is_aligned(arguments.a, kChunk) &&
                       is_aligned(arguments.b, kChunk) && arguments.n % 2 == 0 &&
                       is_aligned(arguments.out, sizeof(int2));
  const auto kernel = aligned ? int8_gemm_kernel<true> : int8_gemm_kernel<false>;
  const int64_t blocks = ((arguments.m + kTile - 1) / kTile) * ((arguments.n + kTile - 1) / kTile);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
    throw std::runtime_error(std::string("int8_gemm: the launch failed: ") + cudaGetErrorString(status));
  }
}

}  // namespace int8_gemm
