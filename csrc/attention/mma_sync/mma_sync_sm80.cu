#include "../launch_record.h"
#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

KERNELGATE_LAUNCH("attention<Sm80", 80, Sm80::Tile::kSharedBytes, Sm80::Tile::kThreads);

void forward_sm80(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm80>(arguments, stream); }

}  // namespace fa_s512::cuda
