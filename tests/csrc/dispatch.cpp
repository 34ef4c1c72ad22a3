// The dispatch tables and the schedule of the Hopper path without CUDA, for test_dispatch.py.
#include "attention/dispatch.h"

#include "attention/wgmma/schedule.h"

using namespace fa_s512::cuda;

// -1, or the index of the target that is taken on the device; `specific` has a flag for each target.
extern "C" int best_target(const int* majors, const int* minors, const bool* specific, int count, int major,
                           int minor) {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    const Capability target{majors[i], minors[i], specific[i]};
    if (runs_on(target, major, minor) &&
        (best < 0 || is_better(target, {majors[best], minors[best], specific[best]}))) {
      best = i;
    }
  }
  return best;
}

extern "C" const char* kernel_for(int64_t heads, int seq, int multiprocessors) {
  return name_of(choose_kernel(heads, seq, multiprocessors));
}

// The head and first query of the tile that a block takes in a round; -1 past the last tile.
extern "C" void work(int round, int block, int blocks, int heads, int seq, int block_m, bool causal, int* result) {
  const int tile = wgmma::tile_of(round, block, blocks);
  wgmma::Work work{-1, -1};
  if (tile < heads * ((seq + block_m - 1) / block_m)) {
    work = causal ? wgmma::work_of<true>(tile, heads, seq, block_m) : wgmma::work_of<false>(tile, heads, seq, block_m);
  }
  result[0] = work.head;
  result[1] = work.first_query;
}
