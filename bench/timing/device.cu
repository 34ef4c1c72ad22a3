// What the timing code runs on the device itself: a reading of its clocks, a pause, a digest of inputs, and the
// comparison of outputs with their references.
//
// Compiled to PTX here and committed, because the GPU machine needs no compiler: its driver compiles device.ptx. After
// a change, with the nvcc that constraints.txt pins (tests/bench/timing/test_device.py compares the two files):
//
//     nvcc --ptx -arch=compute_80 -std=c++17 -o bench/timing/device.ptx bench/timing/device.cu

#include <cfloat>

using u64 = unsigned long long;

constexpr int kThreads = 256;  // of a block of compare_*: THREADS in device.py
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = 8;  // elements that a thread loads at once
constexpr u64 kNone = ~0ull;
constexpr u64 kMaxWaitNs = 1'000'000'000;
constexpr u64 kMaxWaitCycles = 1ull << 33;  // several seconds, should %globaltimer stand still
constexpr unsigned kMaxSleepNs = 500'000;   // __nanosleep takes at most 1 ms, and may take twice what it is asked for

// ---------------------------------------------------------------------------------------------------------------------
// Clocks
// ---------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ u64 global_ns() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

__device__ __forceinline__ u64 cycles() {
  u64 count;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(count)::"memory");
  return count;
}

// One thread. Writes the global timer (ns), and the cycle counter and the number of the SM that the thread runs on: two
// probes on one SM give its clock in between.
extern "C" __global__ void probe(u64* slot) {
  unsigned sm;
  const u64 ns = global_ns();
  const u64 count = cycles();
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  volatile u64* to = slot;
  to[0] = ns;
  to[1] = count;
  to[2] = sm;
}

// One thread. Sleeps until the global timer has advanced by `ns`, at most a second.
extern "C" __global__ void wait(u64 ns) {
  const u64 wanted = ns < kMaxWaitNs ? ns : kMaxWaitNs;
  const u64 begun_ns = global_ns();
  const u64 begun_cycles = cycles();
  for (u64 waited = 0; waited < wanted && cycles() - begun_cycles < kMaxWaitCycles; waited = global_ns() - begun_ns) {
    const u64 half = (wanted - waited) / 2;
    __nanosleep(half < kMaxSleepNs ? static_cast<unsigned>(half) : kMaxSleepNs);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Digest: whether memory holds what it held
// ---------------------------------------------------------------------------------------------------------------------

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
__device__ __forceinline__ u64 mixed(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Any number of blocks. Adds to `sum` every word times an odd number that only who knows `secret` can tell: no change
// of one word leaves the sum as it was, and of several a change that was not made for the secret does in one of 2^63.
extern "C" __global__ void digest(const u64* __restrict__ words, u64 count, u64 secret, u64* sum) {
  const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 mine = 0;
  for (u64 at = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += threads) {
    mine += words[at] * (mixed(secret + at * 0x9e3779b97f4a7c15ull) | 1);
  }
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(~0u, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

// ---------------------------------------------------------------------------------------------------------------------
// Comparison: |out - reference| <= atol + rtol * |reference| for every element, in float32
// ---------------------------------------------------------------------------------------------------------------------

// What device.py decodes, in this order, without padding. The caller zeroes it and sets first_wrong to kNone. An
// element is wrong where its error is above its limit, or where it is not finite; one that is not finite counts in none
// of the errors.
struct Result {
  unsigned max_ratio;  // bits of a float: the largest error / limit; 0 for no error, infinite for any where limit is 0
  unsigned max_abs;    // bits of a float: the largest error
  u64 wrong;
  double sum_abs;
  double sum_signed;  // of out - reference
  u64 first_wrong;    // the smallest index of a wrong element
  u64 nonfinite;
  u64 compared;  // all elements
};
static_assert(sizeof(Result) == 56 && alignof(Result) == 8);

struct Fp16 {
  unsigned short bits;
  __device__ __forceinline__ float wide() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

struct Bf16 {
  unsigned short bits;
  __device__ __forceinline__ float wide() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};

struct Fp32 {
  float value;
  __device__ __forceinline__ float wide() const { return value; }
};

// One thread's share, then its warp's, then its block's.
struct Partial {
  float max_ratio;  // of the warp at all times
  float max_abs;
  u64 wrong;
  double sum_abs;
  double sum_signed;
  u64 first_wrong;
  u64 nonfinite;
};

struct Tolerance {
  float atol;
  float rtol;
};

__device__ __forceinline__ Partial nothing() { return {0, 0, 0, 0, 0, kNone, 0}; }

template <typename T>
__device__ __forceinline__ T lesser(T a, T b) {
  return b < a ? b : a;
}

// Elements that one thread compares together.
template <int kCount>
struct Elements {
  float outs[kCount] = {};
  float references[kCount] = {};
};

// From an address aligned to 16 bytes.
template <typename Element>
__device__ __forceinline__ void load_chunk(const Element* __restrict__ from, float (&to)[kChunk]) {
  constexpr int kLoads = kChunk * sizeof(Element) / sizeof(uint4);
  constexpr int kPerLoad = kChunk / kLoads;
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(from) + load);
    const unsigned words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
    for (int at = 0; at < kPerLoad; ++at) {
      Element element;
      if constexpr (sizeof(Element) == sizeof(unsigned)) {
        element = {__uint_as_float(words[at])};
      } else {
        element = {static_cast<unsigned short>(words[at / 2] >> (at % 2 * 16))};
      }
      to[load * kPerLoad + at] = element.wide();
    }
  }
}

// Finite, so that an infinite error is above it.
__device__ __forceinline__ float limit_of(float reference, Tolerance allowed) {
  return fminf(fmaf(allowed.rtol, fabsf(reference), allowed.atol), FLT_MAX);
}

// An element that may be wrong or have the largest ratio so far. One that is not finite is counted here, and replaced.
__device__ __forceinline__ void note(Partial& mine, float& out, float reference, Tolerance allowed, u64 index) {
  const float error = fabsf(out - reference);
  const float limit = limit_of(reference, allowed);
  const bool finite = fabsf(out) <= FLT_MAX;
  if (!(finite && error <= limit)) {
    ++mine.wrong;
    mine.nonfinite += !finite;
    mine.first_wrong = lesser(mine.first_wrong, index);
  }
  if (!finite) {
    out = reference;
  } else if (error > 0) {
    mine.max_ratio = fmaxf(mine.max_ratio, error / limit);
  }
}

// Whole warps come here. Each element that is wrong, or that raises the warp's largest ratio, fulfils the condition,
// which costs no division; few elements of a right output do. It is written so that NaN fulfils it.
template <int kCount>
__device__ __forceinline__ void add(Partial& mine, Elements<kCount>& elements, Tolerance allowed, u64 begin) {
  auto& [outs, references] = elements;
  const float share = fminf(mine.max_ratio, 1.0f);
  bool noteworthy = false;
#pragma unroll
  for (int at = 0; at < kCount; ++at) {
    noteworthy |= !(fabsf(outs[at] - references[at]) <= share * limit_of(references[at], allowed));
  }
  if (__any_sync(~0u, noteworthy)) {
#pragma unroll
    for (int at = 0; at < kCount; ++at) note(mine, outs[at], references[at], allowed, begin + at);
    mine.max_ratio = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(mine.max_ratio)));
  }
  float sum_abs = 0;  // of a few elements in float32, as many GPUs have few float64 units
  float sum_signed = 0;
#pragma unroll
  for (int at = 0; at < kCount; ++at) {
    const float difference = outs[at] - references[at];
    mine.max_abs = fmaxf(mine.max_abs, fabsf(difference));
    sum_abs += fabsf(difference);
    sum_signed += difference;
  }
  mine.sum_abs += sum_abs;
  mine.sum_signed += sum_signed;
}

// Lane 0 gets the whole warp's.
__device__ __forceinline__ Partial over_warp(Partial mine) {
#pragma unroll 1
  for (int offset = 16; offset > 0; offset /= 2) {
    mine.max_ratio = fmaxf(mine.max_ratio, __shfl_down_sync(~0u, mine.max_ratio, offset));
    mine.max_abs = fmaxf(mine.max_abs, __shfl_down_sync(~0u, mine.max_abs, offset));
    mine.wrong += __shfl_down_sync(~0u, mine.wrong, offset);
    mine.sum_abs += __shfl_down_sync(~0u, mine.sum_abs, offset);
    mine.sum_signed += __shfl_down_sync(~0u, mine.sum_signed, offset);
    mine.first_wrong = lesser(mine.first_wrong, __shfl_down_sync(~0u, mine.first_wrong, offset));
    mine.nonfinite += __shfl_down_sync(~0u, mine.nonfinite, offset);
  }
  return mine;
}

// All threads of the block come here: one atomic operation per block and field.
__device__ __forceinline__ void merge(Partial mine, Result* into) {
  __shared__ Partial of_warp[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  mine = over_warp(mine);
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  if (warp > 0) return;
  mine = over_warp(lane < kWarps ? of_warp[lane] : nothing());
  if (lane > 0) return;
  atomicMax(&into->max_ratio, __float_as_uint(mine.max_ratio));  // the bits of floats >= 0 are in their order
  atomicMax(&into->max_abs, __float_as_uint(mine.max_abs));
  atomicAdd(&into->sum_abs, mine.sum_abs);
  atomicAdd(&into->sum_signed, mine.sum_signed);
  if (mine.wrong > 0) {
    atomicAdd(&into->wrong, mine.wrong);
    atomicMin(&into->first_wrong, mine.first_wrong);
    atomicAdd(&into->nonfinite, mine.nonfinite);
  }
}

// Any number of blocks of kThreads in x. `out` and `reference` hold `count` elements; every element of `reference` is
// finite.
template <typename Element>
__device__ __forceinline__ void compare(const Element* __restrict__ out, const Fp32* __restrict__ reference, u64 count,
                                        Tolerance allowed, Result* into) {
  const u64 thread = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  const u64 threads = static_cast<u64>(gridDim.x) * kThreads;
  const u64 lane = threadIdx.x % 32;
  const bool aligned = (reinterpret_cast<u64>(out) | reinterpret_cast<u64>(reference)) % sizeof(uint4) == 0;
  const u64 chunks = aligned ? count / kChunk : 0;
  Partial mine = nothing();
  for (u64 of_warp = thread - lane; of_warp < chunks; of_warp += threads) {
    const u64 begin = (of_warp + lane) * kChunk;
    Elements<kChunk> elements;
    if (of_warp + lane < chunks) {
      load_chunk(out + begin, elements.outs);
      load_chunk(reference + begin, elements.references);
    }
    add(mine, elements, allowed, begin);
  }
  for (u64 of_warp = chunks * kChunk + thread - lane; of_warp < count; of_warp += threads) {
    const u64 index = of_warp + lane;
    Elements<1> elements;
    if (index < count) elements = {{out[index].wide()}, {reference[index].wide()}};
    add(mine, elements, allowed, index);
  }
  merge(mine, into);
  if (thread == 0) atomicAdd(&into->compared, count);
}

// Comparison blockIdx.y of gridDim.y: `pairs` holds the addresses of each output and its reference, `into` the results.
template <typename Element>
__device__ __forceinline__ void compare_one(const u64* __restrict__ pairs, u64 count, Tolerance allowed, Result* into) {
  const u64* pair = pairs + 2 * blockIdx.y;
  const auto* out = reinterpret_cast<const Element*>(pair[0]);
  const auto* reference = reinterpret_cast<const Fp32*>(pair[1]);
  __builtin_assume(__isGlobal(out) && __isGlobal(reference));
  compare(out, reference, count, allowed, into + blockIdx.y);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    compare_fp16(const u64* pairs, u64 count, float atol, float rtol, Result* into) {
  compare_one<Fp16>(pairs, count, {atol, rtol}, into);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    compare_bf16(const u64* pairs, u64 count, float atol, float rtol, Result* into) {
  compare_one<Bf16>(pairs, count, {atol, rtol}, into);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    compare_fp32(const u64* pairs, u64 count, float atol, float rtol, Result* into) {
  compare_one<Fp32>(pairs, count, {atol, rtol}, into);
}
