#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

void forward_sm90(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm90>(arguments, stream); }

}  // namespace fa_s512::cuda
