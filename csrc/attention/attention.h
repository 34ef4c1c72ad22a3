// The contract between the binding and the kernels: raw pointers, no torch.
//
//     out = softmax(q kᵀ · scale) v        over each head on its own
//
// q, k, v and out have the shape (heads, seq, 64), row-major without gaps, where `heads` counts batch × heads. With
// `causal`, query i sees the keys 0 … i. Scores, softmax and sums are float32 whatever the dtype.
#pragma once

#include <cstdint>

namespace fa_s512 {

constexpr int kHeadDim = 64;
constexpr int kMaxSeq = 4096;

enum class Dtype { kFloat32, kFloat16, kBFloat16 };

struct Arguments {
  const void* q;  // (heads, seq, 64)
  const void* k;  // (heads, seq, 64)
  const void* v;  // (heads, seq, 64)
  void* out;      // (heads, seq, 64)
  int64_t heads;  // ≥ 1
  int seq;        // 1 … kMaxSeq
  float scale;    // finite, of either sign
  bool causal;
  Dtype dtype;
};

namespace cpu {

// The CPU path divides its work into equal tasks, so that whoever owns the threads can share them out.
int64_t task_count(const Arguments& arguments);

// Does the tasks first … last - 1. Tasks write disjoint parts of `out`.
void run_tasks(const Arguments& arguments, int64_t first, int64_t last);

}  // namespace cpu

namespace cuda {

// The pointers must be aligned to this, for the kernels move 16 bytes at a time.
constexpr int kAlignment = 16;

// Queues the kernel on `stream` (a cudaStream_t) of `device`, which must be current. float16 and bfloat16 alone.
// Throws std::runtime_error where no compiled target runs on the device or CUDA reports an error. Which kernel runs is
// choose_kernel's (dispatch.h), unless the environment variable FA_S512_KERNEL names one.
void forward(const Arguments& arguments, int device, void* stream);

}  // namespace cuda

}  // namespace fa_s512
