// The targets compiled into this library, named by the build with -DKERNELGATE_SM<nn>: one translation unit each for
// every kernel that the target has.
#pragma once

#include "attention.h"
#include "dispatch.h"

#if defined(KERNELGATE_SM80) || defined(KERNELGATE_SM89) || defined(KERNELGATE_SM90) || defined(KERNELGATE_SM90A)
#define FA_S512_HAS_TARGETS 1

#include <cuda_runtime_api.h>

namespace fa_s512::cuda {

void forward_sm80(const Arguments& arguments, int device, cudaStream_t stream);
void forward_sm89(const Arguments& arguments, int device, cudaStream_t stream);
void forward_sm90(const Arguments& arguments, int device, cudaStream_t stream);
void forward_sm90a(const Arguments& arguments, int device, cudaStream_t stream);
void forward_mma_sync_sm90a(const Arguments& arguments, int device, cudaStream_t stream);

struct Target {
  Capability capability;
  void (*forward)(const Arguments& arguments, int device, cudaStream_t stream);
};

constexpr Target kTargets[] = {
#ifdef KERNELGATE_SM80
    {{8, 0, false}, forward_sm80},
#endif
#ifdef KERNELGATE_SM89
    {{8, 9, false}, forward_sm89},
#endif
#ifdef KERNELGATE_SM90
    {{9, 0, false}, forward_sm90},
#endif
#ifdef KERNELGATE_SM90A
    {{9, 0, true}, forward_sm90a},
#endif
};

}  // namespace fa_s512::cuda

#else
#define FA_S512_HAS_TARGETS 0
#endif
