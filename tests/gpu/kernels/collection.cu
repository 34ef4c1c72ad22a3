// Kernels as people write them, good and bad, profiled together: one report with many kernels.
#include "harness.cuh"
__global__ void transpose_naive(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  out[(size_t)x * n + y] = in[(size_t)y * n + x];
}
__global__ void transpose_tiled(const float* in, float* out, int n) {
  __shared__ float t[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(size_t)(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
__global__ void transpose_padded(const float* in, float* out, int n) {
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(size_t)(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
__global__ void matmul_naive(const float* a, const float* b, float* c, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float s = 0;
  for (int k = 0; k < n; ++k) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
__global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float as[32][32], bs[32][32];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
  float s = 0;
  for (int k = 0; k < n; k += 32) {
    as[ty][tx] = a[y * n + k + tx];
    bs[ty][tx] = b[(k + ty) * n + x];
    __syncthreads();
    for (int j = 0; j < 32; ++j) s += as[ty][j] * bs[j][tx];
    __syncthreads();
  }
  c[y * n + x] = s;
}
__global__ void matmul_swapped(const float* a, const float* b, float* c, int n) {
  int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y;
  float s = 0;
  for (int k = 0; k < n; ++k) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
__global__ void gather(const int* idx, const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[idx[i] & (n - 1)];
}
__global__ void sfu(float* out, int steps) {
  float x = threadIdx.x, y = blockIdx.x;
  for (int i = 0; i < steps; ++i) {
    x = __sinf(x);
    y = __expf(-y);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}
__global__ void fp64(float* out, int steps) {
  double x = threadIdx.x, y = blockIdx.x, z = 1, w = 2;
  for (int i = 0; i < steps; ++i) {
    x = fma(x, .99, .5);
    y = fma(y, .99, .5);
    z = fma(z, .99, .5);
    w = fma(w, .99, .5);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y + z + w;
}
__global__ void one_block_sum(const float* in, float* out, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += in[i];
  atomicAdd(out, s);
}
__global__ void histogram(const int* in, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[in[i] & 255], 1);
}
__global__ void softmax_rows(const float* in, float* out, int n) {
  __shared__ float red[8];
  const float* r = in + (size_t)blockIdx.x * n;
  float m = -1e30f;
  for (int i = threadIdx.x; i < n; i += 256) m = fmaxf(m, r[i]);
  for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = m;
  __syncthreads();
  for (int i = 0; i < 8; ++i) m = fmaxf(m, red[i]);
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 256) s += __expf(r[i] - m);
  for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < 8; ++i) s += red[i];
  for (int i = threadIdx.x; i < n; i += 256) out[(size_t)blockIdx.x * n + i] = __expf(r[i] - m) / s;
}
__global__ void strided_copy(const float* in, float* out, int n, int stride) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = in[(size_t)i * stride % n];
}
__global__ void aos(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < 8; ++k) s += in[(size_t)i * 8 + k];
  out[(size_t)i * 8] = s;
}
__global__ void one_thread(const float* in, float* out) {
  float s = 0;
  for (int i = 0; i < 20000; ++i) s += in[i];
  *out = s;
}
__global__ void many_registers(const float* in, float* out, int n) {
  extern __shared__ float sh[];
  float v[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < 16; ++r) {
#pragma unroll
    for (int k = 0; k < 32; ++k) v[k] = in[(i + (size_t)k * 4096 + r * 77) & (n - 1)];
    float s = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) s = fmaf(s, v[k], v[31 - k]);
    sh[threadIdx.x] = s;
  }
  out[i] = sh[threadIdx.x];
}
__global__ void read_l2(const float4* in, float* out, int n) {
  float s = 0;
  for (int r = 0; r < 4; ++r)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
      float4 x = __ldcg(in + ((i + r * 65536) % n));
      s += x.x + x.y + x.z + x.w;
    }
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
__global__ void stencil(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
    out[(size_t)y * n + x] = in[(size_t)y * n + x - 1] + in[(size_t)y * n + x + 1] + in[(size_t)(y - 1) * n + x] +
                             in[(size_t)(y + 1) * n + x] - 4 * in[(size_t)y * n + x];
}
__global__ void local_array(const float* in, float* out, int steps) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = in[i];
  int j = threadIdx.x;
  for (int i = 0; i < steps; ++i) {
    a[j & 63] += a[(j * 7) & 63];
    j = j * 5 + 1 + (int)a[3];
  }
  float s = 0;
  for (int i = 0; i < 64; ++i) s += a[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
__global__ void empty() {}
int main() {
  int n = 4096;
  float* a = ones(1 << 26);
  float* b = ones(1 << 26);
  float* c = ones(1 << 26);
  int* idx = (int*)ones(1 << 24);
  int* h = (int*)malloc(4 << 24);
  unsigned s = 1;
  for (int i = 0; i < 1 << 24; ++i) {
    s = s * 1664525u + 1013904223u;
    h[i] = s >> 6;
  }
  CHECK(cudaMemcpy(idx, h, 4 << 24, cudaMemcpyHostToDevice));
  transpose_naive<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, n);
  transpose_tiled<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, n);
  transpose_padded<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, n);
  matmul_naive<<<dim3(32, 128), dim3(32, 8)>>>(a, b, c, 1024);
  matmul_tiled<<<dim3(32, 32), dim3(32, 32)>>>(a, b, c, 1024);
  matmul_swapped<<<dim3(32, 128), dim3(32, 8)>>>(a, b, c, 1024);
  gather<<<1 << 16, 256>>>(idx, a, b, 1 << 26);
  sfu<<<132 * 16, 256>>>(b, 1024);
  fp64<<<132 * 16, 256>>>(b, 1024);
  one_block_sum<<<1, 1024>>>(a, b, 1 << 22);
  histogram<<<1 << 16, 256>>>(idx, (int*)b, 1 << 24);
  softmax_rows<<<8192, 256>>>(a, b, 4096);
  strided_copy<<<1 << 14, 256>>>(a, b, 1 << 26, 16);
  aos<<<1 << 14, 256>>>(a, b, 1 << 22);
  one_thread<<<1, 1>>>(a, b);
  CHECK(cudaFuncSetAttribute(many_registers, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  many_registers<<<132 * 16, 128, 100 << 10>>>(a, b, 1 << 22);
  read_l2<<<132 * 8, 256>>>((float4*)a, b, 1 << 20);
  stencil<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, n);
  local_array<<<132 * 8, 256>>>(a, b, 512);
  empty<<<1, 32>>>();
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return 0;
}
