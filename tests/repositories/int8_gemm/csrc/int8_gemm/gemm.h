// The contract between the binding and the kernels: raw pointers, no torch.
//
//     out = a · bᵀ        exact in int32
//
// All three are row-major without gaps.
#pragma once

#include <cstdint>

namespace int8_gemm {

// The largest k with which no sum of products leaves int32, were every factor -128.
constexpr int64_t kMaxK = 131071;

struct Arguments {
  int32_t* out;     // (m, n)
  const int8_t* a;  // (m, k)
  const int8_t* b;  // (n, k)
  int64_t m;        // 1 … 2³¹ - 1
  int64_t n;        // 1 … 2³¹ - 1
  int64_t k;        // 0 … kMaxK
};

// Computes the elements first … last - 1 of out, counted row by row.
void multiply_on_cpu(const Arguments& arguments, int64_t first, int64_t last);

// Queues the kernel on `stream`, a cudaStream_t of the current device. Throws std::runtime_error if CUDA refuses it.
void multiply_on_cuda(const Arguments& arguments, void* stream);

}  // namespace int8_gemm
