// The targets compiled into this library: one translation unit each, named by the build with -DFA_S512_SM<nn>.
#pragma once

#include "fa_s512.h"

#if defined(FA_S512_SM80) || defined(FA_S512_SM89) || defined(FA_S512_SM90)
#define FA_S512_HAS_TARGETS 1

#include <cuda_runtime_api.h>

namespace fa_s512::cuda {

void forward_sm80(const Arguments& arguments, cudaStream_t stream);
void forward_sm89(const Arguments& arguments, cudaStream_t stream);
void forward_sm90(const Arguments& arguments, cudaStream_t stream);

struct Target {
  int major;
  int minor;
  void (*forward)(const Arguments& arguments, cudaStream_t stream);
};

constexpr Target kTargets[] = {
#ifdef FA_S512_SM80
    {8, 0, forward_sm80},
#endif
#ifdef FA_S512_SM89
    {8, 9, forward_sm89},
#endif
#ifdef FA_S512_SM90
    {9, 0, forward_sm90},
#endif
};

}  // namespace fa_s512::cuda

#else
#define FA_S512_HAS_TARGETS 0
#endif
