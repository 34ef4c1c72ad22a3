// The operators that torch sees, written to the LibTorch stable ABI: one binary serves every torch from 2.11 on, with
// or without CUDA. Here inputs are validated and handed to the kernels as raw pointers.
//
// KERNELGATE_NAMESPACE names the torch.ops namespace, so that two builds of these sources can live in one process.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "attention.h"

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE fa_s512
#endif

// Weak, because a torch without CUDA does not define it, and must be able to load the library all the same.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// ---------------------------------------------------------------------------------------------------------------------
// Words for error messages
// ---------------------------------------------------------------------------------------------------------------------

template <typename... Parts>
std::string words(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error("fa_s512: " + message); }

std::string shape(const Tensor& tensor) {
  std::string text;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim ? ", " : "") + std::to_string(tensor.size(dim));
  }
  return "(" + text + (tensor.dim() == 1 ? ",)" : ")");
}

std::string dtype_name(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return "float32";
    case ScalarType::Half:
      return "float16";
    case ScalarType::BFloat16:
      return "bfloat16";
    default:
      return torch::headeronly::toString(tensor.scalar_type());
  }
}

std::string device_name(const Tensor& tensor) {
  return tensor.is_cuda() ? words("cuda:", tensor.get_device_index()) : "cpu";
}

// ---------------------------------------------------------------------------------------------------------------------
// Validation: each message names the argument, what was expected of it, and what it is
// ---------------------------------------------------------------------------------------------------------------------

void check_query(const Tensor& q) {
  if (q.dim() != 4) {
    fail(words("q: expected 4 dimensions (B, H, S, ", fa_s512::kHeadDim, "), got shape ", shape(q)));
  }
  if (q.size(3) != fa_s512::kHeadDim) {
    fail(words("q: expected head dimension ", fa_s512::kHeadDim, ", got ", q.size(3), " in shape ", shape(q)));
  }
  if (q.size(2) < 1 || q.size(2) > fa_s512::kMaxSeq) {
    fail(words("q: expected sequence length S from 1 to ", fa_s512::kMaxSeq, ", got ", q.size(2), " in shape ",
               shape(q)));
  }
  const ScalarType dtype = q.scalar_type();
  const bool half = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  if (!half && (q.is_cuda() || dtype != ScalarType::Float)) {
    fail(words("q: expected dtype float16 or bfloat16", q.is_cuda() ? " on CUDA" : " or float32", ", got ",
               dtype_name(q)));
  }
}

void check_like_query(const char* name, const Tensor& tensor, const Tensor& q) {
  if (tensor.is_cuda() != q.is_cuda() || tensor.get_device_index() != q.get_device_index()) {
    fail(words(name, ": expected device ", device_name(q), " like q, got ", device_name(tensor)));
  }
  if (tensor.scalar_type() != q.scalar_type()) {
    fail(words(name, ": expected dtype ", dtype_name(q), " like q, got ", dtype_name(tensor)));
  }
  if (!tensor.sizes().equals(q.sizes())) {
    fail(words(name, ": expected shape ", shape(q), " like q, got ", shape(tensor)));
  }
}

void check_memory(const char* name, const Tensor& tensor) {
  if (!tensor.is_contiguous()) {
    fail(words(name, ": expected a contiguous tensor, got strides (", tensor.stride(0), ", ", tensor.stride(1), ", ",
               tensor.stride(2), ", ", tensor.stride(3), ") for shape ", shape(tensor), "; call .contiguous()"));
  }
  const auto misalignment = reinterpret_cast<uintptr_t>(tensor.data_ptr()) % fa_s512::cuda::kAlignment;
  if (tensor.is_cuda() && misalignment != 0) {
    fail(words(name, ": expected data aligned to ", fa_s512::cuda::kAlignment, " bytes, got an address ", misalignment,
               " bytes past that; call .clone()"));
  }
}

void check_apart(const Tensor& out, const char* name, const Tensor& input) {
  const auto bytes = static_cast<uintptr_t>(out.numel()) * out.element_size();
  const auto written = reinterpret_cast<uintptr_t>(out.data_ptr());
  const auto read = reinterpret_cast<uintptr_t>(input.data_ptr());
  if (written < read + bytes && read < written + bytes) {
    fail(words("out: expected memory of its own, got memory shared with ", name));
  }
}

void check_scale(double scale) {
  if (!(std::abs(scale) <= std::numeric_limits<float>::max())) {
    fail(words("scale: expected a finite float32 number, got ", scale));
  }
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, double scale) {
  check_query(q);
  check_like_query("k", k, q);
  check_like_query("v", v, q);
  check_like_query("out", out, q);
  check_memory("q", q);
  check_memory("k", k);
  check_memory("v", v);
  check_memory("out", out);
  check_apart(out, "q", q);
  check_apart(out, "k", k);
  check_apart(out, "v", v);
  check_scale(scale);
}

// ---------------------------------------------------------------------------------------------------------------------
// Dispatch
// ---------------------------------------------------------------------------------------------------------------------

fa_s512::Dtype kernel_dtype(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Half:
      return fa_s512::Dtype::kFloat16;
    case ScalarType::BFloat16:
      return fa_s512::Dtype::kBFloat16;
    default:
      return fa_s512::Dtype::kFloat32;
  }
}

void* current_stream(int device) {
  void* stream = nullptr;
  if (!aoti_torch_get_current_cuda_stream || aoti_torch_get_current_cuda_stream(device, &stream) != TORCH_SUCCESS) {
    fail(words("torch gives no current CUDA stream for cuda:", device));
  }
  return stream;
}

void run(const fa_s512::Arguments& arguments, const Tensor& q) {
  if (q.is_cuda()) {
    const int device = q.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard(device);
    fa_s512::cuda::forward(arguments, device, current_stream(device));
  } else {
    torch::stable::parallel_for(0, fa_s512::cpu::task_count(arguments), 1,
                                [&](int64_t first, int64_t last) { fa_s512::cpu::run_tasks(arguments, first, last); });
  }
}

void forward_out(Tensor q, Tensor k, Tensor v, Tensor out, double scale, bool causal) {
  check(q, k, v, out, scale);
  if (q.numel() == 0) {
    return;
  }
  run({q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(), out.mutable_data_ptr(), q.size(0) * q.size(1),
       static_cast<int>(q.size(2)), static_cast<float>(scale), causal, kernel_dtype(q)},
      q);
}

Tensor forward(Tensor q, Tensor k, Tensor v, double scale, bool causal) {
  Tensor out = torch::stable::empty_like(q);
  forward_out(q, k, v, out, scale, causal);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("forward(Tensor q, Tensor k, Tensor v, float scale, bool causal) -> Tensor");
  library.def("forward_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, float scale, bool causal) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) {
  library.impl("forward", TORCH_BOX(&forward));
  library.impl("forward_out", TORCH_BOX(&forward_out));
}

STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) {
  library.impl("forward", TORCH_BOX(&forward));
  library.impl("forward_out", TORCH_BOX(&forward_out));
}
