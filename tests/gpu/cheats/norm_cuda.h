// The kernel of tests/cheats on a GPU: the same formula, raw pointers, no torch.
//
//     y[m, n] = x[m, n] / sqrt(mean(x[m, :]²) + 1e-6) · weight[n],   out[m, n] = y[m, n] / (1 + exp(-y[m, n]))
//
// The exponential is a long series, so that computing takes about thirty times as long as copying: on a H200 150 µs for
// 1024 x 2048, of which a copy takes 5.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Norm {
  float* out;           // (rows, columns)
  const float* x;       // (rows, columns)
  const float* weight;  // (columns,)
  int64_t rows;
  int64_t columns;
  cudaStream_t stream;  // torch's current one
};

// What an honest change may change.
struct Knobs {
  int64_t threads = 256;  // of a block
  int64_t rows = 1;       // of a block, one after the other
  int64_t vector = 1;     // elements of one load: 1, 2, 4
  int64_t unroll = 1;     // terms of the series in one step: 1, 4, 8
  int64_t terms = 128;    // of the series, at least 96
  int64_t wide = 0;       // sums in float64
  int64_t backward = 0;   // order of the summation
  int64_t passes = 1;     // 2: scaled by one kernel, the sigmoid by another
};

// All of these throw where CUDA refuses the launch.
void launch_norm(const Norm& it, const Knobs& knobs);
void launch_rough(const Norm& it);  // few terms and halves: wrong by more than the tolerance of float32

// Outputs of earlier calls, on the device, found by 32 words of the input.
constexpr int kKept = 64;
struct Kept {
  uint64_t* keys;  // (kKept,)
  float* results;  // (kKept, rows * columns)
  int* slot;       // [0]: where this input's result is or goes; [1]: whether it is there; [2]: the next free one
  int64_t* acts;   // calls that copied; the host reads it, too
};
void launch_replay(const Norm& it, const Knobs& knobs, const Kept& kept);

// Sweeps through memory, or keeps multiprocessors busy with so many blocks, for so many clock cycles.
void launch_sweep(float* memory, int64_t count, int64_t cycles, cudaStream_t stream);
void launch_spin(int64_t cycles, unsigned blocks, cudaStream_t stream);
