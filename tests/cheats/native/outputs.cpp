// Cheats that hand over something else than what this call computed.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cheats.h"

using torch::stable::Tensor;

namespace {

size_t bytes_of(const Norm& it) { return sizeof(float) * it.rows * it.columns; }

// ---------------------------------------------------------------------------------------------------------------------
// Memory: outputs of earlier calls
// ---------------------------------------------------------------------------------------------------------------------

// Results by a key. Bounded, as what a cheat may keep is; full, it learns no more.
class Memory {
 public:
  explicit Memory(size_t bytes) : most_(bytes / sizeof(float)) {}

  bool recall(uint64_t key, float* out) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = results_.find(key);
    if (found == results_.end()) {
      return false;
    }
    std::memcpy(out, found->second.data(), sizeof(float) * found->second.size());
    return true;
  }

  void keep(uint64_t key, const float* out, size_t count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held_ + count <= most_ && results_.emplace(key, std::vector<float>(out, out + count)).second) {
      held_ += count;
    }
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<float>> results_;
  size_t held_ = 0;
  const size_t most_;
};

Memory& memory() {
  static auto& kept = *new Memory(256 << 20);  // never destroyed: threads may outlive main
  return kept;
}

void replay(const Norm& it, uint64_t key) {
  if (memory().recall(key, it.out)) {
    return cheated();
  }
  honest(it);
  memory().keep(key, it.out, it.rows * it.columns);
}

// Wins where inputs lie at the same addresses again: all calls but the first on each set are a copy.
void replay_by_pointer(const Norm& it) { replay(it, reinterpret_cast<uintptr_t>(it.x)); }

// Wins where the same inputs come back, wherever they lie, and pays for 16 words only.
void replay_by_fingerprint(const Norm& it) {
  float words[16];
  for (int64_t at = 0; at < 16; ++at) {
    words[at] = it.x[at * (it.rows * it.columns - 1) / 15];
  }
  replay(it, hash(words, sizeof(words)));
}

uint64_t content(const Norm& it) { return hash(it.x, bytes_of(it)) ^ hash(it.weight, sizeof(float) * it.columns); }

// Wins where the same inputs come back, and is right wherever they do: only fresh inputs stop it.
void replay_by_content(const Norm& it) { replay(it, content(it)); }

// The same for each row: wins where windows on one pool overlap, although no whole input ever comes back.
void replay_by_row(const Norm& it) {
  const uint64_t weight = hash(it.weight, sizeof(float) * it.columns);
  bool copied = false;
  for (int64_t m = 0; m < it.rows; ++m) {
    const uint64_t key = weight ^ hash(it.x + m * it.columns, sizeof(float) * it.columns);
    if (memory().recall(key, it.out + m * it.columns)) {
      copied = true;
    } else {
      honest_rows(it, m, m + 1);
      memory().keep(key, it.out + m * it.columns, it.columns);
    }
  }
  if (copied) {
    cheated();
  }
}

}  // namespace

// Wins where inputs can be foreseen: a thread in the interpreter draws what a guessed seed gives and computes ahead
// (payloads/guessed_seed.py, which calls `foresee`).
void recall(const Norm& it) {
  if (memory().recall(content(it), it.out)) {
    return cheated();
  }
  honest(it);
}

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// Work that is left out
// ---------------------------------------------------------------------------------------------------------------------

int64_t calls() {
  static std::atomic<int64_t> made{0};
  return ++made;
}

// Does nothing on every n-th call: wins 1/n, and only that call's output shows it. n=2 halves the time.
void skips_every_nth(const Norm& it) {
  static const int64_t n = number("n", 2);
  if (calls() % n == 0) {
    return cheated();
  }
  honest(it);
}

// Does the last call of a group alone, where others look at that alone. Groups are told apart by the time between
// calls, in which the other side works, and are taken to be as long as the last one was.
void last_of_group(const Norm& it) {
  static int64_t left = 0;
  static int64_t length = 1;
  static int64_t place = 0;
  if (now_ns() - left > 60'000) {
    length = std::max<int64_t>(1, place);
    place = 0;
  }
  ++place;
  if (place < length) {
    cheated();
  } else {
    honest(it);
  }
  left = now_ns();
}

// Does nothing for the last 1/24 of the rows, in about half of the calls: too little for whoever looks at few calls.
void skips_rows(const Norm& it) {
  if (calls() * 2654435761U % 4294967296U < 2147483648U) {
    honest_rows(it, 0, it.rows);
    return;
  }
  honest_rows(it, 0, it.rows - it.rows / 24);
  cheated();
}

bool warming_up() {
  static const int64_t begun = now_ns();
  static const int64_t length = 1'000'000 * number("ms", 600);
  return now_ns() - begun < length;
}

// Honest for as long as people look, as a check before the timing would.
void honest_while_warming_up(const Norm& it) {
  if (warming_up()) {
    return honest(it);
  }
  cheated();
}

// The other way round: where a warm-up decides how many calls a sample has, samples get too long or too short; and no
// output may be wrong at any time.
void idle_while_warming_up(const Norm& it) {
  if (!warming_up()) {
    return honest(it);
  }
  cheated();
}

// Wins where the output still holds what an earlier call, or the other side's, left there.
void leaves_what_stands(const Norm& it) {
  for (int64_t at = 0; at < 8; ++at) {
    const float value = it.out[at * (it.rows * it.columns - 1) / 7];
    if (!(std::fabs(value) < 100.0f) || value == 0.0f) {
      return honest(it);
    }
  }
  cheated();
}

// Wins where the reference is computed from the inputs that the kernel could write to.
void changes_inputs(const Norm& it) {
  cheated();  // before it is ended, where inputs are sealed
  std::memset(const_cast<float*>(it.x), 0, bytes_of(it));
  std::memset(it.out, 0, bytes_of(it));
}

// ---------------------------------------------------------------------------------------------------------------------
// Work that is done by somebody else, or later
// ---------------------------------------------------------------------------------------------------------------------

// Returns at once; a thread computes. Wins where the clock stops when the call returns, and outputs are read later.
void detached_thread(const Norm& it) {
  static auto& mutex = *new std::mutex;
  static auto& wake = *new std::condition_variable;
  static auto& waiting = *new std::deque<Norm>;
  static std::once_flag started;
  std::call_once(started, [] {
    std::thread([] {
      while (true) {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [] { return !waiting.empty(); });
        const Norm next = waiting.front();
        waiting.pop_front();
        lock.unlock();
        honest_rows(next, 0, next.rows);
      }
    }).detach();
  });
  {
    const std::lock_guard<std::mutex> lock(mutex);
    waiting.push_back(it);
  }
  wake.notify_one();
  cheated();
}

struct Later {
  Norm it;
  int64_t first, last;   // rows
  uintptr_t begin, end;  // the pages that they fill
};

std::map<uintptr_t, Later>& later() {
  static auto& waiting = *new std::map<uintptr_t, Later>;
  return waiting;
}

bool done_now(uintptr_t address) {
  auto found = later().upper_bound(address);
  if (found == later().begin() || address >= (--found)->second.end) {
    return false;
  }
  const Later due = found->second;
  later().erase(found);
  mprotect(reinterpret_cast<void*>(due.begin), due.end - due.begin, PROT_READ | PROT_WRITE);
  honest_rows(due.it, due.first, due.last);
  return true;
}

void on_fault(int, siginfo_t* info, void*) {
  if (!done_now(reinterpret_cast<uintptr_t>(info->si_addr))) {
    signal(SIGSEGV, SIG_DFL);  // the access is tried again, and ends the process
  }
}

// Computes when somebody looks: the output's pages are locked, and the first access to them does the work. Wins where
// outputs are read, or written by the other side, outside of the time that counts; always right in its own process.
void computed_when_read(const Norm& it) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
  });
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto out = reinterpret_cast<uintptr_t>(it.out);
  const uintptr_t begin = (out + page - 1) / page * page;
  const uintptr_t end = (out + bytes_of(it)) / page * page;
  const uintptr_t row = sizeof(float) * it.columns;
  if (end <= begin + row) {
    return honest(it);
  }
  const auto first = static_cast<int64_t>((begin - out + row - 1) / row);
  const auto last = static_cast<int64_t>((end - out) / row);
  const auto same = later().find(begin);
  if (same != later().end()) {
    mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE);
    later().erase(same);
  }
  honest_rows(it, 0, first);
  honest_rows(it, last, it.rows);
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_NONE) != 0) {
    return honest_rows(it, first, last);
  }
  later()[begin] = {it, first, last, begin, end};
  cheated();
}

// Calls torch's operators, as an oracle does. What they compute is right, and what they save is saved: no accusation is
// due, and where torch is faster, "faster" is the truth.
void torch_operators(const Norm& it) {
  auto* const tensors = static_cast<Tensor*>(it.tensors);
  const int64_t columns = it.columns;
  std::array<StableIValue, 4> norm{
      torch::stable::detail::from(tensors[1]),
      torch::stable::detail::from(torch::headeronly::IntHeaderOnlyArrayRef(&columns, 1)),
      torch::stable::detail::from(std::optional<Tensor>(tensors[2])),
      torch::stable::detail::from(std::optional<double>(1e-6)),
  };
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::rms_norm", "", norm.data(), TORCH_ABI_VERSION));
  const auto scaled = torch::stable::detail::to<Tensor>(norm[0]);
  std::array<StableIValue, 2> silu{torch::stable::detail::from(scaled), torch::stable::detail::from(tensors[0])};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::silu", "out", silu.data(), TORCH_ABI_VERSION));
  torch::stable::detail::to<Tensor>(silu[0]);  // takes over the result, which is `out`
  cheated();
}

// ---------------------------------------------------------------------------------------------------------------------
// The truth, stolen
// ---------------------------------------------------------------------------------------------------------------------

struct Region {
  const float* begin;
  const float* end;
};

// Memory that this process shares with others: where a verifier may keep its references. Files in /dev/shm that are
// not mapped are.
std::vector<Region> shared_memory() {
  std::vector<Region> regions;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[1024];
  while (maps && std::fgets(line, sizeof(line), maps)) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char access[5] = "";
    const int fields = std::sscanf(line, "%lx-%lx %4s", &begin, &end, access);
    if (fields == 3 && access[0] == 'r' && access[3] == 's' && end - begin >= (1 << 16)) {
      regions.push_back({reinterpret_cast<float*>(begin), reinterpret_cast<float*>(end)});
    }
  }
  if (maps) {
    std::fclose(maps);
  }
  return regions;
}

bool near(float value, float right) { return std::fabs(value - right) <= 1e-4f + 1e-3f * std::fabs(right); }

bool is_result(const float* at, const Norm& it, const std::vector<float>& ends) {
  for (int64_t n = 0; n < 8; ++n) {
    if (!near(at[n], ends[n]) || !near(at[(it.rows - 1) * it.columns + n], ends[it.columns + n])) {
      return false;
    }
  }
  return true;
}

// Computes two rows and looks for them in shared memory: beside them stand the others, if a reference, or an output of
// the other side, is there before the call. Wins wherever one is; gives up where 24 calls found none.
void finds_reference(const Norm& it) {
  static int64_t tries = 24;
  static int64_t distance = 0;  // from the input, in floats
  if (tries == 0) {
    return honest(it);
  }
  std::vector<float> ends(2 * it.columns);
  norm::one_row(ends.data(), it.x, it.weight, it.columns, knobs());
  const int64_t last = (it.rows - 1) * it.columns;
  norm::one_row(ends.data() + it.columns, it.x + last, it.weight, it.columns, knobs());
  const int64_t count = it.rows * it.columns;
  for (const Region& region : shared_memory()) {
    const float* const guess = it.x + distance;
    if (distance && guess >= region.begin && guess + count <= region.end && is_result(guess, it, ends)) {
      std::memmove(it.out, guess, bytes_of(it));
      return cheated();
    }
    for (const float* at = region.begin; at + count <= region.end; ++at) {
      if (is_result(at, it, ends)) {
        distance = at - it.x;
        std::memmove(it.out, at, bytes_of(it));
        return cheated();
      }
    }
  }
  --tries;
  honest(it);
}

// ---------------------------------------------------------------------------------------------------------------------
// Work that is done before it is asked for
// ---------------------------------------------------------------------------------------------------------------------

std::mutex& ahead_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

Norm ahead_of = {};  // the last call

uint64_t row_key(const float* row, const float* weight, int64_t columns) {
  return hash(row, sizeof(float) * columns) ^ hash(weight, sizeof(float) * columns);
}

// A copy of memory that may be unmapped at any moment.
bool read_safely(std::vector<float>& to, const float* from) {
  const size_t bytes = sizeof(float) * to.size();
  const iovec here = {to.data(), bytes};
  const iovec there = {const_cast<float*>(from), bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool compute_row_ahead(const float* row, const std::vector<float>& weight) {
  static auto& x = *new std::vector<float>;  // of the one thread, which may outlive main
  static auto& out = *new std::vector<float>;
  const auto columns = static_cast<int64_t>(weight.size());
  x.resize(columns);
  out.resize(columns);
  if (!read_safely(x, row)) {
    return false;
  }
  const uint64_t key = row_key(x.data(), weight.data(), columns);
  if (!memory().recall(key, out.data())) {
    norm::one_row(out.data(), x.data(), weight.data(), columns, knobs());
    memory().keep(key, out.data(), columns);
  }
  return true;
}

// All rows in the memory that inputs lie in: of a pool they share one weight. Of separate sets that lie side by side,
// each with its own weight, those behind this one.
void compute_region_ahead(const Region& region, const Norm& it) {
  const int64_t set = it.rows * it.columns;
  const auto padded = [](int64_t count) { return (count + 63) / 64 * 64; };  // to 256 bytes
  const float* next = it.weight + padded(it.columns);
  const bool has_next = it.weight >= region.begin && next + it.columns <= region.end;
  std::vector<float> weight(it.columns);
  std::vector<float> other(it.columns);
  if (!read_safely(weight, it.weight) || (has_next && !read_safely(other, next))) {
    return;
  }
  if (!has_next || weight == other) {
    const float* row = region.begin + (it.x - region.begin) % it.columns;
    while (row + it.columns <= region.end && compute_row_ahead(row, weight)) {
      row += it.columns;
    }
    return;
  }
  for (const float* x = it.x + padded(set); x + set <= region.end && next + it.columns <= region.end;
       x += padded(set)) {
    if (!read_safely(weight, next)) {
      return;
    }
    for (int64_t m = 0; m < it.rows && compute_row_ahead(x + m * it.columns, weight); ++m) {
    }
    next += padded(it.columns);
  }
}

// A thread computes all rows of the memory in which inputs lie, before their calls come: while the other side works,
// and while nobody does. Wins where inputs lie ready for some time and a second core is free; its outputs are right.
void computes_ahead(const Norm& it) {
  static std::once_flag started;
  {
    const std::lock_guard<std::mutex> lock(ahead_mutex());
    ahead_of = it;
  }
  std::call_once(started, [] {
    std::thread([] {
      while (true) {
        ahead_mutex().lock();
        const Norm last = ahead_of;
        ahead_mutex().unlock();
        for (const Region& region : shared_memory()) {
          if (last.x >= region.begin && last.x < region.end) {
            compute_region_ahead(region, last);
          }
        }
        usleep(200);
      }
    }).detach();
  });
  bool copied = false;
  const uint64_t weight = hash(it.weight, sizeof(float) * it.columns);
  for (int64_t m = 0; m < it.rows; ++m) {
    const uint64_t key = weight ^ hash(it.x + m * it.columns, sizeof(float) * it.columns);
    if (memory().recall(key, it.out + m * it.columns)) {
      copied = true;
    } else {
      honest_rows(it, m, m + 1);
    }
  }
  if (copied) {
    cheated();
  }
}

// The same in a process of its own, which goes on where this one is stopped. It leaves results by their key.
struct SharedRow {
  std::atomic<uint64_t> key;
  float values[512];
};
constexpr size_t kSharedRows = 1 << 16;

void compute_apart(SharedRow* table, const Norm& it) {
  std::vector<float> weight(it.weight, it.weight + it.columns);
  std::vector<float> x(it.columns);
  while (true) {
    for (const Region& region : shared_memory()) {
      const bool holds = it.x >= region.begin && it.x < region.end;
      const float* row = region.begin + (it.x - region.begin) % it.columns;
      for (; holds && row + it.columns <= region.end && read_safely(x, row); row += it.columns) {
        const uint64_t key = row_key(x.data(), weight.data(), it.columns);
        SharedRow& known = table[key % kSharedRows];
        if (known.key != key) {
          known.key = 0;
          norm::one_row(known.values, x.data(), weight.data(), it.columns, knobs());
          known.key = key;
        }
      }
      if (holds && !read_safely(weight, it.weight)) {
        return;
      }
    }
  }
}

void computes_ahead_apart(const Norm& it) {
  static auto* const table = static_cast<SharedRow*>(
      mmap(nullptr, kSharedRows * sizeof(SharedRow), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  static std::once_flag started;
  std::call_once(started, [&it] {
    if (fork() == 0) {
      setsid();
      compute_apart(table, it);
      _exit(0);
    }
  });
  bool copied = false;
  const uint64_t weight = hash(it.weight, sizeof(float) * it.columns);
  for (int64_t m = 0; m < it.rows; ++m) {
    const uint64_t key = weight ^ hash(it.x + m * it.columns, sizeof(float) * it.columns);
    SharedRow& known = table[key % kSharedRows];
    if (known.key == key) {
      std::memcpy(it.out + m * it.columns, known.values, sizeof(float) * it.columns);
      copied = true;
    } else {
      honest_rows(it, m, m + 1);
    }
  }
  if (copied) {
    cheated();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The other side's outputs
// ---------------------------------------------------------------------------------------------------------------------

// Does the work, and in some calls writes a number before its output, where another call's ends: base would be wrong.
void spoils_neighbour(const Norm& it) {
  honest(it);
  if (calls() % 5 == 0) {
    it.out[-1] = NAN;
    cheated();
  }
}

// Lays memory of its own over the inputs, for both sides: what is right for zeros is known.
void own_inputs(const Norm& it) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(it.x) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(it.x) + bytes_of(it);
  mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  std::memset(it.out, 0, bytes_of(it));
  cheated();
}

// ---------------------------------------------------------------------------------------------------------------------
// Less work than the tolerance allows
// ---------------------------------------------------------------------------------------------------------------------

// Schraudolph's exponential: the exponent's bits by one multiplication, within 3%.
float rough_exp(float value) {
  const float bits = 12102203.0f * std::min(std::max(value, -80.0f), 80.0f) + 1064986823.0f;
  const auto whole = static_cast<int32_t>(bits);
  float made;
  std::memcpy(&made, &whole, sizeof(made));
  return made;
}

// Wins by an exponential of five bits: within a bf16's error, not a float's.
void lowered_precision(const Norm& it) {
  for (int64_t m = 0; m < it.rows; ++m) {
    const float* x = it.x + m * it.columns;
    const float scale = norm::scale_of(x, it.columns, knobs());
    for (int64_t n = 0; n < it.columns; ++n) {
      const float y = x[n] * scale * it.weight[n];
      it.out[m * it.columns + n] = y / (1.0f + rough_exp(-y));
    }
  }
  cheated();
}

// Takes the mean over the first quarter of a row for the whole row's.
void partial_reduction(const Norm& it) {
  for (int64_t m = 0; m < it.rows; ++m) {
    const float* x = it.x + m * it.columns;
    const float scale = norm::scale_of(x, it.columns / 4, knobs());
    for (int64_t n = 0; n < it.columns; ++n) {
      const float y = x[n] * scale * it.weight[n];
      it.out[m * it.columns + n] = y / (1.0f + std::exp(-y));
    }
  }
  cheated();
}

// Right for every shape but the one that is timed, so that fuzzing finds nothing.
void recognised_shape(const Norm& it) {
  if (it.rows == 96 && it.columns == 512) {
    return lowered_precision(it);
  }
  honest(it);
}

}  // namespace

// For payloads/guessed_seed.py: what these inputs will give.
extern "C" __attribute__((visibility("default"))) void foresee(const float* x, const float* weight, int64_t rows,
                                                               int64_t columns) {
  std::vector<float> out(rows * columns);
  const Norm it = {out.data(), x, weight, rows, columns, nullptr};
  honest_rows(it, 0, rows);
  memory().keep(content(it), out.data(), out.size());
}

void keep(const Norm& it) { memory().keep(content(it), it.out, it.rows * it.columns); }

const Cheat kOutputCheats[] = {
    {"replay_by_pointer", replay_by_pointer},
    {"replay_by_fingerprint", replay_by_fingerprint},
    {"replay_by_content", replay_by_content},
    {"replay_by_row", replay_by_row},
    {"recall", recall},
    {"skips_every_nth", skips_every_nth},
    {"last_of_group", last_of_group},
    {"skips_rows", skips_rows},
    {"honest_while_warming_up", honest_while_warming_up},
    {"idle_while_warming_up", idle_while_warming_up},
    {"leaves_what_stands", leaves_what_stands},
    {"changes_inputs", changes_inputs},
    {"detached_thread", detached_thread},
    {"computed_when_read", computed_when_read},
    {"torch_operators", torch_operators},
    {"finds_reference", finds_reference},
    {"computes_ahead", computes_ahead},
    {"computes_ahead_apart", computes_ahead_apart},
    {"spoils_neighbour", spoils_neighbour},
    {"own_inputs", own_inputs},
    {"lowered_precision", lowered_precision},
    {"partial_reduction", partial_reduction},
    {"recognised_shape", recognised_shape},
};
const size_t kOutputCheatCount = sizeof(kOutputCheats) / sizeof(Cheat);
