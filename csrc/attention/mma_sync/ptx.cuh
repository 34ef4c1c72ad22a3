// The instructions of Ampere and Ada that have no name in CUDA C++: cp.async, ldmatrix, mma.sync.
#pragma once

#include <cstdint>

#include "../numeric.cuh"

namespace fa_s512::cuda {

// ---------------------------------------------------------------------------------------------------------------------
// cp.async: copies from global to shared memory that bypass registers
// ---------------------------------------------------------------------------------------------------------------------

// 16 bytes, or where `valid` is false 16 zero bytes; then nothing is read, wherever `from` points. `.cg` bypasses L1:
// the tile is read once a block, and L2 serves the other blocks of the head.
__device__ inline void cp_async(SharedAddress to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ inline void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `Pending` of this thread's groups are on their way. A barrier must follow before other threads'
// copies may be read.
template <int Pending>
__device__ inline void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Fragments: four 8 × 8 matrices, of which lane i names row i % 8 of matrix i / 8, and gets the elements 2 (i % 4) and
// 2 (i % 4) + 1 of row i / 4 of each (of column i / 4 where transposed)
// ---------------------------------------------------------------------------------------------------------------------

__device__ inline void ldmatrix(uint32_t (&fragment)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(row)
               : "memory");
}

__device__ inline void ldmatrix_trans(uint32_t (&fragment)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(row)
               : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Arithmetic
// ---------------------------------------------------------------------------------------------------------------------

// sum (16 × 8, float32) += a (16 × 16) · b (16 × 8). Lane i holds of the sum the elements 2 (i % 4) and 2 (i % 4) + 1
// of row i / 4 in sum[0] and sum[1], and of row i / 4 + 8 in sum[2] and sum[3].
template <Dtype Type>
__device__ inline void mma_sync(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(Type == Dtype::kFloat16 || Type == Dtype::kBFloat16);
  if constexpr (Type == Dtype::kFloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace fa_s512::cuda
