#include "fa_s512_kernel.cuh"
#include "fa_s512_targets.h"

namespace fa_s512::cuda {

void forward_sm89(const Arguments& arguments, cudaStream_t stream) { launch<Sm89>(arguments, stream); }

}  // namespace fa_s512::cuda
