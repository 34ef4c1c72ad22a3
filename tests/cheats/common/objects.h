// Other objects of the process: their tables of functions, and their code.
#pragma once

#include <link.h>

#include <cstddef>
#include <string>
#include <vector>

struct Object {
  ElfW(Addr) base;
  std::string path;
  const ElfW(Dyn) * dynamic;
};

ElfW(Addr) own_base();

// A library of kernelgate's that is not this one. Null where there is none.
const Object* find_base();

// Writes `with` over the address of `symbol` in an object's global offset table, or in all but this library's own.
void replace_in(const Object& object, const char* symbol, void* with);
void replace_everywhere(const char* symbol, void* with);

// Makes the pages of `address` accessible.
bool unlock(void* address, size_t bytes, int access);
