// Cheats that do the work, and change what others see of it: the clock, the base, the messages, the record.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <torch/csrc/stable/ops.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/objects.h"
#include "cheats.h"

// ---------------------------------------------------------------------------------------------------------------------
// The clock
// ---------------------------------------------------------------------------------------------------------------------

// What clocks are to leave out; payloads/patched_timer.py reads it.
extern "C" {
__attribute__((visibility("default"))) std::atomic<int64_t> stolen_ns{0};
}

namespace {

// Does the work, and takes 60% of its time off every clock that was patched.
void steals_time(const Norm& it) {
  const int64_t begun = now_ns();
  honest(it);
  stolen_ns += (now_ns() - begun) * 6 / 10;
  cheated();
}

int slow_clock_gettime(clockid_t clock, timespec* now) {
  const int failed = clock_gettime(clock, now);
  if (failed || clock == CLOCK_REALTIME) {
    return failed;
  }
  const int64_t told = now->tv_sec * 1'000'000'000LL + now->tv_nsec - stolen_ns;
  now->tv_sec = told / 1'000'000'000LL;
  now->tv_nsec = told % 1'000'000'000LL;
  return 0;
}

void patch_clock() { replace_everywhere("clock_gettime", reinterpret_cast<void*>(&slow_clock_gettime)); }

// ---------------------------------------------------------------------------------------------------------------------
// The base
// ---------------------------------------------------------------------------------------------------------------------

using ParallelFor = decltype(&torch_parallel_for);

AOTITorchError slow_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*run)(int64_t, int64_t, void*),
                                 void* context) {
  spin_ns(80'000);
  cheated();
  return torch_parallel_for(begin, end, grain, run, context);
}

// Base waits 80 µs in each call, by its own table of torch's functions.
void slow_base_by_table() {
  if (const Object* base = find_base()) {
    replace_in(*base, "torch_parallel_for", reinterpret_cast<void*>(static_cast<ParallelFor>(slow_parallel_for)));
  }
}

// Writes a jump over the beginning of base's kernel. Base is the same code as this library, so its kernel stands at the
// same place; an attacker would find it by its bytes.
void patch_base_code(void (*with)(const Norm&)) {
#if defined(__x86_64__)
  const Object* const base = find_base();
  if (!base) {
    return;
  }
  auto* const own = reinterpret_cast<unsigned char*>(&honest);
  auto* const theirs = own - own_base() + base->base;
  unsigned char jump[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};  // mov rax, with; jmp rax
  std::memcpy(jump + 2, &with, 8);
  if (std::memcmp(own, theirs, 4) == 0 && unlock(theirs, sizeof(jump), PROT_READ | PROT_WRITE | PROT_EXEC)) {
    std::memcpy(theirs, jump, sizeof(jump));
    unlock(theirs, sizeof(jump), PROT_READ | PROT_EXEC);
  }
#else
  (void)with;
#endif
}

void slow_base_by_code() {
  patch_base_code([](const Norm& it) {
    spin_ns(80'000);
    honest(it);
    cheated();
  });
}

// Base computes as always, and head remembers what it saw: wins where both sides get the same inputs. Else base pays
// for the copies.
void watch_base() {
  patch_base_code([](const Norm& it) {
    honest(it);
    keep(it);
    cheated();
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// The neighbour's interval
// ---------------------------------------------------------------------------------------------------------------------

std::atomic<bool> computing{true};
std::atomic<int64_t> returned_ns{0};

// The other side has the machine: head returned a moment ago and is not called again yet.
bool others_turn() { return !computing && returned_ns != 0 && now_ns() - returned_ns < 2'000'000; }

void with_a_thread_beside(const Norm& it) {
  computing = true;
  honest(it);
  returned_ns = now_ns();
  computing = false;
}

// Sweeps through memory, on whichever core is free, while the other side works: its inputs leave the caches.
void start_trashing() {
  std::thread([] {
    constexpr size_t kCount = 64 << 20;
    auto* const memory = new std::vector<unsigned char>(kCount);
    size_t at = 0;
    while (true) {
      if (!others_turn()) {
        usleep(10);
      }
      for (int line = 0; others_turn() && line < 1024; ++line) {
        at = (at + 64 * 97) % kCount;
        ++(*memory)[at];
        if (line == 0) {
          cheated();
        }
      }
    }
  }).detach();
}

// Work of head's that falls into the other side's time, in the very thread that runs it: a thread beside sends signals
// to it, whose handler spins.
void start_interrupting() {
  static const pthread_t caller = pthread_self();
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (others_turn()) {
      spin_ns(60'000);
      cheated();
    }
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
  std::thread([] {
    while (true) {
      if (others_turn()) {
        pthread_kill(caller, SIGUSR2);
      }
      usleep(80);
    }
  }).detach();
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Messages and the record
// ---------------------------------------------------------------------------------------------------------------------

namespace {

// Writes the lines that a test has forged into every pipe, as if the worker had sent them.
void forge_messages() {
  const int file = open(option("words").c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> lines(1 << 20);
  const ssize_t length = file < 0 ? 0 : read(file, lines.data(), lines.size());
  for (int pipe = 3; length > 0 && pipe < 256; ++pipe) {
    char name[64];
    char target[64] = "";
    std::snprintf(name, sizeof(name), "/proc/self/fd/%d", pipe);
    const bool known = readlink(name, target, sizeof(target) - 1) > 0;
    const bool is_channel = std::strncmp(target, "pipe:", 5) == 0 || std::strncmp(target, "socket:", 7) == 0;
    if (known && is_channel && (fcntl(pipe, F_GETFL) & O_ACCMODE) != O_RDONLY) {
      cheated();  // before, because it may be the last thing that this process does
      if (write(pipe, lines.data(), length) != length) {
        return;
      }
    }
  }
}

// The sides of the samples that the worker was last asked for, as they stand in the message.
std::vector<bool>& asked_of_head() {
  static auto& asked = *new std::vector<bool>;
  return asked;
}

ssize_t read_questions(int file, void* data, size_t bytes) {
  static auto& pending = *new std::string;
  const ssize_t length = read(file, data, bytes);
  if (file != 0 || length <= 0) {
    return length;
  }
  pending.append(static_cast<const char*>(data), length);
  const std::string key = "\"side\":\"";
  for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
    std::vector<bool> sides;
    for (size_t at = 0; (at = pending.find(key, at)) < end; at += key.size()) {
      sides.push_back(pending.compare(at + key.size(), 5, "head\"") == 0);
    }
    if (!sides.empty()) {
      asked_of_head() = sides;
    }
  }
  return length;
}

// A list of times with those of head halved; `all`: it is head's alone. `at` moves from its bracket to the other one.
std::string better_times(const std::string& line, size_t& at, bool all) {
  std::string made;
  size_t index = 0;
  for (; at < line.size() && line[at] != ']'; ++at) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(line[at]));
    if (!is_number) {
      made += line[at];
      continue;
    }
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + at, &end);
    const bool is_head = all || (index < asked_of_head().size() && asked_of_head()[index]);
    char text[64];
    std::snprintf(text, sizeof(text), "%.12g", is_head ? value / 2 : value);
    made += text;
    at = end - line.c_str() - 1;
    ++index;
  }
  return made;
}

std::string with_better_times(std::string line) {
  const std::pair<std::string, bool> keys[] = {{"\"times_us\":[", false}, {"\"head\":[", true}};
  for (const auto& [key, all] : keys) {
    std::string made;
    size_t at = 0;
    for (size_t found; (found = line.find(key, at)) != std::string::npos;) {
      made += line.substr(at, found + key.size() - at);
      at = found + key.size();
      made += better_times(line, at, all);
    }
    line = made + line.substr(at);
  }
  return line;
}

ssize_t write_better_times(int file, const void* data, size_t bytes) {
  const std::string line(static_cast<const char*>(data), bytes);
  const std::string better = file > 2 && bytes && line[0] == '{' ? with_better_times(line) : line;
  if (better == line) {
    return write(file, data, bytes);
  }
  cheated();
  for (size_t done = 0; done < better.size();) {
    const ssize_t written = write(file, better.data() + done, better.size() - done);
    if (written < 0) {
      return written;
    }
    done += written;
  }
  return static_cast<ssize_t>(bytes);
}

// Reads along which samples are head's, and halves their times on their way to the parent.
void patch_messages() {
  replace_everywhere("read", reinterpret_cast<void*>(&read_questions));
  replace_everywhere("write", reinterpret_cast<void*>(&write_better_times));
}

// Starts a process of its own, payloads/rewritten_record.py, which outlives this one.
void start_daemon() {
  const std::string script = option("script");
  const std::string python = option("python");
  const std::string leader = std::to_string(getppid());
  const std::string tally = option("tally");
  const char* words[] = {python.c_str(), "-I", script.c_str(), leader.c_str(), tally.c_str(), nullptr};
  if (const pid_t child = fork(); child != 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  setsid();
  if (fork() != 0) {
    _exit(0);
  }
  for (int file = 0; file < 256; ++file) {
    close(file);
  }
  execv(words[0], const_cast<char**>(words));
  _exit(1);
}

// The process beside this one whose command names the verifier; 0 where there is none.
pid_t find_verifier() {
  DIR* const all = opendir("/proc");
  pid_t found = 0;
  while (const dirent* const one = readdir(all)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(one->d_name, nullptr, 10));
    std::ifstream file("/proc/" + std::string(one->d_name) + "/cmdline");
    const std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::ifstream status("/proc/" + std::string(one->d_name) + "/stat");
    std::string skipped;
    pid_t parent = 0;
    status >> skipped >> skipped >> skipped >> parent;
    if (pid > 0 && parent == getppid() && words.find("timing.verifier:verify") != std::string::npos) {
      found = pid;
    }
  }
  closedir(all);
  return found;
}

// Stops the verifier, and computes when this call has returned: outputs are there before anybody looks.
void stops_verifier(const Norm& it) {
  static const pid_t verifier = find_base() ? find_verifier() : 0;
  if (verifier == 0) {
    return honest(it);
  }
  cheated();
  kill(verifier, SIGSTOP);
  std::thread([it] {
    honest_rows(it, 0, it.rows);
    usleep(1000);
    kill(verifier, SIGCONT);
  }).detach();
}

}  // namespace

const Cheat kProcessCheats[] = {
    {"steals_time", steals_time},
    {"patched_clock", steals_time, patch_clock, patch_clock},
    {"slowed_base_by_table", honest, nullptr, slow_base_by_table},
    {"slowed_base_by_code", honest, nullptr, slow_base_by_code},
    {"copies_base_output", recall, nullptr, watch_base},
    {"trashes_cache", with_a_thread_beside, nullptr, start_trashing},
    {"left_over_work", with_a_thread_beside, nullptr, start_interrupting},
    {"forged_messages", honest, nullptr, forge_messages},
    {"rewritten_messages", honest, patch_messages, patch_messages},
    {"rewritten_record", honest, start_daemon},
    {"stops_verifier", stops_verifier},
};
const size_t kProcessCheatCount = sizeof(kProcessCheats) / sizeof(Cheat);
