// How tiles lie in shared memory on both CUDA paths: rows of 64 elements as eight chunks of 16 bytes, swizzled.
#pragma once

#include "numeric.cuh"

namespace fa_s512::cuda {

// A row fills all 32 banks, so the same chunk of eight rows, which is what ldmatrix takes, would meet in four of them.
// Chunk c of row r therefore stands at c xor (r mod 8): what TMA calls its 128-byte swizzle.
__device__ inline int swizzle(int row, int chunk) { return row * kRowBytes + ((chunk ^ (row & 7)) << 4); }

// From where chunk 0 or 1 of a row stands to where the one an even number of chunks after it does, in one instruction.
__device__ inline SharedAddress chunks_after(SharedAddress chunk, int chunks) { return chunk ^ (chunks << 4); }

}  // namespace fa_s512::cuda
