// What a launch asks for and no machine code says, as constants in the library for tools to read. The layout is that of
// bench/build/machine_code.py, at namespace scope (not inside a template).
#pragma once

#include <cstdint>

struct alignas(32) KernelgateLaunch {
  char kernel[112];      // zero-terminated: part of a kernel's demangled name
  std::int32_t version;  // of this layout
  std::int32_t target;   // 90 for sm_90 and sm_90a; 0 for every target
  std::int32_t dynamic_shared_bytes;
  std::int32_t threads;  // of a block; 0 leaves it to __launch_bounds__
};

#define KERNELGATE_JOIN_(a, b) a##b
#define KERNELGATE_JOIN(a, b) KERNELGATE_JOIN_(a, b)
#define KERNELGATE_LAUNCH(kernel, target, dynamic_shared_bytes, threads)                                            \
  [[maybe_unused]] __attribute__((section("kernelgate_launches"), used, aligned(32))) static const KernelgateLaunch \
  KERNELGATE_JOIN(kernelgate_launch_, __COUNTER__) = {kernel, 1, target, dynamic_shared_bytes, threads}
