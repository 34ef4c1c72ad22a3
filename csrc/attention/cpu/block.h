// One task of the CPU path: 64 queries of one head against all their keys, in registers as wide as Width floats.
//
// Everything is transposed, so that a vector's lanes are queries: scores are kept as (key, query) and the output as
// (d, query). Then the softmax needs no sum across lanes, and K and V are read as they lie, one broadcast scalar at a
// time, so that nothing but the 64 queries is ever transposed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../attention.h"
#include "half.h"

namespace fa_s512::cpu {

constexpr int kBlockQ = 64;  // queries in a task: (64, 64) floats of Q stay in the first-level cache
constexpr int kBlockK = 64;  // keys in a step: K, V and the scores of one step are 48 KiB, and stay in the second

// Vectors of the compiler's own, so that each instruction set gets its registers from one source.
template <int Width>
struct Vector {
  typedef float Float __attribute__((vector_size(Width * sizeof(float))));
  typedef int32_t Int __attribute__((vector_size(Width * sizeof(float))));
};

// The tile of the product that stays in registers: kRows × kColumns vectors, within the 32 registers of AVX-512 and
// Neon, or the 16 of AVX2 and SSE2, and with at least the 8 independent sums that hide the latency of an FMA.
template <int Width>
struct RegisterTile {
#ifdef __aarch64__
  static constexpr int kRows = 8;
#else
  static constexpr int kRows = Width == 16 ? 8 : 4;
#endif
  static constexpr int kColumns = 2;
};

struct Workspace {
  alignas(64) float q[kHeadDim][kBlockQ];      // Qᵀ · scale · log2(e)
  alignas(64) float k[kBlockK][kHeadDim];      // the step's keys
  alignas(64) float v[kBlockK][kHeadDim];      // the step's values
  alignas(64) float scores[kBlockK][kBlockQ];  // (Q Kᵀ)ᵀ, then the weights
  alignas(64) float out[kHeadDim][kBlockQ];    // the unnormalised output, transposed
  alignas(64) float row_max[kBlockQ];          // of the scores so far
  alignas(64) float row_sum[kBlockQ];          // of the weights so far, relative to row_max
};

// 2^x for x ≤ 0, within 2 ulp; 0 below 2^-126, and so for -inf.
//
// Adding 1.5 · 2²³ leaves the nearest integer n in the low bits of the sum; 2^n is then put together as exponent bits,
// and 2^(x - n), |x - n| ≤ ½, is its Taylor polynomial of degree 6, whose remainder is below 2⁻²³.
template <int Width>
__attribute__((always_inline)) inline void exp2_nonpositive(typename Vector<Width>::Float& x) {
  using Float = typename Vector<Width>::Float;
  using Int = typename Vector<Width>::Int;
  constexpr float kLowest = -127.0f;
  constexpr float kRound = 12582912.0f;
  x = x < kLowest ? Float{} + kLowest : x;  // NaN stays
  const Float shifted = x + kRound;
  const Float f = x - (shifted - kRound);
  Float p = Float{} + 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  // Bits of `shifted`: 0x4B400000 + n. As the exponent field of a float, n + 127 = 0 is the number zero.
  const Int power = ((Int)shifted - 0x4B400000 + 127) << 23;
  x = p * (Float)power;
}

// c[i][q] += Σ_j a(i, j) · b[j][q] for i < rows and all kBlockQ queries, where
// a(i, j) = a[i · row_stride + j · column_stride]. `rows` is a multiple of the register tile's.
template <int Width>
__attribute__((always_inline)) inline void multiply_add(const float* a, int row_stride, int column_stride, int rows,
                                                        int depth, const float (*b)[kBlockQ], float (*c)[kBlockQ]) {
  using Float = typename Vector<Width>::Float;
  constexpr int kRows = RegisterTile<Width>::kRows;
  constexpr int kColumns = RegisterTile<Width>::kColumns;
  static_assert(kBlockQ % (kColumns * Width) == 0 && kBlockK % kRows == 0 && kHeadDim % kRows == 0,
                "the register tile must divide the blocks");
  for (int column = 0; column < kBlockQ; column += kColumns * Width) {
    for (int row = 0; row < rows; row += kRows) {
      Float sum[kRows][kColumns];
      for (int i = 0; i < kRows; ++i) {
        std::memcpy(sum[i], &c[row + i][column], sizeof(sum[i]));
      }
      const float* scalars = a + row * row_stride;
      for (int j = 0; j < depth; ++j, scalars += column_stride) {
        Float vectors[kColumns];
        std::memcpy(vectors, &b[j][column], sizeof(vectors));
        for (int i = 0; i < kRows; ++i) {
          for (int n = 0; n < kColumns; ++n) {
            sum[i][n] += scalars[i * row_stride] * vectors[n];
          }
        }
      }
      for (int i = 0; i < kRows; ++i) {
        std::memcpy(&c[row + i][column], sum[i], sizeof(sum[i]));
      }
    }
  }
}

// The online softmax: turns the scores of `keys` keys into weights relative to the new maximum, and brings the sums and
// the output of the earlier steps down to it.
template <int Width>
__attribute__((always_inline)) inline void softmax_step(Workspace& w, int keys) {
  using Float = typename Vector<Width>::Float;
  for (int lane = 0; lane < kBlockQ; lane += Width) {
    auto load = [lane](const float* row, Float& x)
                    __attribute__((always_inline)) { std::memcpy(&x, row + lane, sizeof(x)); };
    auto store = [lane](float* row, const Float& x)
                     __attribute__((always_inline)) { std::memcpy(row + lane, &x, sizeof(x)); };
    Float before, maximum, sum, x;
    load(w.row_max, before);
    maximum = before;
    for (int key = 0; key < keys; ++key) {
      load(w.scores[key], x);
      maximum = x > maximum ? x : maximum;
    }
    Float correction = before - maximum;
    exp2_nonpositive<Width>(correction);
    load(w.row_sum, sum);
    sum *= correction;
    for (int key = 0; key < keys; ++key) {
      load(w.scores[key], x);
      x -= maximum;
      exp2_nonpositive<Width>(x);
      sum += x;
      store(w.scores[key], x);
    }
    store(w.row_max, maximum);
    store(w.row_sum, sum);
    for (int d = 0; d < kHeadDim; ++d) {
      load(w.out[d], x);
      x *= correction;
      store(w.out[d], x);
    }
  }
}

template <typename Element>
__attribute__((always_inline)) inline void read_rows(const Element* from, int rows, float (*to)[kHeadDim]) {
  for (int row = 0; row < rows; ++row) {
    for (int d = 0; d < kHeadDim; ++d) {
      to[row][d] = to_float(from[row * kHeadDim + d]);
    }
  }
}

// Q in the workspace's form. Lanes past the last query hold zeros: they compute along and are not written.
template <typename Element>
__attribute__((always_inline)) inline void read_queries(const Element* q, int queries, float scale, Workspace& w) {
  constexpr float kLog2E = 1.44269504f;  // the softmax is taken to base 2: e^x = 2^(x · log2 e)
  static_assert(kBlockK >= kBlockQ, "queries are read through the keys' place, which must hold them all");
  std::memset(w.k, 0, sizeof(w.k));
  read_rows(q, queries, w.k);  // the keys' place is still free
  for (int d = 0; d < kHeadDim; ++d) {
    for (int lane = 0; lane < kBlockQ; ++lane) {
      w.q[d][lane] = w.k[lane][d] * (scale * kLog2E);
    }
  }
}

// Hides the keys that come after each query: their score becomes -inf, and their weight 0.
__attribute__((always_inline)) inline void mask_future(Workspace& w, int keys, int first_key, int first_query) {
  for (int key = 0; key < keys; ++key) {
    for (int lane = 0; lane < kBlockQ; ++lane) {
      const bool future = first_key + key > first_query + lane;
      w.scores[key][lane] = future ? -std::numeric_limits<float>::infinity() : w.scores[key][lane];
    }
  }
}

template <typename Element>
__attribute__((always_inline)) inline void write_output(const Workspace& w, int queries, Element* out) {
  for (int lane = 0; lane < queries; ++lane) {
    const float normalise = 1.0f / w.row_sum[lane];
    for (int d = 0; d < kHeadDim; ++d) {
      from_float(w.out[d][lane] * normalise, out[lane * kHeadDim + d]);
    }
  }
}

// The queries first_query … first_query + 63 of one head, as far as there are so many.
template <int Width, typename Element>
__attribute__((always_inline)) inline void attend(const Arguments& arguments, int64_t head, int first_query) {
  const int64_t offset = head * arguments.seq * kHeadDim;
  const Element* q = static_cast<const Element*>(arguments.q) + offset;
  const Element* k = static_cast<const Element*>(arguments.k) + offset;
  const Element* v = static_cast<const Element*>(arguments.v) + offset;
  Element* out = static_cast<Element*>(arguments.out) + offset;
  const int queries = std::min(kBlockQ, arguments.seq - first_query);
  const int visible = arguments.causal ? first_query + queries : arguments.seq;

  Workspace w;
  read_queries(q + first_query * kHeadDim, queries, arguments.scale, w);
  std::memset(w.out, 0, sizeof(w.out));
  std::memset(w.row_sum, 0, sizeof(w.row_sum));
  // Finite, so that a masked score minus the maximum is -inf and never NaN.
  std::fill(w.row_max, w.row_max + kBlockQ, std::numeric_limits<float>::lowest());

  for (int first_key = 0; first_key < visible; first_key += kBlockK) {
    const int keys = std::min(kBlockK, visible - first_key);
    constexpr int kRows = RegisterTile<Width>::kRows;
    const int padded_keys = (keys + kRows - 1) / kRows * kRows;
    read_rows(k + first_key * kHeadDim, keys, w.k);
    read_rows(v + first_key * kHeadDim, keys, w.v);
    std::memset(w.k[0] + keys * kHeadDim, 0, (padded_keys - keys) * sizeof(w.k[0]));
    std::memset(w.scores, 0, sizeof(w.scores));
    multiply_add<Width>(w.k[0], kHeadDim, 1, padded_keys, kHeadDim, w.q, w.scores);
    if (arguments.causal && first_key + keys - 1 > first_query) {
      mask_future(w, keys, first_key, first_query);
    }
    softmax_step<Width>(w, keys);
    multiply_add<Width>(w.v[0], 1, kHeadDim, kHeadDim, keys, w.scores, w.out);
  }
  write_output(w, queries, out + first_query * kHeadDim);
}

template <int Width>
__attribute__((always_inline)) inline void attend(const Arguments& arguments, int64_t head, int first_query) {
  switch (arguments.dtype) {
    case Dtype::kFloat32:
      return attend<Width, float>(arguments, head, first_query);
    case Dtype::kFloat16:
      return attend<Width, Half>(arguments, head, first_query);
    case Dtype::kBFloat16:
      return attend<Width, BFloat16>(arguments, head, first_query);
  }
}

}  // namespace fa_s512::cpu
