// The operator row_sums as torch sees it, written to the LibTorch stable ABI.
#include "row_sums.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE row_sums
#endif

#ifdef KERNELGATE_CUDA
// Weak, because a torch without CUDA does not define it and must be able to load the library all the same.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void row_sums_on_cuda(Tensor out, Tensor x) {
  STD_TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && x.scalar_type() == ScalarType::Float,
                  "x: expected a contiguous matrix of float32");
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  STD_TORCH_CHECK(rows > 0 && rows <= 65535 && columns > 0, "x: expected 1 to 65535 rows, got ", rows);
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == rows && out.is_contiguous() &&
                      out.scalar_type() == ScalarType::Float && out.device() == x.device(),
                  "out: expected a sum for each row");
  const int32_t device = x.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(device, &stream) == TORCH_SUCCESS, "torch gives no CUDA stream");
  row_sums::row_sums_cuda(static_cast<float*>(out.mutable_data_ptr()), static_cast<const float*>(x.const_data_ptr()),
                          rows, columns, stream);
}

}  // namespace
#endif

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) { library.def("row_sums(Tensor(a!) out, Tensor x) -> ()"); }

#ifdef KERNELGATE_CUDA
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) {
  library.impl("row_sums", TORCH_BOX(&row_sums_on_cuda));
}
#endif
