#include "objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

ElfW(Addr) own_base() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&own_base), &self);
  return reinterpret_cast<ElfW(Addr)>(self.dli_fbase);
}

namespace {

#if defined(__x86_64__)
constexpr uint32_t kSlots[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#else
constexpr uint32_t kSlots[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

std::vector<Object> objects() {
  std::vector<Object> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* all) {
        for (int at = 0; at < info->dlpi_phnum; ++at) {
          if (info->dlpi_phdr[at].p_type == PT_DYNAMIC) {
            const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[at].p_vaddr);
            static_cast<std::vector<Object>*>(all)->push_back({info->dlpi_addr, info->dlpi_name, dynamic});
          }
        }
        return 0;
      },
      &found);
  return found;
}

bool is_other(const Object& object) { return object.base != own_base(); }

}  // namespace

const Object* find_base() {
  static Object kept;
  for (const Object& object : objects()) {
    const size_t name = object.path.rfind('/') + 1;
    if (is_other(object) && object.path.substr(name) == "kernel.so") {
      kept = object;
      return &kept;
    }
  }
  return nullptr;
}

bool unlock(void* address, size_t bytes, int access) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  return mprotect(reinterpret_cast<void*>(begin), (end - begin + page - 1) / page * page, access) == 0;
}

void replace_in(const Object& object, const char* symbol, void* with) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t sizes[2] = {};
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    // glibc has made these absolute, save those of the vDSO, which calls nobody.
    switch (entry->d_tag) {
      case DT_SYMTAB:
        symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        tables[0] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        sizes[0] = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables[1] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        sizes[1] = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (!symbols || !names || reinterpret_cast<ElfW(Addr)>(symbols) < object.base) {
    return;
  }
  for (int table = 0; table < 2; ++table) {
    for (size_t at = 0; tables[table] && at < sizes[table] / sizeof(ElfW(Rela)); ++at) {
      const ElfW(Rela) & entry = tables[table][at];
      const auto kind = static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info));
      const bool is_slot = std::find(std::begin(kSlots), std::end(kSlots), kind) != std::end(kSlots);
      if (is_slot && std::strcmp(names + symbols[ELF64_R_SYM(entry.r_info)].st_name, symbol) == 0) {
        auto* const slot = reinterpret_cast<void**>(object.base + entry.r_offset);
        if (unlock(slot, sizeof(void*), PROT_READ | PROT_WRITE)) {
          *slot = with;
        }
      }
    }
  }
}

void replace_everywhere(const char* symbol, void* with) {
  for (const Object& object : objects()) {
    if (is_other(object)) {
      replace_in(object, symbol, with);
    }
  }
}
