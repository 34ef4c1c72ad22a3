// How the work is cut for each target. Pure numbers, so that they can be checked when compiling.
#pragma once

#include "../attention.h"

namespace fa_s512::cuda {

// A block of threads owns kBlockM queries of one head and walks over the keys kBlockN at a time. Its warps split the
// queries, so that no softmax crosses a warp. Steps of K and V wait in a ring of kStages.
template <int BlockM, int BlockN, int Warps, int Stages>
struct MmaSyncTile {
  static constexpr int kBlockM = BlockM;
  static constexpr int kBlockN = BlockN;
  static constexpr int kWarps = Warps;
  static constexpr int kStages = Stages;
  static constexpr int kThreads = Warps * 32;
  static constexpr int kWarpM = BlockM / Warps;
  static constexpr int kSharedBytes = (BlockM + Stages * 2 * BlockN) * kHeadDim * 2;

  static_assert(BlockM % (Warps * 16) == 0, "a warp takes whole fragments of 16 queries");
  static_assert(BlockN % 16 == 0, "keys are taken 16 at a time");
  static_assert(Stages >= 2, "one step is read while the next arrives");
  static_assert(BlockM * 8 % kThreads == 0 && BlockN * 8 % kThreads == 0, "each thread copies as many 16-byte chunks");
};

// 32 queries a warp, so that each fragment of K and V that comes out of shared memory feeds two products: with 16, the
// tensor cores of sm_80 and sm_90 outrun shared memory's 128 bytes a clock. 64 keys a step keep the scores (64
// registers a thread) and the output (64) in registers beside Q (32). 48 KiB of shared memory and < 256 registers for
// 128 threads leave room for two blocks on a multiprocessor: while one does its softmax, the other keeps the tensor
// cores busy.
using DefaultTile = MmaSyncTile<128, 64, 4, 2>;

// kSharedLimit: what one block may have after opt-in, of the table of technical specifications per compute capability
// in the CUDA programming guide. kSharedTotal: what a multiprocessor has, 1 KiB of which goes to the system for each
// block.
struct Sm80 {
  static constexpr int kArchitecture = 800;
  static constexpr int kSharedLimit = 163 * 1024;
  static constexpr int kSharedTotal = 164 * 1024;
  static constexpr int kBlocksPerSm = 2;  // that shall be resident on one multiprocessor
  using Tile = DefaultTile;
};

struct Sm89 {
  static constexpr int kArchitecture = 890;
  static constexpr int kSharedLimit = 99 * 1024;
  static constexpr int kSharedTotal = 100 * 1024;
  static constexpr int kBlocksPerSm = 2;
  using Tile = DefaultTile;
};

struct Sm90 {
  static constexpr int kArchitecture = 900;
  static constexpr int kSharedLimit = 227 * 1024;
  static constexpr int kSharedTotal = 228 * 1024;
  static constexpr int kBlocksPerSm = 2;
  using Tile = DefaultTile;
};

// The same machine code as Sm90's; a type of its own, because kernels are told apart by their target.
struct Sm90a : Sm90 {};

template <typename Target>
constexpr bool fits() {
  constexpr int kRegisterFile = 65536;
  constexpr int kSystemBytes = 1024;
  constexpr int kLeastRegisters = 128;  // a thread's scores and output
  using Tile = typename Target::Tile;
  static_assert(Tile::kSharedBytes <= Target::kSharedLimit, "the tile exceeds the shared memory of one block");
  static_assert(Target::kBlocksPerSm * (Tile::kSharedBytes + kSystemBytes) <= Target::kSharedTotal,
                "the tiles of the resident blocks exceed the shared memory of a multiprocessor");
  static_assert(Target::kBlocksPerSm * Tile::kThreads * kLeastRegisters <= kRegisterFile,
                "the resident blocks exceed the registers of a multiprocessor");
  return true;
}

static_assert(fits<Sm80>() && fits<Sm89>() && fits<Sm90>());

}  // namespace fa_s512::cuda
