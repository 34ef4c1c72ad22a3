// What the kernels here share: memory, three launches (two to warm up, the third is the one to profile), checked calls.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t status = (call);                                                                \
    if (status != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (0)

constexpr int kLaunches = 3;

// `count` floats on the device, each 1.
inline float* ones(size_t count) {
  float* host = static_cast<float*>(std::malloc(count * sizeof(float)));
  for (size_t i = 0; i < count; ++i) {
    host[i] = 1.0f;
  }
  float* device = nullptr;
  CHECK(cudaMalloc(&device, count * sizeof(float)));
  CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice));
  std::free(host);
  return device;
}

inline int multiprocessors() {
  int count = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

template <typename Launch>
int run(Launch launch) {
  for (int i = 0; i < kLaunches; ++i) {
    launch();
    CHECK(cudaGetLastError());
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
