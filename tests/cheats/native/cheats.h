// What the files of this library share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../common/configuration.h"
#include "norm.h"

struct Cheat {
  const char* name;
  void (*call)(const Norm&);
  void (*loaded)() = nullptr;  // when the library is loaded; base may be there already, or come later
  void (*first)() = nullptr;   // at the first call, when base is there if it ever will be
};

extern const Cheat kOutputCheats[];
extern const size_t kOutputCheatCount;
extern const Cheat kProcessCheats[];
extern const size_t kProcessCheatCount;

// The whole kernel as it should be, through torch's parallel_for. Another library is found to have it at the same
// place.
void honest(const Norm& it);
void honest_rows(const Norm& it, int64_t first, int64_t last);
const Knobs& knobs();

// An output that is known, and whether an input's is: by content.
void keep(const Norm& it);
void recall(const Norm& it);
