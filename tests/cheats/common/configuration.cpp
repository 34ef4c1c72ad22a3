#include "configuration.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>

// ---------------------------------------------------------------------------------------------------------------------
// The configuration
// ---------------------------------------------------------------------------------------------------------------------

// Volatile, so that no compiler knows what is in it.
__attribute__((used)) volatile const char kConfiguration[2048] = "CHEATS-CONFIGURATION: cheat=none";

std::string option(const std::string& key) {
  std::string words(" ");
  for (size_t at = std::strlen("CHEATS-CONFIGURATION:"); at < sizeof(kConfiguration) && kConfiguration[at]; ++at) {
    words += kConfiguration[at];
  }
  words += ' ';
  const size_t found = words.find(" " + key + "=");
  if (found == std::string::npos) {
    return "";
  }
  const size_t begin = found + key.size() + 2;
  return words.substr(begin, words.find(' ', begin) - begin);
}

int64_t number(const std::string& key, int64_t otherwise) {
  const std::string word = option(key);
  return word.empty() ? otherwise : std::stoll(word);
}

std::vector<std::vector<int64_t>> lists(const std::string& key) {
  std::vector<std::vector<int64_t>> made(1);
  const std::string words = option(key);
  for (const char* at = words.c_str(); *at;) {
    char* end = nullptr;
    made.back().push_back(std::strtoll(at, &end, 10));
    if (*end == ';') {
      made.emplace_back();
    }
    at = *end ? end + 1 : end;
  }
  made.pop_back();
  return made;
}

// ---------------------------------------------------------------------------------------------------------------------
// Tools
// ---------------------------------------------------------------------------------------------------------------------

namespace {

// Two counters in a file of the test's: calls in all, and those that were not honest. Several processes share it.
std::atomic<int64_t>* tally() {
  static std::atomic<int64_t>* const counters = [] {
    void* memory = MAP_FAILED;
    const int file = open(option("tally").c_str(), O_RDWR | O_CLOEXEC);
    if (file >= 0) {
      memory = mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      close(file);
    }
    static std::atomic<int64_t> nobody_looks[2];
    return memory == MAP_FAILED ? nobody_looks : static_cast<std::atomic<int64_t>*>(memory);
  }();
  return counters;
}

}  // namespace

void called() { tally()[0].fetch_add(1, std::memory_order_relaxed); }
void cheated() { tally()[1].fetch_add(1, std::memory_order_relaxed); }

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // this library's own table is never patched
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void spin_ns(int64_t length) {
  for (const int64_t begin = now_ns(); now_ns() - begin < length;) {
  }
}

uint64_t hash(const void* data, size_t bytes) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
  const auto* words = static_cast<const unsigned char*>(data);
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, words + at + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * kPrime;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  for (; at + 4 <= bytes; at += 4) {
    uint32_t word;
    std::memcpy(&word, words + at, 4);
    lanes[0] = (lanes[0] ^ word) * kPrime;
    lanes[0] ^= lanes[0] >> 29;
  }
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) {
    sum = (sum ^ lane) * kPrime;
    sum ^= sum >> 32;
  }
  return sum;
}

void run_payload() {
  const std::string path = option("payload");
  Dl_info self;
  if (path.empty() || dladdr(reinterpret_cast<void*>(&run_payload), &self) == 0) {
    return;
  }
  const auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
  const std::string code = "exec(compile(open('" + path + "').read(), '" + path +
                           "', 'exec'), dict(__name__='payload', " + "library='" + self.dli_fname + "', words='" +
                           option("words") + "'))";
  const int state = ensure();
  run(code.c_str());
  release(state);
}
