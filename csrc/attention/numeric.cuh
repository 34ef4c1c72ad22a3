// What both CUDA paths compute with: rounding to the input dtype, 2^x, and reductions over the four lanes of a row.
#pragma once

#include <cstdint>

#include "attention.h"

namespace fa_s512::cuda {

constexpr int kRowBytes = kHeadDim * 2;  // of float16 and bfloat16

using SharedAddress = uint32_t;

__device__ inline SharedAddress shared_address(const void* pointer) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

// Two floats rounded to nearest, `low` in the low half, as fragments want them.
template <Dtype Type>
__device__ inline uint32_t pack(float low, float high) {
  static_assert(Type == Dtype::kFloat16 || Type == Dtype::kBFloat16);
  uint32_t packed;
  if constexpr (Type == Dtype::kFloat16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

// 2^x in one instruction, within 2 ulp; exp2f would spend three more on subnormal results, which vanish in the sum.
__device__ inline float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// 1 / x within 1 ulp.
__device__ inline float reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// The maximum over the four lanes that share a row of an accumulator.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}

__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFF, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFF, x, 2);
}

}  // namespace fa_s512::cuda
