#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#ifndef KERNELGATE_NAMESPACE
#define KERNELGATE_NAMESPACE scale  // in your own build
#endif

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void check(const Tensor& out, const Tensor& x) {
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float, "x: expected float32");
  STD_TORCH_CHECK(out.sizes().equals(x.sizes()) && out.is_contiguous() && x.is_contiguous(), "out: expected to fit x");
}

void scale_cpu(Tensor out, Tensor x, double factor) {
  check(out, x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(out.mutable_data_ptr())[i] = factor * static_cast<const float*>(x.const_data_ptr())[i];
  }
}

#ifdef KERNELGATE_CUDA  // defined where the .cu files are compiled in
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);
void launch_scale(float* out, const float* x, float factor, int64_t count, void* stream);

void scale_cuda(Tensor out, Tensor x, double factor) {
  check(out, x);
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream) == TORCH_SUCCESS, "no stream");
  launch_scale(static_cast<float*>(out.mutable_data_ptr()), static_cast<const float*>(x.const_data_ptr()), factor,
               x.numel(), stream);
}
#endif

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("scale(Tensor(a!) out, Tensor x, float factor) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) { library.impl("scale", TORCH_BOX(&scale_cpu)); }
#ifdef KERNELGATE_CUDA
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CUDA, library) { library.impl("scale", TORCH_BOX(&scale_cuda)); }
#endif
