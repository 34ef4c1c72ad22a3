#include "../launch_record.h"
#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

KERNELGATE_LAUNCH("attention<Sm90a", 90, Sm90a::Tile::kSharedBytes, Sm90a::Tile::kThreads);

void forward_mma_sync_sm90a(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm90a>(arguments, stream); }

}  // namespace fa_s512::cuda
