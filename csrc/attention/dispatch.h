// Which code runs where: pure functions, tested as tables by tests/csrc/test_dispatch.py.
#pragma once

#include <cstdint>
#include <string>

namespace fa_s512::cuda {

// ---------------------------------------------------------------------------------------------------------------------
// The target: whose machine code
// ---------------------------------------------------------------------------------------------------------------------

struct Capability {
  int major;
  int minor;
  bool specific;  // sm_90a and its like: code for this one capability, with instructions that no other has
};

inline std::string name_of(const Capability& target) {
  return "sm_" + std::to_string(target.major) + std::to_string(target.minor) + (target.specific ? "a" : "");
}

// Machine code runs on its own major version, from its own minor version on; code with a suffix on its own alone.
constexpr bool runs_on(const Capability& target, int major, int minor) {
  return target.major == major && (target.specific ? target.minor == minor : target.minor <= minor);
}

// Of two targets that run, the newer is the faster, and of equal ones the specific.
constexpr bool is_better(const Capability& target, const Capability& than) {
  return target.minor != than.minor ? target.minor > than.minor : target.specific && !than.specific;
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernel, where the target has several
// ---------------------------------------------------------------------------------------------------------------------

enum class Kernel { kMmaSync, kWgmmaM128, kWgmmaM256 };

constexpr const char* name_of(Kernel kernel) {
  return kernel == Kernel::kMmaSync ? "mma_sync" : kernel == Kernel::kWgmmaM128 ? "wgmma_m128" : "wgmma_m256";
}

// For a target with wgmma (docs/performance.md has the times):
// - 256 queries a block, for four consumer warpgroups hide each other's latencies;
// - 128 where a head has no more, or where blocks of 256 would leave half of the multiprocessors idle;
// - mma_sync where the tiles cannot be counted in 30 bits, of which the persistent loop adds a few.
constexpr Kernel choose_kernel(int64_t heads, int seq, int multiprocessors) {
  constexpr int64_t kMaxTiles = int64_t{1} << 30;
  if (heads * ((seq + 127) / 128) > kMaxTiles) {
    return Kernel::kMmaSync;
  }
  const bool small = seq <= 128 || 2 * heads * ((seq + 255) / 256) <= multiprocessors;
  return small ? Kernel::kWgmmaM128 : Kernel::kWgmmaM256;
}

}  // namespace fa_s512::cuda
