// The contract between the binding and the CUDA kernel: raw pointers, no torch.
//
//     out[m, n] = x[m, n] / sqrt(mean(x[m, :]²) + eps) · weight[n]
//
// x and out are row-major without gaps. All arithmetic is float32, rounded once to the dtype.
#pragma once

#include <cstdint>

namespace rmsnorm {

enum class Dtype { kFloat32, kFloat16, kBFloat16 };

struct Arguments {
  void* out;           // (rows, columns)
  const void* x;       // (rows, columns)
  const void* weight;  // (columns,)
  int64_t rows;        // 1 … 2³¹ - 1
  int64_t columns;     // 1 … 2³¹ - 1
  float eps;
  Dtype dtype;
};

// Queues the kernel on `stream`, a cudaStream_t of the current device. Throws std::runtime_error if CUDA refuses it.
void rms_norm_cuda(const Arguments& arguments, void* stream);

}  // namespace rmsnorm
