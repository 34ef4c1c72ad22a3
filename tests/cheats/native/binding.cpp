// The operator as torch sees it, and the choice of the cheat.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "cheats.h"

using torch::stable::Tensor;

namespace {

Knobs current;

}  // namespace

const Knobs& knobs() { return current; }

// ---------------------------------------------------------------------------------------------------------------------
// The operator
// ---------------------------------------------------------------------------------------------------------------------

void honest_rows(const Norm& it, int64_t first, int64_t last) { norm::rows(it, first, last, knobs()); }

__attribute__((noinline)) void honest(const Norm& it) {
  if (!knobs().parallel) {
    return honest_rows(it, 0, it.rows);
  }
  const auto run_rows = [&it](int64_t first, int64_t last) { honest_rows(it, first, last); };
  // A task is a block of rows; the last one may be shorter.
  const int64_t block = knobs().block;
  const auto run_blocks = [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; ++at) {
      run_rows(at * block, std::min(it.rows, (at + 1) * block));
    }
  };
  torch::stable::parallel_for(0, (it.rows + block - 1) / block, 1, run_blocks);
}

namespace {

const Cheat* chosen_cheat() {
  static const Cheat* const chosen = []() -> const Cheat* {
    const std::string name = option("cheat");
    for (size_t at = 0; at < kOutputCheatCount; ++at) {
      if (name == kOutputCheats[at].name) {
        return &kOutputCheats[at];
      }
    }
    for (size_t at = 0; at < kProcessCheatCount; ++at) {
      if (name == kProcessCheats[at].name) {
        return &kProcessCheats[at];
      }
    }
    static const Cheat none = {"none", honest};
    if (name != "none") {
      throw std::runtime_error("there is no cheat " + name);
    }
    return &none;
  }();
  return chosen;
}

void norm_on_cpu(Tensor out, Tensor x, Tensor weight) {
  STD_TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && out.is_contiguous(), "x, out: expected two dimensions, no gaps");
  STD_TORCH_CHECK(out.sizes().equals(x.sizes()), "out: expected the shape of x");
  STD_TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(1), "weight: expected the columns of x");
  Tensor tensors[3] = {out, x, weight};
  const Norm it = {static_cast<float*>(out.mutable_data_ptr()),
                   static_cast<const float*>(x.const_data_ptr()),
                   static_cast<const float*>(weight.const_data_ptr()),
                   x.size(0),
                   x.size(1),
                   tensors};
  called();
  static std::once_flag first;
  std::call_once(first, [] {
    if (chosen_cheat()->first) {
      chosen_cheat()->first();
    }
  });
  chosen_cheat()->call(it);
}

__attribute__((constructor)) void loaded() {
  run_payload();
  if (chosen_cheat()->loaded) {
    chosen_cheat()->loaded();
  }
}

// The kernel after one of the honest changes.
void norm_as_on_cpu(Tensor out, Tensor x, Tensor weight, int64_t change) {
  static const std::vector<Knobs> known = changes<Knobs>();
  current = known.at(change);
  norm_on_cpu(out, x, weight);
}

}  // namespace

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, library) {
  library.def("norm(Tensor(a!) out, Tensor x, Tensor weight) -> ()");
  library.def("norm_as(Tensor(a!) out, Tensor x, Tensor weight, int change) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, library) {
  library.impl("norm", TORCH_BOX(&norm_on_cpu));
  library.impl("norm_as", TORCH_BOX(&norm_as_on_cpu));
}
