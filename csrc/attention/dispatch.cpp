// Runs the best of the targets that were compiled in on the device at hand.
#include "dispatch.h"

#include <stdexcept>
#include <string>

#include "attention.h"
#include "targets.h"

#if FA_S512_HAS_TARGETS
#include "cuda_check.h"
#endif

namespace fa_s512::cuda {

#if FA_S512_HAS_TARGETS

namespace {

const Target* best_target(int major, int minor) {
  const Target* best = nullptr;
  for (const Target& target : kTargets) {
    if (runs_on(target.capability, major, minor) && (!best || is_better(target.capability, best->capability))) {
      best = &target;
    }
  }
  return best;
}

std::string compiled_targets() {
  std::string names;
  for (const Target& target : kTargets) {
    names += (names.empty() ? "" : ", ") + name_of(target.capability);
  }
  return names;
}

}  // namespace

void forward(const Arguments& arguments, int device, void* stream) {
  int major = 0;
  int minor = 0;
  FA_S512_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  FA_S512_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  const Target* target = best_target(major, minor);
  if (!target) {
    const std::string capability = std::to_string(major) + "." + std::to_string(minor);
    throw std::runtime_error("fa_s512: cuda:" + std::to_string(device) + " has compute capability " + capability +
                             ", but this library was compiled for " + compiled_targets() +
                             "; build it again with TORCH_CUDA_ARCH_LIST=" + capability);
  }
  target->forward(arguments, device, static_cast<cudaStream_t>(stream));
}

#else

void forward(const Arguments&, int device, void*) {
  throw std::runtime_error("fa_s512: q is on cuda:" + std::to_string(device) +
                           ", but this library was compiled for the CPU alone; build it again with "
                           "TORCH_CUDA_ARCH_LIST=<the device's compute capability>");
}

#endif

}  // namespace fa_s512::cuda
