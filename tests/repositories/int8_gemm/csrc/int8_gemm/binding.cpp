// The operator int8_gemm as torch sees it, written to the LibTorch stable ABI.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gemm.h"

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE int8_gemm
#endif

#ifdef KERNELGATE_CUDA
// Weak, because a torch without CUDA does not define it and must be able to load the CPU path all the same.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);
#endif

namespace {

using int8_gemm::Arguments;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void check_matrix(const char* name, const Tensor& matrix, ScalarType dtype, const Tensor& a) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  STD_TORCH_CHECK(matrix.dim() == 2, name, ": expected 2 dimensions, got ", matrix.dim());
  STD_TORCH_CHECK(matrix.size(0) <= kMax, name, ": expected at most 2^31 - 1 rows, got ", matrix.size(0));
  STD_TORCH_CHECK(matrix.scalar_type() == dtype, name, ": expected ", dtype, ", got ", matrix.scalar_type());
  STD_TORCH_CHECK(matrix.device() == a.device(), name, ": expected the device of a");
  STD_TORCH_CHECK(matrix.is_contiguous(), name, ": expected a contiguous tensor");
}

Arguments check(const Tensor& out, const Tensor& a, const Tensor& b) {
  check_matrix("a", a, ScalarType::Char, a);
  check_matrix("b", b, ScalarType::Char, a);
  check_matrix("out", out, ScalarType::Int, a);
  const int64_t m = a.size(0);
  const int64_t n = b.size(0);
  const int64_t k = a.size(1);
  STD_TORCH_CHECK(k <= int8_gemm::kMaxK, "a: expected at most ", int8_gemm::kMaxK,
                  " columns, with which no sum leaves int32, got ", k);
  STD_TORCH_CHECK(b.size(1) == k, "b: expected ", k, " columns like a, got ", b.size(1));
  STD_TORCH_CHECK(out.size(0) == m && out.size(1) == n, "out: expected shape (", m, ", ", n, "), got (", out.size(0),
                  ", ", out.size(1), ")");
  return {out.mutable_data_ptr<int32_t>(), a.const_data_ptr<int8_t>(), b.const_data_ptr<int8_t>(), m, n, k};
}

void multiply_on_cpu(Tensor out, Tensor a, Tensor b) {
  constexpr int64_t kProductsPerTask = 65536;
  const Arguments arguments = check(out, a, b);
  torch::stable::parallel_for(0, out.numel(),
                              std::max<int64_t>(1, kProductsPerTask / std::max<int64_t>(1, arguments.k)),
                              [&](int64_t first, int64_t last) { int8_gemm::multiply_on_cpu(arguments, first, last); });
}

#ifdef KERNELGATE_CUDA

void multiply_on_cuda(Tensor out, Tensor a, Tensor b) {
  const Arguments arguments = check(out, a, b);
  if (out.numel() == 0) {
    return;
  }
  const int32_t device = a.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(device, &stream) == TORCH_SUCCESS, "torch gives no CUDA stream");
  int8_gemm::multiply_on_cuda(arguments, stream);
}

#endif

}  // namespace

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("int8_gemm(Tensor(a!) out, Tensor a, Tensor b) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) {
  library.impl("int8_gemm", TORCH_BOX(&multiply_on_cpu));
}

#ifdef KERNELGATE_CUDA
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) {
  library.impl("int8_gemm", TORCH_BOX(&multiply_on_cuda));
}
#endif
