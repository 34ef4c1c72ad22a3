#include <cstdlib>
#include <stdexcept>
#include <string>

#include "../dispatch.h"
#include "../launch_record.h"
#include "../targets.h"
#include "kernel.cuh"

namespace fa_s512::cuda {

KERNELGATE_LAUNCH("attention<WgmmaTile<2>", 90, WgmmaTile<2>::kSharedBytes, WgmmaTile<2>::kThreads);
KERNELGATE_LAUNCH("attention<WgmmaTile<4>", 90, WgmmaTile<4>::kSharedBytes, WgmmaTile<4>::kThreads);

namespace {

// FA_S512_KERNEL, where it is set, takes the place of the table: for benchmarks and tests.
Kernel kernel_for(const Arguments& arguments, int multiprocessors) {
  const char* wanted = std::getenv("FA_S512_KERNEL");
  if (!wanted || !*wanted) {
    return choose_kernel(arguments.heads, arguments.seq, multiprocessors);
  }
  for (Kernel kernel : {Kernel::kMmaSync, Kernel::kWgmmaM128, Kernel::kWgmmaM256}) {
    if (std::string(name_of(kernel)) == wanted) {
      return kernel;
    }
  }
  throw std::runtime_error(std::string("fa_s512: FA_S512_KERNEL: expected mma_sync, wgmma_m128 or wgmma_m256, got ") +
                           wanted);
}

}  // namespace

void forward_sm90a(const Arguments& arguments, int device, cudaStream_t stream) {
  int multiprocessors = 0;
  FA_S512_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  switch (kernel_for(arguments, multiprocessors)) {
    case Kernel::kMmaSync:
      return forward_mma_sync_sm90a(arguments, device, stream);
    case Kernel::kWgmmaM128:
      return wgmma::launch<WgmmaTile<2>>(arguments, multiprocessors, stream);
    case Kernel::kWgmmaM256:
      return wgmma::launch<WgmmaTile<4>>(arguments, multiprocessors, stream);
  }
}

}  // namespace fa_s512::cuda
