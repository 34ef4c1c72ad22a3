#include "../launch_record.h"
#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

KERNELGATE_LAUNCH("attention<Sm89", 89, Sm89::Tile::kSharedBytes, Sm89::Tile::kThreads);

void forward_sm89(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm89>(arguments, stream); }

}  // namespace fa_s512::cuda
