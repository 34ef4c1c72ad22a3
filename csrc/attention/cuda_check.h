// CUDA calls that fail throw; nothing here ever ends the process.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#define FA_S512_CHECK(call) ::fa_s512::cuda::check((call), #call)

namespace fa_s512::cuda {

inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string("fa_s512: ") + call + " failed: " + cudaGetErrorName(status) + ", " +
                             cudaGetErrorString(status));
  }
}

}  // namespace fa_s512::cuda
