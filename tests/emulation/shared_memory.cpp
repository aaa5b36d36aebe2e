#include "emulation/shared_memory.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace dtrain::emulation {

/// The address of this variable is known. The addresses of all other variables in shared memory are computed
/// from it.
thread_local std::byte shared_memory_anchor{};

namespace {

/// A thread-local variable, and its offset from the start of the thread-local memory.
struct Symbol {
  ptrdiff_t offset;
  size_t bytes;
};

struct Symbols {
  Symbol anchor{0, 0};
  std::vector<Symbol> shared;
};

/// Returns whether this mangled name is the name of a local variable in a kernel.
bool is_shared(std::string_view name) {
  return name.starts_with("_ZZN6dtrain4cuda") || name.starts_with("_ZZN6dtrain9emulation");
}

template <class T>
T read_at(const std::string& file, size_t offset) {
  T value{};
  if (offset + sizeof value <= file.size()) std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

Symbols read_symbols() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  const auto section = [&](size_t i) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  Symbols found;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(table.sh_link);
    for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(file, table.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) continue;
      const std::string_view name = file.data() + names.sh_offset + symbol.st_name;
      const Symbol place{static_cast<ptrdiff_t>(symbol.st_value), symbol.st_size};
      if (name.find("shared_memory_anchor") != name.npos) found.anchor = place;
      if (is_shared(name)) found.shared.push_back(place);
    }
  }
  return found;
}

/// The shared memory of the calling thread. This variable must not be a local variable of shared_memory(),
/// because it would then be mistaken for a variable of a kernel.
thread_local std::vector<std::span<std::byte>> pieces;

}  // namespace

const std::vector<std::span<std::byte>>& shared_memory() {
  static const Symbols symbols = read_symbols();
  if (pieces.empty())
    for (const Symbol& symbol : symbols.shared)
      pieces.emplace_back(&shared_memory_anchor + (symbol.offset - symbols.anchor.offset), symbol.bytes);
  return pieces;
}

}  // namespace dtrain::emulation
