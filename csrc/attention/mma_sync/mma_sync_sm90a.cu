#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

void forward_mma_sync_sm90a(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm90a>(arguments, stream); }

}  // namespace fa_s512::cuda
