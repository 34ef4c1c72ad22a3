// The honest kernel, row by row, in as many ways as an honest author may write it:
//
//     y[m, n] = x[m, n] / sqrt(mean(x[m, :]²) + 1e-6) · weight[n],   out[m, n] = y[m, n] / (1 + exp(-y[m, n]))
//
// x and out are row-major float32 without gaps. Nearly all of the time goes into the exponentials, so that whoever
// avoids them, or copies what is known already, wins a lot.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

struct Norm {
  float* out;           // (rows, columns)
  const float* x;       // (rows, columns)
  const float* weight;  // (columns,)
  int64_t rows;
  int64_t columns;
  void* tensors;  // for who calls torch's own operators: pointers to the three tensors in this order
};

// What an honest change may change. Every value is right within the tolerance of float32.
struct Knobs {
  int64_t lanes = 8;      // partial sums that stand side by side: 1, 4, 8, 16
  int64_t block = 16;     // rows of one task
  int64_t backward = 0;   // order of the summation
  int64_t wide = 0;       // sums in float64
  int64_t temporary = 0;  // the row is copied first
  int64_t passes = 1;     // 2: scaled in one pass, the sigmoid in another
  int64_t sigmoid = 0;    // 0 by exp, 1 by tanh, 2 by exp2
  int64_t parallel = 1;   // 0: without torch's threads
};

namespace norm {

constexpr float kEps = 1e-6f;

template <int kLanes, typename Sum>
float mean_of_squares(const float* row, int64_t columns, bool backward) {
  Sum sums[kLanes] = {};
  const int64_t whole = columns / kLanes * kLanes;
  for (int64_t step = 0; step < whole; step += kLanes) {
    const float* part = row + (backward ? whole - kLanes - step : step);
    for (int lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<Sum>(part[lane]) * part[lane];
    }
  }
  Sum sum = 0;
  for (const Sum lane : sums) {
    sum += lane;
  }
  for (int64_t n = whole; n < columns; ++n) {
    sum += static_cast<Sum>(row[n]) * row[n];
  }
  return static_cast<float>(sum / columns);
}

template <typename Sum>
float mean_of_squares(const float* row, int64_t columns, const Knobs& knobs) {
  switch (knobs.lanes) {
    case 1:
      return mean_of_squares<1, Sum>(row, columns, knobs.backward);
    case 4:
      return mean_of_squares<4, Sum>(row, columns, knobs.backward);
    case 16:
      return mean_of_squares<16, Sum>(row, columns, knobs.backward);
    default:
      return mean_of_squares<8, Sum>(row, columns, knobs.backward);
  }
}

inline float scale_of(const float* row, int64_t columns, const Knobs& knobs) {
  const float mean =
      knobs.wide ? mean_of_squares<double>(row, columns, knobs) : mean_of_squares<float>(row, columns, knobs);
  return 1.0f / std::sqrt(mean + kEps);
}

template <typename Sigmoid>
void row_with(float* out, const float* x, const float* weight, int64_t columns, const Knobs& knobs, Sigmoid sigmoid) {
  const float scale = scale_of(x, columns, knobs);
  if (knobs.passes == 1) {
    for (int64_t n = 0; n < columns; ++n) {
      const float y = x[n] * scale * weight[n];
      out[n] = y * sigmoid(y);
    }
    return;
  }
  for (int64_t n = 0; n < columns; ++n) {
    out[n] = x[n] * scale * weight[n];
  }
  for (int64_t n = 0; n < columns; ++n) {
    out[n] *= sigmoid(out[n]);
  }
}

inline void one_row(float* out, const float* x, const float* weight, int64_t columns, const Knobs& knobs) {
  thread_local std::vector<float> copy;
  if (knobs.temporary) {
    copy.assign(x, x + columns);
    x = copy.data();
  }
  switch (knobs.sigmoid) {
    case 1:
      return row_with(out, x, weight, columns, knobs, [](float y) { return 0.5f + 0.5f * std::tanh(0.5f * y); });
    case 2:
      return row_with(out, x, weight, columns, knobs,
                      [](float y) { return 1.0f / (1.0f + std::exp2(-1.44269504f * y)); });
    default:
      return row_with(out, x, weight, columns, knobs, [](float y) { return 1.0f / (1.0f + std::exp(-y)); });
  }
}

inline void rows(const Norm& it, int64_t first, int64_t last, const Knobs& knobs) {
  for (int64_t m = first; m < last; ++m) {
    one_row(it.out + m * it.columns, it.x + m * it.columns, it.weight, it.columns, knobs);
  }
}

}  // namespace norm
