// The attention kernel for Hopper (sm_90a): online softmax over tiles of keys with wgmma, TMA and specialised warps,
// after FlashAttention-3 (J. Shah et al., arXiv:2407.08608).
//
//   q, k, v, out   (heads, seq, 64) float16 or bfloat16, contiguous, aligned to 16 bytes
//
// A persistent block of one producer and two or four consumer warpgroups works through tiles of 64 queries a consumer.
// The producer keeps a ring of K and V full by TMA; consumers take the keys from the last to the first, so that the
// step with keys that must be masked is the first. One consumer's exponentials overlap another's products.
//
// Scores, maxima, sums and the output stay in float32 registers; P is rounded to the inputs' dtype for the
// product with V. A row's largest element of P so far is always exactly 1, which rounding leaves alone: P relative to
// an older maximum cost 5% of mean error (docs/performance.md). The result does not depend on timing: it is the
// same to the bit from run to run.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../cuda_check.h"
#include "../swizzle.cuh"
#include "ptx.cuh"
#include "schedule.h"
#include "tensor_map.h"
#include "tile.h"

namespace fa_s512::cuda::wgmma {

struct Problem {
  int heads;
  int seq;
  int tiles;
  float scale_log2;
  bool negate;  // the scale was negative
};

template <typename Tile, bool Causal>
__device__ inline Work work_of(const Problem& problem, int tile) {
  return work_of<Causal>(tile, problem.heads, problem.seq, Tile::kBlockM);
}

// How many tiles of keys the queries of a block see.
template <typename Tile, bool Causal>
__device__ inline int steps_of(const Problem& problem, const Work& work) {
  const int keys = Causal ? min(problem.seq, work.first_query + Tile::kBlockM) : problem.seq;
  return (keys + Tile::kBlockN - 1) / Tile::kBlockN;
}

// A warpgroup's rows in its block. With Causal the last rows see the most keys, so every other round turns them round.
template <typename Tile, bool Causal>
__device__ inline int first_row_of(int warpgroup, int round) {
  return (Causal && round % 2 ? Tile::kWarpgroups - 1 - warpgroup : warpgroup) * kWarpgroupM;
}

// ---------------------------------------------------------------------------------------------------------------------
// Shared memory
// ---------------------------------------------------------------------------------------------------------------------

template <typename Tile>
struct Shared {
  SharedAddress base;

  __device__ SharedAddress q(int buffer, int warpgroup) const {
    return base + (buffer * Tile::kWarpgroups + warpgroup) * Tile::kQBytes;
  }
  __device__ SharedAddress k(int stage) const { return q(Tile::kQBuffers, 0) + stage * 2 * Tile::kStepBytes; }
  __device__ SharedAddress v(int stage) const { return k(stage) + Tile::kStepBytes; }
  __device__ SharedAddress barriers() const { return k(Tile::kStages); }
  __device__ SharedAddress q_full(int buffer, int warpgroup) const {
    return barriers() + (buffer * Tile::kWarpgroups + warpgroup) * 16;
  }
  __device__ SharedAddress q_empty(int buffer, int warpgroup) const { return q_full(buffer, warpgroup) + 8; }
  __device__ SharedAddress full(int stage) const { return q_full(Tile::kQBuffers, 0) + stage * 16; }
  __device__ SharedAddress empty(int stage) const { return full(stage) + 8; }
};

// Position in the ring of K and V.
template <typename Tile>
struct Ring {
  int stage = 0;
  int phase = 0;

  __device__ void advance() {
    if (++stage == Tile::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Producer: one thread keeps the ring of K and V and the buffers of Q full
// ---------------------------------------------------------------------------------------------------------------------

template <typename Tile, bool Causal>
__device__ inline void produce(const TensorMaps& maps, const Problem& problem, const Shared<Tile>& shared) {
  Ring<Tile> ring;
  for (int round = 0;; ++round) {
    const int tile = tile_of(round, blockIdx.x, gridDim.x);
    if (tile >= problem.tiles) {
      return;
    }
    const Work work = work_of<Tile, Causal>(problem, tile);
    const int buffer = round % Tile::kQBuffers;
    const int phase = round / Tile::kQBuffers & 1;
    for (int warpgroup = 0; warpgroup < Tile::kWarpgroups; ++warpgroup) {
      const int row = work.first_query + first_row_of<Tile, Causal>(warpgroup, round);
      mbarrier_wait(shared.q_empty(buffer, warpgroup), phase ^ 1);
      mbarrier_expect(shared.q_full(buffer, warpgroup), Tile::kQBytes);
      tma_load(shared.q(buffer, warpgroup), maps.q, row, work.head, shared.q_full(buffer, warpgroup));
    }
    for (int step = steps_of<Tile, Causal>(problem, work) - 1; step >= 0; --step) {
      mbarrier_wait(shared.empty(ring.stage), ring.phase ^ 1);
      mbarrier_expect(shared.full(ring.stage), 2 * Tile::kStepBytes);
      tma_load(shared.k(ring.stage), maps.k, step * Tile::kBlockN, work.head, shared.full(ring.stage));
      tma_load(shared.v(ring.stage), maps.v, step * Tile::kBlockN, work.head, shared.full(ring.stage));
      ring.advance();
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Consumer: a warpgroup owns 64 rows. A thread holds two of them, lane / 4 and lane / 4 + 8 of its warp's 16: of each
// the columns 8 n + 2 (lane % 4) and the next, at [4 n + 2 half] and [4 n + 2 half + 1].
// ---------------------------------------------------------------------------------------------------------------------

struct Rows {
  float maximum[2];         // of the scores so far, times scale_log2
  float sum[2];             // of P, in this thread's columns
  float out[kHeadDim / 2];  // unnormalised
};

template <typename Tile>
using Scores = float[Tile::kBlockN / 2];

template <typename Tile>
using PFragments = uint32_t[Tile::kBlockN / 16][4];

// scores = Q Kᵀ, started.
template <typename Tile, Dtype Type>
__device__ inline void start_scores(SharedAddress q, SharedAddress k, Scores<Tile>& scores) {
  const uint64_t a = descriptor(q);
  const uint64_t b = descriptor(k);
#pragma unroll
  for (int d = 0; d < kHeadDim / 16; ++d) {
    wgmma_ss<Type>(scores, a + d * (32 >> 4), b + d * (32 >> 4), d > 0);
  }
  wgmma_commit();
}

// out += P · V, started.
template <typename Tile, Dtype Type>
__device__ inline void start_output(const PFragments<Tile>& p, SharedAddress v, float (&out)[kHeadDim / 2]) {
  const uint64_t b = descriptor(v);
#pragma unroll
  for (int k = 0; k < Tile::kBlockN / 16; ++k) {
    wgmma_rs<Type>(out, p[k], b + k * (16 * kRowBytes >> 4));
  }
  wgmma_commit();
}

// Sets the scores of keys past each row's last visible one to -inf.
template <bool Causal, int Groups>
__device__ inline void mask(int first_key, int row, int seq, float* scores) {
  const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int last = (Causal ? min(row + half * 8, seq - 1) : seq - 1) - column;
#pragma unroll
    for (int n = 0; n < Groups; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = scores[n * 4 + half * 2 + i];
        x = n * 8 + i > last ? -INFINITY : x;
      }
    }
  }
}

// Turns scores into P = 2^(score · scale_log2 - maximum), and adds them to the rows' sums.
template <int Groups>
__device__ inline void exponentiate(float scale_log2, float* scores, Rows& rows) {
#pragma unroll
  for (int n = 0; n < Groups; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = scores[n * 4 + half * 2 + i];
        x = exp2_approx(fmaf(x, scale_log2, -rows.maximum[half]));
        rows.sum[half] += x;
      }
    }
  }
}

// The maximum of each row over the first `Groups` × 8 columns, times scale_log2. Finite, so that a masked score minus
// the maximum is -inf and never NaN.
template <int Groups>
__device__ inline void row_maxima(float scale_log2, const float* scores, float (&maxima)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float x = fmaxf(scores[half * 2], scores[half * 2 + 1]);
#pragma unroll
    for (int n = 1; n < Groups; ++n) {
      x = fmaxf(x, fmaxf(scores[n * 4 + half * 2], scores[n * 4 + half * 2 + 1]));
    }
    maxima[half] = fmaxf(quad_max(x) * scale_log2, -FLT_MAX);
  }
}

// The softmax of a tile's first step. Only the first `visible` columns hold keys that some row sees: the rest is left
// out in units of 32 columns, and weighs 0.
template <typename Tile, bool Causal>
__device__ inline void softmax_first(int visible, int first_key, int row, int seq, float scale_log2,
                                     Scores<Tile>& scores, Rows& rows) {
  auto with = [&](auto groups) {
    constexpr int kGroups = decltype(groups)::value;
    if (Causal || visible % 32 != 0) {
      mask<Causal, kGroups>(first_key, row, seq, scores);
    }
    row_maxima<kGroups>(scale_log2, scores, rows.maximum);
    exponentiate<kGroups>(scale_log2, scores, rows);
#pragma unroll
    for (int i = kGroups * 4; i < Tile::kBlockN / 2; ++i) {
      scores[i] = 0.0f;
    }
  };
  if (visible <= 32) {
    with(std::integral_constant<int, 4>());
  } else {
    with(std::integral_constant<int, Tile::kBlockN / 8>());
  }
}

// The softmax of a later step. The output so far must then be multiplied by `correction`, as its sums are here.
template <typename Tile>
__device__ inline void softmax_next(float scale_log2, Scores<Tile>& scores, Rows& rows, float (&correction)[2]) {
  constexpr int kGroups = Tile::kBlockN / 8;
  float maxima[2];
  row_maxima<kGroups>(scale_log2, scores, maxima);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float maximum = fmaxf(rows.maximum[half], maxima[half]);
    correction[half] = exp2_approx(rows.maximum[half] - maximum);
    rows.maximum[half] = maximum;
    rows.sum[half] *= correction[half];
  }
  exponentiate<kGroups>(scale_log2, scores, rows);
}

template <typename Tile, Dtype Type>
__device__ inline void round_p(const Scores<Tile>& scores, PFragments<Tile>& p) {
#pragma unroll
  for (int k = 0; k < Tile::kBlockN / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[k][i] = pack<Type>(scores[k * 8 + i * 2], scores[k * 8 + i * 2 + 1]);
    }
  }
}

__device__ inline void rescale_output(Rows& rows, const float (&correction)[2]) {
#pragma unroll
  for (int i = 0; i < kHeadDim / 2; ++i) {
    rows.out[i] *= correction[i / 2 % 2];
  }
}

// The output goes through the warpgroup's own Q tile, each warp's 16 rows by themselves.
template <Dtype Type>
__device__ inline void write_output(const CUtensorMap& map, SharedAddress tile, const Rows& rows, int first_row,
                                    int head, int seq) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 % 4;
  const float normalise[2] = {reciprocal(quad_sum(rows.sum[0])), reciprocal(quad_sum(rows.sum[1]))};
  const SharedAddress to = tile + warp * kWarpM * kRowBytes;
  const int row = lane % 16;
#pragma unroll
  for (int n = 0; n < kHeadDim / 8; n += 2) {
    uint32_t fragment[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (n + i / 2) * 4 + i % 2 * 2;
      fragment[i] = pack<Type>(rows.out[at] * normalise[i % 2], rows.out[at + 1] * normalise[i % 2]);
    }
    stmatrix(to + swizzle(row, n + lane / 16), fragment);
  }
  fence_proxy_async();
  __syncwarp();
  if (lane == 0 && first_row + warp * kWarpM < seq) {
    tma_store(map, to, first_row + warp * kWarpM, head);
  }
  __syncwarp();
}

// A negative scale is taken as its opposite on the negated Q.
__device__ inline void negate_queries(SharedAddress q, int barrier) {
#pragma unroll
  for (int i = 0; i < kWarpgroupM * kRowBytes / 4 / 128; ++i) {
    const SharedAddress at = q + (i * 128 + threadIdx.x % 128) * 4;
    uint32_t pair;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(pair) : "r"(at) : "memory");
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(pair ^ 0x80008000u) : "memory");
  }
  fence_proxy_async();
  named_barrier_sync(barrier, 128);
}

template <typename Tile, Dtype Type, bool Causal>
__device__ inline void consume(const TensorMaps& maps, const Problem& problem, const Shared<Tile>& shared) {
  const int warpgroup = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0);  // uniform, and known to be
  const int lane = threadIdx.x % 32;
  const int row_in_warpgroup = threadIdx.x / 32 % 4 * 16 + lane / 4;
  const int own_barrier = 1 + warpgroup;  // 0 is __syncthreads'
  const float scale_log2 = problem.scale_log2;

  Ring<Tile> ring;
  auto arrive = [&](SharedAddress barrier) {
    if (lane == 0) {
      mbarrier_arrive(barrier);
    }
  };
  // A tile's output leaves by way of its Q buffer, which is handed back during the next tile rather than waited for.
  int stored_buffer = -1;
  auto release_stored = [&] {
    if (stored_buffer >= 0 && lane == 0) {
      tma_store_wait_read();
      mbarrier_arrive(shared.q_empty(stored_buffer, warpgroup));
    }
    stored_buffer = -1;
  };

  for (int round = 0;; ++round) {
    const int tile = tile_of(round, blockIdx.x, gridDim.x);
    if (tile >= problem.tiles) {
      break;
    }
    const Work work = work_of<Tile, Causal>(problem, tile);
    const int buffer = round % Tile::kQBuffers;
    const SharedAddress q = shared.q(buffer, warpgroup);
    const int first_row = work.first_query + first_row_of<Tile, Causal>(warpgroup, round);
    const int end_row = min(first_row + kWarpgroupM, problem.seq);
    const int end_key = first_row >= problem.seq ? 0 : Causal ? end_row : problem.seq;
    int step = steps_of<Tile, Causal>(problem, work) - 1;

    for (; step * Tile::kBlockN >= end_key && step >= 0; --step) {  // keys that none of this warpgroup's rows sees
      mbarrier_wait(shared.full(ring.stage), ring.phase);
      arrive(shared.empty(ring.stage));
      ring.advance();
    }
    mbarrier_wait(shared.q_full(buffer, warpgroup), round / Tile::kQBuffers & 1);
    if (step < 0) {  // none of its rows exists
      release_stored();
      arrive(shared.q_empty(buffer, warpgroup));
      continue;
    }
    if (problem.negate) {
      negate_queries(q, own_barrier);
    }

    Rows rows{};
    Scores<Tile> scores;
    PFragments<Tile> p;

    mbarrier_wait(shared.full(ring.stage), ring.phase);
    warpgroup_fence(scores);
    wgmma_fence();
    start_scores<Tile, Type>(q, shared.k(ring.stage), scores);
    wgmma_wait<0>();
    warpgroup_fence(scores);
    softmax_first<Tile, Causal>(end_key - step * Tile::kBlockN, step * Tile::kBlockN, first_row + row_in_warpgroup,
                                problem.seq, scale_log2, scores, rows);
    round_p<Tile, Type>(scores, p);
    release_stored();

    // The main loop: the next step's scores and the last step's product with V, started together, and the softmax of
    // the former while the latter is under way. All rows are rescaled at every step, for a branch around it costs more
    // than it saves (docs/performance.md).
    for (; step > 0; --step) {
      const int last_stage = ring.stage;
      ring.advance();
      mbarrier_wait(shared.full(ring.stage), ring.phase);
      warpgroup_fence(rows.out);
      warpgroup_fence(scores);
      wgmma_fence();
      start_scores<Tile, Type>(q, shared.k(ring.stage), scores);
      start_output<Tile, Type>(p, shared.v(last_stage), rows.out);
      wgmma_wait<1>();
      warpgroup_fence(scores);
      float correction[2];
      softmax_next<Tile>(scale_log2, scores, rows, correction);
      wgmma_wait<0>();
      warpgroup_fence(rows.out);
      warpgroup_fence(scores);  // P is rounded from here on: until now the product has read the last ones
      arrive(shared.empty(last_stage));
      rescale_output(rows, correction);
      round_p<Tile, Type>(scores, p);
    }

    warpgroup_fence(rows.out);
    wgmma_fence();
    start_output<Tile, Type>(p, shared.v(ring.stage), rows.out);
    wgmma_wait<0>();
    warpgroup_fence(rows.out);
    arrive(shared.empty(ring.stage));
    ring.advance();
    named_barrier_sync(own_barrier, 128);  // all four warps have done with Q, whose place the output takes
    write_output<Type>(maps.out, q, rows, first_row, work.head, problem.seq);
    stored_buffer = buffer;
  }
  if (lane == 0) {
    tma_store_wait_read();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernel
// ---------------------------------------------------------------------------------------------------------------------

template <typename Tile, Dtype Type, bool Causal>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    attention(const __grid_constant__ TensorMaps maps, const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  const Shared<Tile> shared{shared_address(memory)};
  constexpr int kProducer = Tile::kWarpgroups * 128;

  if (threadIdx.x == kProducer) {
    tma_prefetch(maps.q);
    tma_prefetch(maps.k);
    tma_prefetch(maps.v);
    tma_prefetch(maps.out);
    for (int buffer = 0; buffer < Tile::kQBuffers; ++buffer) {
      for (int warpgroup = 0; warpgroup < Tile::kWarpgroups; ++warpgroup) {
        mbarrier_init(shared.q_full(buffer, warpgroup), 1);
        mbarrier_init(shared.q_empty(buffer, warpgroup), 4);
      }
    }
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      mbarrier_init(shared.full(stage), 1);
      mbarrier_init(shared.empty(stage), 4 * Tile::kWarpgroups);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (__shfl_sync(0xFFFFFFFF, threadIdx.x / 32, 0) >= kProducer / 32) {
    setmaxnreg_dec<Tile::kProducerRegisters>();
    if (threadIdx.x == kProducer) {
      produce<Tile, Causal>(maps, problem, shared);
    }
  } else {
    setmaxnreg_inc<Tile::kConsumerRegisters>();
    consume<Tile, Type, Causal>(maps, problem, shared);
  }
#endif
}

// ---------------------------------------------------------------------------------------------------------------------
// The launch
// ---------------------------------------------------------------------------------------------------------------------

template <typename Tile, Dtype Type, bool Causal>
void launch(const Arguments& arguments, int multiprocessors, cudaStream_t stream) {
  const auto kernel = attention<Tile, Type, Causal>;
  FA_S512_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes));

  // A negative scale is taken as its opposite on the negated Q: then the largest score is the one with the largest
  // weight. Never 0, for the -inf of a masked score times 0 is NaN; at the smallest normal number all weights are 1.
  constexpr float kLog2E = 1.44269504f;
  Problem problem;
  problem.heads = static_cast<int>(arguments.heads);
  problem.seq = arguments.seq;
  problem.tiles = problem.heads * ((arguments.seq + Tile::kBlockM - 1) / Tile::kBlockM);
  problem.scale_log2 = std::fmax(std::fabs(arguments.scale) * kLog2E, FLT_MIN);
  problem.negate = arguments.scale < 0.0f;
  const TensorMaps maps = tensor_maps(arguments, kWarpgroupM, Tile::kBlockN, kWarpM);

  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min(problem.tiles, multiprocessors)));
  config.blockDim = dim3(Tile::kThreads);
  config.dynamicSmemBytes = Tile::kSharedBytes;
  config.stream = stream;
  FA_S512_CHECK(cudaLaunchKernelEx(&config, kernel, maps, problem));
}

template <typename Tile, Dtype Type>
void launch(const Arguments& arguments, int multiprocessors, cudaStream_t stream) {
  return arguments.causal ? launch<Tile, Type, true>(arguments, multiprocessors, stream)
                          : launch<Tile, Type, false>(arguments, multiprocessors, stream);
}

template <typename Tile>
void launch(const Arguments& arguments, int multiprocessors, cudaStream_t stream) {
  return arguments.dtype == Dtype::kFloat16 ? launch<Tile, Dtype::kFloat16>(arguments, multiprocessors, stream)
                                            : launch<Tile, Dtype::kBFloat16>(arguments, multiprocessors, stream);
}

}  // namespace fa_s512::cuda::wgmma
