// Local arrays that are indexed at run time, which no register holds: alone, filled with zeros, and beside spills.

__global__ void nearest(const float* x, const float* y, int* out, int n, int k) {
  float best[64];
  int at[64];
  for (int e = 0; e < k; e++) {
    best[e] = 1e10f;
    at[e] = -1;
  }
  for (int i = 0; i < n; i++) {
    const float distance = x[i] - y[threadIdx.x];
    for (int a = 0; a < k; a++) {
      if (best[a] > distance) {
        for (int b = k - 1; b > a; b--) {
          best[b] = best[b - 1];
          at[b] = at[b - 1];
        }
        best[a] = distance;
        at[a] = i;
        break;
      }
    }
  }
  for (int e = 0; e < k; e++) {
    out[threadIdx.x * k + e] = at[e];
  }
}

__global__ void histogram(const int* x, float* out, int n) {
  float counts[64] = {0};
  for (int i = 0; i < n; i++) {
    counts[x[i] & 63] += 1.0f;
  }
  float sum = 0;
#pragma unroll
  for (int bin = 0; bin < 64; bin++) {
    sum += counts[bin] * bin;
  }
  out[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(512, 2) spilled_too(const float* x, float* out, int n, int k) {
  float values[80];
  float table[64];
  for (int e = 0; e < k; e++) {
    table[e & 63] = x[e];
  }
#pragma unroll
  for (int i = 0; i < 80; i++) {
    values[i] = x[threadIdx.x + i * 512];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 80; i++) {
#pragma unroll
    for (int j = 0; j < 80; j++) {
      values[i] = fmaf(values[j], values[i], table[(k + i * j) & 63]);
    }
  }
#pragma unroll
  for (int i = 0; i < 80; i++) {
    out[threadIdx.x + i * 512] = values[i];
  }
}
