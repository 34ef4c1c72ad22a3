#include "../launch_record.h"
#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

KERNELGATE_LAUNCH("attention<Sm90", 90, Sm90::Tile::kSharedBytes, Sm90::Tile::kThreads);

void forward_sm90(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm90>(arguments, stream); }

}  // namespace fa_s512::cuda
