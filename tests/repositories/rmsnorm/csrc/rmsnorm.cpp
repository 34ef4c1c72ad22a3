// The operator rms_norm as torch sees it, written to the LibTorch stable ABI, and its CPU path.
#include "rmsnorm.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE rmsnorm
#endif

#ifdef KERNELGATE_CUDA
// Weak, because a torch without CUDA does not define it and must be able to load the CPU path all the same.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);
#endif

namespace {

using rmsnorm::Arguments;
using rmsnorm::Dtype;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// ---------------------------------------------------------------------------------------------------------------------
// Validation
// ---------------------------------------------------------------------------------------------------------------------

Dtype dtype_of(const Tensor& x) {
  switch (x.scalar_type()) {
    case ScalarType::Float:
      return Dtype::kFloat32;
    case ScalarType::Half:
      return Dtype::kFloat16;
    case ScalarType::BFloat16:
      return Dtype::kBFloat16;
    default:
      STD_TORCH_CHECK(false, "x: expected float32, float16 or bfloat16, got ", x.scalar_type());
  }
}

void check_like_x(const char* name, const Tensor& tensor, const Tensor& x) {
  STD_TORCH_CHECK(tensor.device() == x.device(), name, ": expected the device of x");
  STD_TORCH_CHECK(tensor.scalar_type() == x.scalar_type(), name, ": expected ", x.scalar_type(), " like x, got ",
                  tensor.scalar_type());
  STD_TORCH_CHECK(tensor.is_contiguous(), name, ": expected a contiguous tensor");
}

// The kernel reads its inputs through a cache that does not see its writes.
void check_apart(const Tensor& out, const char* name, const Tensor& input) {
  const auto first = [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data_ptr()); };
  const auto last = [&](const Tensor& tensor) { return first(tensor) + tensor.numel() * tensor.element_size(); };
  STD_TORCH_CHECK(last(out) <= first(input) || last(input) <= first(out), "out: shares memory with ", name);
}

Arguments check(const Tensor& out, const Tensor& x, const Tensor& weight, double eps) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const Dtype dtype = dtype_of(x);
  STD_TORCH_CHECK(x.dim() >= 1, "x: expected at least one dimension");
  STD_TORCH_CHECK(x.is_contiguous(), "x: expected a contiguous tensor");
  const int64_t columns = x.size(x.dim() - 1);
  const int64_t rows = columns ? x.numel() / columns : 0;
  STD_TORCH_CHECK(rows <= kMax && columns <= kMax, "x: expected at most 2^31 - 1 rows and columns, got ", rows, " and ",
                  columns);
  check_like_x("weight", weight, x);
  STD_TORCH_CHECK(weight.dim() == 1 && weight.size(0) == columns, "weight: expected shape (", columns, ",)");
  check_like_x("out", out, x);
  STD_TORCH_CHECK(out.sizes().equals(x.sizes()), "out: expected the shape of x");
  check_apart(out, "x", x);
  check_apart(out, "weight", weight);
  STD_TORCH_CHECK(std::isfinite(eps) && eps >= 0, "eps: expected a finite number that is not negative, got ", eps);
  const auto eps32 = static_cast<float>(eps);
  return {out.mutable_data_ptr(), x.const_data_ptr(), weight.const_data_ptr(), rows, columns, eps32, dtype};
}

// ---------------------------------------------------------------------------------------------------------------------
// CPU
// ---------------------------------------------------------------------------------------------------------------------

// Compilers must not reorder one sum of floats, but they turn sums that stand side by side into vector instructions.
template <typename T>
float sum_of_squares(const T* row, int64_t columns) {
  constexpr int kLanes = 16;
  float sums[kLanes] = {};
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int count = static_cast<int>(std::min<int64_t>(kLanes, columns - i));
    for (int lane = 0; lane < count; ++lane) {
      const float value = row[i + lane];
      sums[lane] += value * value;
    }
  }
  float sum = 0.0f;
  for (const float lane : sums) {
    sum += lane;
  }
  return sum;
}

template <typename T>
void rms_norm_cpu(const Arguments& arguments) {
  constexpr int64_t kElementsPerTask = 16384;
  const int64_t columns = arguments.columns;
  const auto* weight = static_cast<const T*>(arguments.weight);
  const auto run_rows = [&](int64_t first, int64_t last) {
    for (int64_t m = first; m < last; ++m) {
      const T* x = static_cast<const T*>(arguments.x) + m * columns;
      T* out = static_cast<T*>(arguments.out) + m * columns;
      const float scale = 1.0f / std::sqrt(sum_of_squares(x, columns) / columns + arguments.eps);
      for (int64_t n = 0; n < columns; ++n) {
        out[n] = static_cast<T>(static_cast<float>(x[n]) * scale * static_cast<float>(weight[n]));
      }
    }
  };
  torch::stable::parallel_for(0, arguments.rows, std::max<int64_t>(1, kElementsPerTask / columns), run_rows);
}

void rms_norm_on_cpu(Tensor out, Tensor x, Tensor weight, double eps) {
  const Arguments arguments = check(out, x, weight, eps);
  if (arguments.rows == 0) {
    return;
  }
  switch (arguments.dtype) {
    case Dtype::kFloat32:
      return rms_norm_cpu<float>(arguments);
    case Dtype::kFloat16:
      return rms_norm_cpu<torch::headeronly::Half>(arguments);
    case Dtype::kBFloat16:
      return rms_norm_cpu<torch::headeronly::BFloat16>(arguments);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// CUDA
// ---------------------------------------------------------------------------------------------------------------------

#ifdef KERNELGATE_CUDA

void rms_norm_on_cuda(Tensor out, Tensor x, Tensor weight, double eps) {
  const Arguments arguments = check(out, x, weight, eps);
  if (arguments.rows == 0) {
    return;
  }
  const int32_t device = x.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device);
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(device, &stream) == TORCH_SUCCESS, "torch gives no CUDA stream");
  rmsnorm::rms_norm_cuda(arguments, stream);
}

#endif

}  // namespace

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("rms_norm(Tensor(a!) out, Tensor x, Tensor weight, float eps) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) { library.impl("rms_norm", TORCH_BOX(&rms_norm_on_cpu)); }

#ifdef KERNELGATE_CUDA
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) {
  library.impl("rms_norm", TORCH_BOX(&rms_norm_on_cuda));
}
#endif
