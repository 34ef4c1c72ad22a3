// Chooses, among the targets that were compiled in, the one for the device at hand.
#include <stdexcept>
#include <string>

#include "fa_s512.h"
#include "fa_s512_targets.h"

#if FA_S512_HAS_TARGETS
#include "fa_s512_check.h"
#endif

namespace fa_s512::cuda {

#if FA_S512_HAS_TARGETS

namespace {

// Machine code runs on its own major version, from its own minor version on; the newest that fits is the fastest.
const Target* best_target(int major, int minor) {
  const Target* best = nullptr;
  for (const Target& target : kTargets) {
    const bool runs = target.major == major && target.minor <= minor;
    if (runs && (!best || target.minor > best->minor)) {
      best = &target;
    }
  }
  return best;
}

std::string compiled_targets() {
  std::string names;
  for (const Target& target : kTargets) {
    names += (names.empty() ? "sm_" : ", sm_") + std::to_string(target.major) + std::to_string(target.minor);
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
  target->forward(arguments, static_cast<cudaStream_t>(stream));
}

#else

void forward(const Arguments&, int device, void*) {
  throw std::runtime_error("fa_s512: q is on cuda:" + std::to_string(device) +
                           ", but this library was compiled for the CPU alone; build it again with "
                           "TORCH_CUDA_ARCH_LIST=<the device's compute capability>");
}

#endif

}  // namespace fa_s512::cuda
