// The instructions of Ampere and newer GPUs that have no name in CUDA C++.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace int8_gemm {

// Starts copying 16 bytes to shared memory, zeros where `valid` is false; then nothing is read. Both addresses are
// multiples of 16. `.cg` bypasses L1: a block reads each tile once.
__device__ inline void cp_async(void* to, const void* from, bool valid) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}

__device__ inline void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `Pending` of this thread's groups are under way. A barrier must follow before other threads'
// copies may be read.
template <int Pending>
__device__ inline void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Four matrices of 8 rows of 16 bytes: lane i names row i % 8 of matrix i / 8, and gets the bytes 4 (i % 4) … + 3 of
// row i / 4 of each.
__device__ inline void ldmatrix(uint32_t (&fragment)[4], const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address)
               : "memory");
}

// sum (16 × 8, int32) += a (16 × 32) · b (32 × 8). Lane i holds of the sum the columns 2 (i % 4) and 2 (i % 4) + 1 of
// row i / 4 in sum[0] and sum[1], and of row i / 4 + 8 in sum[2] and sum[3].
__device__ inline void mma_sync(int32_t (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace int8_gemm
