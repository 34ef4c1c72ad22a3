// The CPU path: the same blocked code compiled for each instruction set, and the choice among them at run time.
#include <cstdint>

#include "../attention.h"
#include "block.h"

namespace fa_s512::cpu {

namespace {

using Attend = void (*)(const Arguments& arguments, int64_t head, int first_query);

// 16-byte vectors are in every x86-64 and every 64-bit Arm.
void attend_baseline(const Arguments& arguments, int64_t head, int first_query) {
  attend<4>(arguments, head, first_query);
}

#ifdef __x86_64__

__attribute__((target("avx2,fma"))) void attend_avx2(const Arguments& arguments, int64_t head, int first_query) {
  attend<8>(arguments, head, first_query);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void attend_avx512(
    const Arguments& arguments, int64_t head, int first_query) {
  attend<16>(arguments, head, first_query);
}

Attend best_attend() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return attend_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return attend_avx2;
  }
  return attend_baseline;
}

#else

Attend best_attend() { return attend_baseline; }

#endif

int blocks_per_head(const Arguments& arguments) { return (arguments.seq + kBlockQ - 1) / kBlockQ; }

}  // namespace

int64_t task_count(const Arguments& arguments) { return arguments.heads * blocks_per_head(arguments); }

void run_tasks(const Arguments& arguments, int64_t first, int64_t last) {
  static const Attend attend_block = best_attend();
  const int blocks = blocks_per_head(arguments);
  for (int64_t task = first; task < last; ++task) {
    attend_block(arguments, task / blocks, static_cast<int>(task % blocks) * kBlockQ);
  }
}

}  // namespace fa_s512::cpu
