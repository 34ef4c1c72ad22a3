// The attention kernel for Ampere and Ada: online softmax over tiles of keys with mma.sync and cp.async, after
// FlashAttention-2 (T. Dao, arXiv:2307.08691, algorithm 1).
//
//   q, k, v, out   (heads, seq, 64) float16 or bfloat16, contiguous, aligned to 16 bytes
//
// Scores, maxima, sums and the output stay in float32 registers; P is rounded to the inputs' dtype for the
// product with V, which is what bounds the error: with A = sum_j P_j |v_j| and a unit roundoff u, by u A (rounding P)
// + 2u |out| (rounding the output and the sum of weights) + 2d A (an error d of a score). The tolerances of
// bench/kernel/cards.py hold for A <= 4; the inputs that are drawn have A < 2. In float32 P is not rounded, and 2e-4
// covers 2d A for |scale| sum |q k| up to 100. The output is linear in v: another scale multiplies atol by it.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "../cuda_check.h"
#include "../swizzle.cuh"
#include "ptx.cuh"
#include "tile.h"

namespace fa_s512::cuda {

// ---------------------------------------------------------------------------------------------------------------------
// Shared memory
// ---------------------------------------------------------------------------------------------------------------------

// Starts copying the rows first … first + Rows - 1 of one head; rows from `seq` on arrive as zeros, so that a weight of
// 0 times whatever follows in memory is never NaN.
template <int Rows, int Threads>
__device__ inline void copy_rows(SharedAddress to, const char* head, int first, int seq) {
  constexpr int kRowsAtOnce = Threads / 8;
  static_assert(kRowsAtOnce % 8 == 0, "a thread's rows are swizzled alike");
  const int row = threadIdx.x / 8;
  const int chunk = threadIdx.x % 8;
  const SharedAddress own = to + swizzle(row, chunk);
  const char* source = head + (first + row) * kRowBytes + chunk * 16;
#pragma unroll
  for (int i = 0; i < Rows; i += kRowsAtOnce) {
    cp_async(own + i * kRowBytes, source + i * kRowBytes, first + row + i < seq);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// One warp's state, all of it in registers
// ---------------------------------------------------------------------------------------------------------------------

// A warp's queries come in fragments of 16; of each, a lane holds two rows, i / 4 and i / 4 + 8, called halves.
template <typename Tile>
struct Warp {
  static constexpr int kFragments = Tile::kWarpM / 16;

  uint32_t q[kFragments][kHeadDim / 16][4];
  float out[kFragments][kHeadDim / 8][4];  // unnormalised
  float row_max[kFragments][2];            // of the scores so far, times scale_log2
  float row_sum[kFragments][4];            // of P so far, at [2 half]: a product's, as `out` is

  int lane;
  int first_query;  // of the warp, in the head
};

template <typename Tile>
__device__ inline void load_queries(Warp<Tile>& warp, SharedAddress q, int first_row, bool negate) {
#pragma unroll
  for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
    for (int d = 0; d < kHeadDim / 16; ++d) {
      ldmatrix(warp.q[m][d], q + swizzle(first_row + m * 16 + warp.lane % 16, d * 2 + warp.lane / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        warp.q[m][d][i] ^= negate ? 0x80008000u : 0u;
      }
    }
  }
}

// scores = Q Kᵀ for the warp's queries and one step of keys.
template <Dtype Type, typename Tile>
__device__ inline void score(const Warp<Tile>& warp, SharedAddress k,
                             float (&scores)[Warp<Tile>::kFragments][Tile::kBlockN / 8][4]) {
  const SharedAddress own = k + swizzle(warp.lane % 8 + warp.lane / 16 * 8, warp.lane / 8 % 2);
#pragma unroll
  for (int n = 0; n < Tile::kBlockN / 16; ++n) {
#pragma unroll
    for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[m][2 * n][i] = scores[m][2 * n + 1][i] = 0.0f;
      }
    }
#pragma unroll
    for (int d = 0; d < kHeadDim / 16; ++d) {
      uint32_t keys[4];  // 16 keys × 16 of d
      ldmatrix(keys, chunks_after(own, d * 2) + n * 16 * kRowBytes);
#pragma unroll
      for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
        mma_sync<Type>(scores[m][2 * n], warp.q[m][d], keys[0], keys[1]);
        mma_sync<Type>(scores[m][2 * n + 1], warp.q[m][d], keys[2], keys[3]);
      }
    }
  }
}

// Sets the scores of the keys past `last_key`, and with Causal past each query, to -inf.
template <bool Causal, typename Tile>
__device__ inline void mask(const Warp<Tile>& warp, int first_key, int last_key,
                            float (&scores)[Warp<Tile>::kFragments][Tile::kBlockN / 8][4]) {
  const int column = first_key + warp.lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = warp.first_query + m * 16 + half * 8 + warp.lane / 4;
      const int last = Causal ? min(query, last_key) : last_key;
#pragma unroll
      for (int n = 0; n < Tile::kBlockN / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = scores[m][n][half * 2 + i];
          x = column + n * 8 + i > last ? -INFINITY : x;
        }
      }
    }
  }
}

// Turns scores into P = e^(scale · (score - maximum)), as 2^(score · scale_log2 - row_max) in one fused
// multiply-add and one ex2 each, and brings the sums and the output so far down to the new maximum.
//
// The maximum is kept scaled and rounded, as it is subtracted: its rounding error is then one factor common to the
// whole row, which cancels when the row is normalised.
template <typename Tile>
__device__ inline void softmax_step(Warp<Tile>& warp, float scale_log2,
                                    float (&scores)[Warp<Tile>::kFragments][Tile::kBlockN / 8][4]) {
#pragma unroll
  for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = -INFINITY;
#pragma unroll
      for (int n = 0; n < Tile::kBlockN / 8; ++n) {
        highest = fmaxf(highest, fmaxf(scores[m][n][half * 2], scores[m][n][half * 2 + 1]));
      }
      const float before = warp.row_max[m][half];
      const float maximum = fmaxf(before, quad_max(highest) * scale_log2);
      const float correction = exp2_approx(before - maximum);
#pragma unroll
      for (int n = 0; n < Tile::kBlockN / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = scores[m][n][half * 2 + i];
          x = exp2_approx(fmaf(x, scale_log2, -maximum));
        }
      }
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        warp.out[m][n][half * 2] *= correction;
        warp.out[m][n][half * 2 + 1] *= correction;
      }
      warp.row_max[m][half] = maximum;
      warp.row_sum[m][half * 2] *= correction;
    }
  }
}

// out += P · V. The sum of one product is laid out over the lanes as the left operand of the next wants it, so
// P never leaves the registers. Their own sum comes from the tensor cores too, as if V had a column of ones: 8
// products instead of 64 additions a step, 4% of the time, and a sum of what is multiplied with V, rounding included
// (docs/performance.md).
template <Dtype Type, typename Tile>
__device__ inline void accumulate(Warp<Tile>& warp, SharedAddress v,
                                  const float (&p)[Warp<Tile>::kFragments][Tile::kBlockN / 8][4]) {
  const uint32_t ones = pack<Type>(1.0f, 1.0f);
  const SharedAddress own = v + swizzle(warp.lane % 16, warp.lane / 16);
#pragma unroll
  for (int k = 0; k < Tile::kBlockN / 16; ++k) {
    uint32_t left[Warp<Tile>::kFragments][4];
#pragma unroll
    for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
      left[m][0] = pack<Type>(p[m][2 * k][0], p[m][2 * k][1]);
      left[m][1] = pack<Type>(p[m][2 * k][2], p[m][2 * k][3]);
      left[m][2] = pack<Type>(p[m][2 * k + 1][0], p[m][2 * k + 1][1]);
      left[m][3] = pack<Type>(p[m][2 * k + 1][2], p[m][2 * k + 1][3]);
      mma_sync<Type>(warp.row_sum[m], left[m], ones, ones);
    }
#pragma unroll
    for (int d = 0; d < kHeadDim / 16; ++d) {
      uint32_t values[4];  // 16 keys × 16 of d
      ldmatrix_trans(values, chunks_after(own, d * 2) + k * 16 * kRowBytes);
#pragma unroll
      for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
        mma_sync<Type>(warp.out[m][2 * d], left[m], values[0], values[1]);
        mma_sync<Type>(warp.out[m][2 * d + 1], left[m], values[2], values[3]);
      }
    }
  }
}

// Normalises the output and writes it, by way of the warp's own rows of shared memory, 16 bytes a lane: whole rows of
// 128 bytes instead of scattered words. Rows past the end of the head are left out.
template <Dtype Type, typename Tile>
__device__ inline void write_output(const Warp<Tile>& warp, char* shared, int first_row, char* head, int seq) {
  __syncwarp();  // in a head of one step nothing else parts the reads of Q from the writes below
#pragma unroll
  for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float normalise = 1.0f / warp.row_sum[m][half * 2];
      const int row = first_row + m * 16 + half * 8 + warp.lane / 4;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        *reinterpret_cast<uint32_t*>(shared + swizzle(row, n) + warp.lane % 4 * 4) =
            pack<Type>(warp.out[m][n][half * 2] * normalise, warp.out[m][n][half * 2 + 1] * normalise);
      }
    }
  }
  __syncwarp();  // no other warp touches these rows
#pragma unroll
  for (int i = 0; i < Tile::kWarpM / 4; ++i) {
    const int row = i * 4 + warp.lane / 8;
    const int chunk = warp.lane % 8;
    const uint4 data = *reinterpret_cast<const uint4*>(shared + swizzle(first_row + row, chunk));
    if (warp.first_query + row < seq) {
      *reinterpret_cast<uint4*>(head + (warp.first_query + row) * kRowBytes + chunk * 16) = data;
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernel
// ---------------------------------------------------------------------------------------------------------------------

struct Block {
  int64_t head;
  int first_query;
};

// Blocks of one head stand side by side, so that they find its K and V in L2. With Causal, later
// queries see more keys: their blocks go first, so that the short ones fill the last wave.
template <bool Causal, typename Tile>
__device__ inline Block this_block(int64_t heads, int seq) {
  const unsigned blocks_per_head = (seq + Tile::kBlockM - 1) / Tile::kBlockM;
  if constexpr (Causal) {
    const unsigned count = static_cast<unsigned>(heads);
    return {blockIdx.x % count, static_cast<int>(blocks_per_head - 1 - blockIdx.x / count) * Tile::kBlockM};
  } else {
    return {blockIdx.x / blocks_per_head, static_cast<int>(blockIdx.x % blocks_per_head) * Tile::kBlockM};
  }
}

template <typename Target, Dtype Type, bool Causal>
__global__ void __launch_bounds__(Target::Tile::kThreads, Target::kBlocksPerSm)
    attention(const __grid_constant__ Arguments arguments, const __grid_constant__ float scale_log2) {
  using Tile = typename Target::Tile;
#ifdef __CUDA_ARCH__
  static_assert(__CUDA_ARCH__ == Target::kArchitecture, "this translation unit is compiled for another target");
#endif
  constexpr int kStepBytes = Tile::kBlockN * kRowBytes;
  extern __shared__ __align__(128) char shared[];
  const SharedAddress shared_q = shared_address(shared);
  const SharedAddress shared_k = shared_q + Tile::kBlockM * kRowBytes;
  const SharedAddress shared_v = shared_k + Tile::kStages * kStepBytes;

  const int seq = arguments.seq;
  const Block block = this_block<Causal, Tile>(arguments.heads, seq);
  const int64_t head_offset = block.head * seq * kRowBytes;
  const char* k = static_cast<const char*>(arguments.k) + head_offset;
  const char* v = static_cast<const char*>(arguments.v) + head_offset;
  const int keys = Causal ? min(seq, block.first_query + Tile::kBlockM) : seq;
  const int steps = (keys + Tile::kBlockN - 1) / Tile::kBlockN;

  // Each step closes one group, also when there is nothing left to copy, so that counting groups counts steps.
  auto copy_step = [&](int step) {
    if (step < steps) {
      const int stage = step % Tile::kStages;
      copy_rows<Tile::kBlockN, Tile::kThreads>(shared_k + stage * kStepBytes, k, step * Tile::kBlockN, seq);
      copy_rows<Tile::kBlockN, Tile::kThreads>(shared_v + stage * kStepBytes, v, step * Tile::kBlockN, seq);
    }
    commit_group();
  };

  copy_rows<Tile::kBlockM, Tile::kThreads>(shared_q, static_cast<const char*>(arguments.q) + head_offset,
                                           block.first_query, seq);
#pragma unroll
  for (int step = 0; step < Tile::kStages - 1; ++step) {
    copy_step(step);
  }

  const int first_row = threadIdx.x / 32 * Tile::kWarpM;  // of the warp, in the block
  Warp<Tile> warp;
  warp.lane = threadIdx.x % 32;
  warp.first_query = block.first_query + first_row;
#pragma unroll
  for (int m = 0; m < Warp<Tile>::kFragments; ++m) {
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        warp.out[m][n][i] = 0.0f;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // The lowest finite number: a masked score minus the maximum is then -inf, and never -inf - -inf = NaN.
      warp.row_max[m][half] = -FLT_MAX;
      warp.row_sum[m][half * 2] = warp.row_sum[m][half * 2 + 1] = 0.0f;
    }
  }

  for (int step = 0; step < steps; ++step) {
    // Past the barrier everyone's copies of this step have arrived, and everyone has done with the step before it,
    // whose stage the next copies overwrite: one barrier serves both.
    wait_group<Tile::kStages - 2>();
    __syncthreads();
    copy_step(step + Tile::kStages - 1);
    if (step == 0) {
      load_queries(warp, shared_q, first_row, arguments.scale < 0.0f);
    }

    const int first_key = step * Tile::kBlockN;
    if (Causal && first_key > warp.first_query + Tile::kWarpM - 1) {
      continue;  // all these keys come after all this warp's queries; the barriers are still to be met
    }
    const int stage = step % Tile::kStages;
    float scores[Warp<Tile>::kFragments][Tile::kBlockN / 8][4];
    score<Type>(warp, shared_k + stage * kStepBytes, scores);
    const int last_visible = Causal ? min(warp.first_query, seq - 1) : seq - 1;  // for the warp's first query
    if (first_key + Tile::kBlockN - 1 > last_visible) {
      mask<Causal>(warp, first_key, seq - 1, scores);
    }
    softmax_step(warp, scale_log2, scores);
    accumulate<Type>(warp, shared_v + stage * kStepBytes, scores);
  }

  write_output<Type>(warp, shared, first_row, static_cast<char*>(arguments.out) + head_offset, seq);
}

// ---------------------------------------------------------------------------------------------------------------------
// The launch
// ---------------------------------------------------------------------------------------------------------------------

// Kernels are told apart by their target, not by their tile alone: the linker keeps one host function of each name, and
// with it one target's machine code.
template <typename Target, Dtype Type, bool Causal>
void launch(const Arguments& arguments, cudaStream_t stream) {
  using Tile = typename Target::Tile;
  constexpr int64_t kMaxBlocks = INT32_MAX;  // the limit of a grid's first dimension
  constexpr int kSharedWithoutOptIn = 48 * 1024;
  const int64_t blocks = arguments.heads * ((arguments.seq + Tile::kBlockM - 1) / Tile::kBlockM);
  if (blocks > kMaxBlocks) {
    throw std::runtime_error("fa_s512: q: expected B * H * ceil(S / " + std::to_string(Tile::kBlockM) +
                             ") of at most " + std::to_string(kMaxBlocks) + ", got " + std::to_string(blocks));
  }
  const auto kernel = attention<Target, Type, Causal>;
  if constexpr (Tile::kSharedBytes > kSharedWithoutOptIn) {
    FA_S512_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes));
  }

  // A negative scale is taken as its opposite on the negated Q: then the largest score is the one with the largest
  // weight. Never 0, for the -inf of a masked score times 0 is NaN; at the smallest normal number all weights are 1.
  constexpr float kLog2E = 1.44269504f;
  const float scale_log2 = std::fmax(std::fabs(arguments.scale) * kLog2E, FLT_MIN);

  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(Tile::kThreads);
  config.dynamicSmemBytes = Tile::kSharedBytes;
  config.stream = stream;
  FA_S512_CHECK(cudaLaunchKernelEx(&config, kernel, arguments, scale_log2));
}

template <typename Target, Dtype Type>
void launch(const Arguments& arguments, cudaStream_t stream) {
  return arguments.causal ? launch<Target, Type, true>(arguments, stream)
                          : launch<Target, Type, false>(arguments, stream);
}

template <typename Target>
void launch(const Arguments& arguments, cudaStream_t stream) {
  return arguments.dtype == Dtype::kFloat16 ? launch<Target, Dtype::kFloat16>(arguments, stream)
                                            : launch<Target, Dtype::kBFloat16>(arguments, stream);
}

}  // namespace fa_s512::cuda
