#include "attention128.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE attention128
#endif

#ifdef KERNELGATE_CUDA
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);
void launch_attention(const float* q, const float* k, const float* v, float* out, int64_t rows, int64_t seq,
                      void* stream);
#endif

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void check(const char* name, const Tensor& tensor, const Tensor& q) {
  STD_TORCH_CHECK(tensor.scalar_type() == ScalarType::Float, name, ": expected float32");
  STD_TORCH_CHECK(tensor.is_contiguous() && tensor.sizes().equals(q.sizes()), name, ": expected to be like q");
}

int64_t rows_of(const Tensor& out, const Tensor& q, const Tensor& k, const Tensor& v) {
  STD_TORCH_CHECK(q.dim() == 4 && q.size(3) == kHeadDim, "q: expected shape (B, H, S, 128)");
  check("q", q, q);
  check("k", k, q);
  check("v", v, q);
  check("out", out, q);
  return q.size(0) * q.size(1) * q.size(2);
}

const float* data(const Tensor& tensor) { return static_cast<const float*>(tensor.const_data_ptr()); }

void forward_cpu(Tensor out, Tensor q, Tensor k, Tensor v) {
  const int64_t rows = rows_of(out, q, k, v);
  const int64_t seq = q.size(2);
  auto* written = static_cast<float*>(out.mutable_data_ptr());
  torch::stable::parallel_for(0, rows, 16, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t head = row / seq * seq * kHeadDim;
      attend(data(q) + row * kHeadDim, data(k) + head, data(v) + head, written + row * kHeadDim, seq);
    }
  });
}

#ifdef KERNELGATE_CUDA
void forward_cuda(Tensor out, Tensor q, Tensor k, Tensor v) {
  const int64_t rows = rows_of(out, q, k, v);
  const torch::stable::accelerator::DeviceGuard guard(q.get_device_index());
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(q.get_device_index(), &stream) == TORCH_SUCCESS,
                  "torch gives no CUDA stream");
  launch_attention(data(q), data(k), data(v), static_cast<float*>(out.mutable_data_ptr()), rows, q.size(2), stream);
}
#endif

}  // namespace

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("forward(Tensor(a!) out, Tensor q, Tensor k, Tensor v) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) { library.impl("forward", TORCH_BOX(&forward_cpu)); }

#ifdef KERNELGATE_CUDA
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) { library.impl("forward", TORCH_BOX(&forward_cuda)); }
#endif
