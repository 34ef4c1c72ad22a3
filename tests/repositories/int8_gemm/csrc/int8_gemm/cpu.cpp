#include "gemm.h"

namespace int8_gemm {

void multiply_on_cpu(const Arguments& arguments, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    const int8_t* a = arguments.a + i / arguments.n * arguments.k;
    const int8_t* b = arguments.b + i % arguments.n * arguments.k;
    int32_t sum = 0;
    for (int64_t k = 0; k < arguments.k; ++k) {
      sum += a[k] * b[k];
    }
    arguments.out[i] = sum;
  }
}

}  // namespace int8_gemm
