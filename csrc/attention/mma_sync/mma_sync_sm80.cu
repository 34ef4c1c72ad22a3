#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

void forward_sm80(const Arguments& arguments, int, cudaStream_t stream) { launch<Sm80>(arguments, stream); }

}  // namespace fa_s512::cuda
