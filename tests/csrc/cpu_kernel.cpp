// The CPU path without torch, at each vector width, for test_cpu_kernel.py: no machine picks all of them by itself.
#include <cstdint>

#include "attention/cpu/block.h"

using namespace fa_s512;

namespace {

template <int Width>
void attend_all(const Arguments& arguments) {
  for (int64_t head = 0; head < arguments.heads; ++head) {
    for (int first_query = 0; first_query < arguments.seq; first_query += cpu::kBlockQ) {
      cpu::attend<Width>(arguments, head, first_query);
    }
  }
}

}  // namespace

extern "C" void attend(int width, int dtype, const void* q, const void* k, const void* v, void* out, int64_t heads,
                       int seq, float scale, bool causal) {
  const Arguments arguments{q, k, v, out, heads, seq, scale, causal, static_cast<Dtype>(dtype)};
  switch (width) {
    case 4:
      return attend_all<4>(arguments);
    case 8:
      return attend_all<8>(arguments);
    case 16:
      return attend_all<16>(arguments);
  }
}

extern "C" void halves_to_floats(const Half* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = to_float(from[i]);
  }
}

extern "C" void floats_to_halves(const float* from, Half* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    from_float(from[i], to[i]);
  }
}

extern "C" void floats_to_bfloats(const float* from, BFloat16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    from_float(from[i], to[i]);
  }
}
