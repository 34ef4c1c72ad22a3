// RMSNorm on any GPU, bound by memory: one block a row, which it takes in strips of two vectors a thread. The last
// strip stays in registers for the output, and with it all of a row of up to 2048 vectors; the others are read again.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "rmsnorm.h"

namespace rmsnorm {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;
constexpr int kBytesPerLoad = 16;  // the widest there is
constexpr int kLoads = 2;          // of a thread in a strip, under way at once to hide the latency of memory

template <typename T, int Width>
struct alignas(sizeof(T) * Width) Vector {
  T elements[Width];
};

__device__ float warp_sum(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
  }
  return value;
}

// The sum over the block, for each of its threads.
__device__ float block_sum(float value) {
  __shared__ float sums[kMaxThreads / kWarp];
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  value = warp_sum(value);
  if (lane == 0) {
    sums[warp] = value;
  }
  __syncthreads();
  return warp_sum(lane < blockDim.x / kWarp ? sums[lane] : 0.0f);
}

// x and out hold `vectors` vectors a row, weight one such row.
template <typename T, int Width>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_kernel(Vector<T, Width>* __restrict__ out, const Vector<T, Width>* __restrict__ x,
                    const Vector<T, Width>* __restrict__ weight, unsigned vectors, float eps) {
  const int64_t row = blockIdx.x;
  x += row * vectors;
  out += row * vectors;

  const auto index = [&](unsigned strip, int i) { return (strip * kLoads + i) * blockDim.x + threadIdx.x; };
  Vector<T, Width> values[kLoads];
  const auto load = [&](unsigned strip) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const unsigned at = index(strip, i);
      values[i] = at < vectors ? x[at] : Vector<T, Width>{};
    }
  };

  const unsigned strips = (vectors - 1) / (kLoads * blockDim.x) + 1;
  float sum = 0.0f;
  for (unsigned strip = 0; strip < strips; ++strip) {
    load(strip);
#pragma unroll
    for (const auto& vector : values) {
#pragma unroll
      for (const T element : vector.elements) {
        const float value = element;
        sum += value * value;
      }
    }
  }
  const float mean = block_sum(sum) / (static_cast<float>(vectors) * Width);
  const float scale = rsqrtf(mean + eps);

  // Backwards, because the last strip is still in registers.
  for (unsigned strip = strips; strip-- > 0;) {
    if (strip + 1 < strips) {
      load(strip);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const unsigned at = index(strip, i);
      if (at >= vectors) {
        continue;
      }
      const Vector<T, Width> weights = weight[at];
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        T& value = values[i].elements[j];
        value = static_cast<T>(static_cast<float>(value) * scale * static_cast<float>(weights.elements[j]));
      }
      out[at] = values[i];
    }
  }
}

template <typename T, int Width>
void launch(const Arguments& arguments, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(arguments.rows);
  const auto vectors = static_cast<unsigned>(arguments.columns / Width);
  const unsigned threads = std::min<unsigned>(((vectors - 1) / (kWarp * kLoads) + 1) * kWarp, kMaxThreads);
  rms_norm_kernel<T, Width><<<blocks, threads, 0, stream>>>(
      static_cast<Vector<T, Width>*>(arguments.out), static_cast<const Vector<T, Width>*>(arguments.x),
      static_cast<const Vector<T, Width>*>(arguments.weight), vectors, arguments.eps);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
    throw std::runtime_error(std::string("rms_norm: the launch failed: ") + cudaGetErrorString(status));
  }
}

template <typename T>
void launch(const Arguments& arguments, cudaStream_t stream) {
  constexpr int kWidth = kBytesPerLoad / sizeof(T);
  const auto aligned = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % kBytesPerLoad == 0; };
  const bool wide =
      arguments.columns % kWidth == 0 && aligned(arguments.out) && aligned(arguments.x) && aligned(arguments.weight);
  return wide ? launch<T, kWidth>(arguments, stream) : launch<T, 1>(arguments, stream);
}

}  // namespace

void rms_norm_cuda(const Arguments& arguments, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  switch (arguments.dtype) {
    case Dtype::kFloat32:
      return launch<float>(arguments, cuda_stream);
    case Dtype::kFloat16:
      return launch<__half>(arguments, cuda_stream);
    case Dtype::kBFloat16:
      return launch<__nv_bfloat16>(arguments, cuda_stream);
  }
}

}  // namespace rmsnorm
