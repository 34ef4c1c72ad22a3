// softmax(q kᵀ / √128) v over each head on its own, in float32: the plainest code that is right.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

constexpr int kHeadDim = 128;

// One row of the output: q and out have 128 elements, k and v are (seq, 128). One pass, with the maximum so far taken
// off, so that nothing overflows.
HOST_DEVICE inline void attend(const float* q, const float* k, const float* v, float* out, int64_t seq) {
  float maximum = -INFINITY;
  float sum = 0.0f;
  float values[kHeadDim] = {};
  for (int64_t j = 0; j < seq; ++j) {
    float score = 0.0f;
    for (int d = 0; d < kHeadDim; ++d) {
      score += q[d] * k[j * kHeadDim + d];
    }
    score *= 0.08838834764831845f;
    const float larger = fmaxf(maximum, score);
    const float old = expf(maximum - larger);
    const float weight = expf(score - larger);
    for (int d = 0; d < kHeadDim; ++d) {
      values[d] = values[d] * old + weight * v[j * kHeadDim + d];
    }
    sum = sum * old + weight;
    maximum = larger;
  }
  for (int d = 0; d < kHeadDim; ++d) {
    out[d] = values[d] / sum;
  }
}
