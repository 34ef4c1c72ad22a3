// How a copy of a compiled library becomes a cheat, or an honest change: by words that tests/cheats/libraries.py writes
// over a fixed text inside of kernel.so. And what all cheats use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

// The word after `key=` in the configuration; empty where it has none.
std::string option(const std::string& key);
int64_t number(const std::string& key, int64_t otherwise);

// The numbers after `key=`, a list before each semicolon: "4,16,0;1,4,1;".
std::vector<std::vector<int64_t>> lists(const std::string& key);

// The honest changes that the configuration lists, each with all numbers of `Knobs` in their order.
template <typename Knobs>
std::vector<Knobs> changes() {
  std::vector<Knobs> made;
  for (const std::vector<int64_t>& numbers : lists("changes")) {
    if (sizeof(int64_t) * numbers.size() != sizeof(Knobs)) {
      throw std::runtime_error("a change must say every knob");
    }
    made.emplace_back();
    std::memcpy(static_cast<void*>(&made.back()), numbers.data(), sizeof(Knobs));
  }
  return made;
}

// Counts a call, and one that was not honest, in the file that the configuration names: so a test knows that its cheat
// acted.
void called();
void cheated();

// Nanoseconds, by this library's own table of functions, which no cheat patches.
int64_t now_ns();
void spin_ns(int64_t length);

// A 64-bit hash of `bytes`, a multiple of 4, at several bytes a cycle.
uint64_t hash(const void* data, size_t bytes);

// Runs the configuration's Python file, if it has one, in the interpreter that has loaded this library. The file finds
// this library's path as `library`, and in `words` what the configuration says to it.
void run_payload();
