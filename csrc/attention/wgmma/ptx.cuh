// Hopper's instructions that have no name in CUDA C++: mbarrier, TMA (cp.async.bulk.tensor), wgmma, setmaxnreg.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "../numeric.cuh"

namespace fa_s512::cuda {

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier
// ---------------------------------------------------------------------------------------------------------------------

__device__ inline void mbarrier_init(SharedAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void mbarrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase wait for so many bytes of TMA besides.
__device__ inline void mbarrier_expect(SharedAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Waits until the phase of this parity has completed. On a fresh barrier, parity 1 counts as completed.
__device__ inline void mbarrier_wait(SharedAddress barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// A barrier among `threads` threads, of the 16 that a block has by number.
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// TMA: one thread moves a box of a tensor (d, seq, heads). What lies past seq is read as zeros and never written.
// ---------------------------------------------------------------------------------------------------------------------

__device__ inline void tma_prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(&map)) : "memory");
}

__device__ inline void tma_load(SharedAddress to, const CUtensorMap& map, int row, int head, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(reinterpret_cast<uint64_t>(&map)), "r"(0), "r"(row), "r"(head), "r"(barrier)
      : "memory");
}

__device__ inline void tma_store(const CUtensorMap& map, SharedAddress from, int row, int head) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
                   reinterpret_cast<uint64_t>(&map)),
               "r"(0), "r"(row), "r"(head), "r"(from)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until this thread's stores have read their shared memory, which may then be overwritten.
__device__ inline void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Makes this thread's ordinary writes to shared memory visible to TMA and wgmma; a barrier must follow.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---------------------------------------------------------------------------------------------------------------------
// Registers and fragments
// ---------------------------------------------------------------------------------------------------------------------

template <int Registers>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Stores four 8 × 8 matrices, laid out over the lanes as accumulators are; lane i names row i % 8 of matrix i / 8.
__device__ inline void stmatrix(SharedAddress row, const uint32_t (&fragment)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(fragment[0]),
               "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
               : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// wgmma: a warpgroup's asynchronous matrix products
// ---------------------------------------------------------------------------------------------------------------------

// A tile in shared memory whose rows are 128 bytes with the 128-byte swizzle, so that 8 rows are an atom of 1 KiB. For
// both majors the distance between atoms is 1 KiB; the other distance is not used, as the tile is one atom wide.
__device__ inline uint64_t descriptor(SharedAddress tile) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kAtomDistance = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kUnused = uint64_t{1} << 16;
  return kSwizzle128 | kAtomDistance | kUnused | ((tile & 0x3FFFF) >> 4);
}

// Between the last ordinary access to registers that products use, and the products.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `Pending` of the newest groups are under way.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving uses of registers across the point where products own or release them.
template <int N>
__device__ inline void warpgroup_fence(float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    asm volatile("" : "+f"(values[i])::"memory");
  }
}

#define FA_S512_F8(x, i)                                                                                      \
  "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), \
      "+f"(x[i + 7])
#define FA_S512_F32(x, i) FA_S512_F8(x, i), FA_S512_F8(x, i + 8), FA_S512_F8(x, i + 16), FA_S512_F8(x, i + 24)

#define FA_S512_WGMMA_SS(TYPE)                                    \
  asm volatile(                                                   \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE \
      " {"                                                        \
      "%0, %1, %2, %3, %4, %5, %6, %7, "                          \
      "%8, %9, %10, %11, %12, %13, %14, %15, "                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, "                  \
      "%24, %25, %26, %27, %28, %29, %30, %31}, "                 \
      "%32, %33, p, 1, 1, 0, 0;\n}\n"                             \
      : FA_S512_F32(sum, 0)                                       \
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));

#define FA_S512_WGMMA_RS(TYPE)                                    \
  asm volatile(                                                   \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                  \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE \
      " {"                                                        \
      "%0, %1, %2, %3, %4, %5, %6, %7, "                          \
      "%8, %9, %10, %11, %12, %13, %14, %15, "                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, "                  \
      "%24, %25, %26, %27, %28, %29, %30, %31}, "                 \
      "{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n"               \
      : FA_S512_F32(sum, 0)                                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));

// sum (64 × 64, float32) (+)= a (64 × 16) · bᵀ, a and b (64 × 16) in shared memory with rows along d.
template <Dtype Type>
__device__ inline void wgmma_ss(float (&sum)[32], uint64_t a, uint64_t b, bool accumulate) {
  if constexpr (Type == Dtype::kFloat16) {
    FA_S512_WGMMA_SS("f16")
  } else {
    FA_S512_WGMMA_SS("bf16")
  }
}

// sum (64 × 64, float32) += a (64 × 16) · b, a in registers, b (16 × 64) in shared memory with rows along its columns.
template <Dtype Type>
__device__ inline void wgmma_rs(float (&sum)[32], const uint32_t (&a)[4], uint64_t b) {
  if constexpr (Type == Dtype::kFloat16) {
    FA_S512_WGMMA_RS("f16")
  } else {
    FA_S512_WGMMA_RS("bf16")
  }
}

#undef FA_S512_F8
#undef FA_S512_F32
#undef FA_S512_WGMMA_SS
#undef FA_S512_WGMMA_RS

}  // namespace fa_s512::cuda
