// Tensor maps for TMA, made by the driver's cuTensorMapEncodeTiled. The driver is asked for through the runtime and
// never linked, so that the library loads on a machine without one.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "../attention.h"
#include "../cuda_check.h"

namespace fa_s512::cuda::wgmma {

struct TensorMaps {
  CUtensorMap q;
  CUtensorMap k;
  CUtensorMap v;
  CUtensorMap out;
};

using Encode = decltype(&cuTensorMapEncodeTiled);

inline Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  FA_S512_CHECK(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess) {
    throw std::runtime_error("fa_s512: the driver has no cuTensorMapEncodeTiled; it must be of CUDA 12 or newer");
  }
  return reinterpret_cast<Encode>(function);
}

// (d, seq, heads) with boxes of `rows` rows. A dimension for seq of its own clips boxes at the end of each head.
inline CUtensorMap tensor_map(Encode encode, const Arguments& arguments, const void* tensor, int rows) {
  constexpr int kDimensions = 3;
  constexpr cuuint64_t kRow = kHeadDim * 2;
  const cuuint64_t sizes[kDimensions] = {kHeadDim, static_cast<cuuint64_t>(arguments.seq),
                                         static_cast<cuuint64_t>(arguments.heads)};
  const cuuint64_t strides[kDimensions - 1] = {kRow, kRow * arguments.seq};
  const cuuint32_t box[kDimensions] = {kHeadDim, static_cast<cuuint32_t>(rows), 1};
  const cuuint32_t steps[kDimensions] = {1, 1, 1};
  CUtensorMap map;
  const CUresult status = encode(
      &map, arguments.dtype == Dtype::kFloat16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      kDimensions, const_cast<void*>(tensor), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error("fa_s512: cuTensorMapEncodeTiled failed with CUDA error " + std::to_string(status));
  }
  return map;
}

inline TensorMaps tensor_maps(const Arguments& arguments, int rows_q, int rows_k, int rows_out) {
  static const Encode encode = find_encode();
  return {tensor_map(encode, arguments, arguments.q, rows_q), tensor_map(encode, arguments, arguments.k, rows_k),
          tensor_map(encode, arguments, arguments.v, rows_k), tensor_map(encode, arguments, arguments.out, rows_out)};
}

}  // namespace fa_s512::cuda::wgmma
