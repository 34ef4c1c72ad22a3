// How the Hopper path cuts its work. Pure numbers, so that they can be checked when compiling.
#pragma once

#include "../attention.h"

namespace fa_s512::cuda {

constexpr int kWarpgroupM = 64;  // rows of a wgmma, and of a consumer warpgroup
constexpr int kWarpM = 16;       // of each of its warps

// A block of threads has `Warpgroups` consumers of 64 queries each and a producer, which fills a ring of kStages tiles
// of K and V. docs/performance.md has what was measured.
template <int Warpgroups>
struct WgmmaTile {
  static constexpr int kWarpgroups = Warpgroups;
  static constexpr int kBlockM = Warpgroups * kWarpgroupM;
  // 96 keys gain nothing, and 128 leave no registers for four consumers.
  static constexpr int kBlockN = 64;
  // What shared memory holds beside Q: a head of S = 512 and the next one's first step.
  static constexpr int kStages = 9;
  static constexpr int kQBuffers = 2;  // the next tile's queries arrive during this one
  static constexpr int kThreads = (Warpgroups + 1) * 128;

  // setmaxnreg gives the producer's registers to the consumers. Both counts are multiples of 8, and all together no
  // more than the block was launched with.
  static constexpr int kProducerRegisters = 24;
  static constexpr int kConsumerRegisters = Warpgroups == 4 ? 112 : 240;

  static constexpr int kQBytes = kWarpgroupM * kHeadDim * 2;                  // of one warpgroup
  static constexpr int kStepBytes = kBlockN * kHeadDim * 2;                   // of K, and of V
  static constexpr int kBarriers = 2 * kQBuffers * Warpgroups + 2 * kStages;  // full and empty
  static constexpr int kSharedBytes = kQBuffers * Warpgroups * kQBytes + kStages * 2 * kStepBytes + kBarriers * 8;

  static_assert(kSharedBytes <= 227 * 1024, "the tile exceeds the shared memory of one block");
  static_assert(kBlockN % 32 == 0 && kBlockN % kWarpgroupM == 0, "only a tile's first step meets the diagonal");
};

}  // namespace fa_s512::cuda
