// Which tile a block takes when. A tile is kBlockM queries of one head.
#pragma once

#ifdef __CUDACC__
#define FA_S512_HOST_DEVICE __host__ __device__
#else
#define FA_S512_HOST_DEVICE
#endif

namespace fa_s512::cuda::wgmma {

struct Work {
  int head;
  int first_query;
};

// The tile of a block in a round. Rounds go there and back over the blocks, so that with Causal, where tiles get
// shorter from round to round, a block that had a long one of its round has a short one of the next
// (docs/performance.md).
FA_S512_HOST_DEVICE constexpr int tile_of(int round, int block, int blocks) {
  return round * blocks + (round % 2 == 0 ? block : blocks - 1 - block);
}

// Tiles of a head stand side by side, so that its K and V are read from L2. With Causal, later queries see more keys:
// their tiles go first, so that the short ones fill the last round.
template <bool Causal>
FA_S512_HOST_DEVICE constexpr Work work_of(int tile, int heads, int seq, int block_m) {
  const int tiles_per_head = (seq + block_m - 1) / block_m;
  if (Causal) {
    return {tile % heads, (tiles_per_head - 1 - tile / heads) * block_m};
  }
  return {tile / tiles_per_head, tile % tiles_per_head * block_m};
}

}  // namespace fa_s512::cuda::wgmma
