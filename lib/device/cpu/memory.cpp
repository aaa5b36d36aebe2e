#include "device/cpu/memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sys/mman.h>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cpu {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void fail(size_t bytes) {
  throw Error(fmt::format("cannot allocate {} bytes of host memory", bytes));
}

void release_mapping(void* data, size_t bytes) {
  munmap(data, round_up(bytes, kPage));
}

/// Maps one huge page more than requested. Then unmaps the beginning up to a multiple of the huge page size,
/// and the end that is not needed. As a result, at most the last huge page is partly unused.
Buffer map(size_t bytes) {
  const size_t size = round_up(bytes, kPage);
  void* whole = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) fail(bytes);
  char* const start = static_cast<char*>(whole);
  char* const data =
      start + (round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start));
  if (data != start) munmap(start, static_cast<size_t>(data - start));
  if (const size_t tail = kHugePage - static_cast<size_t>(data - start); tail > 0) munmap(data + size, tail);
  // This is only a hint: if the system provides no huge pages, the memory works but is slower.
  madvise(data, size, MADV_HUGEPAGE);
  return Buffer(data, bytes, release_mapping);
}

}  // namespace

Buffer allocate(size_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<size_t>::max() / 2) fail(bytes);
  if (bytes >= kHugePage) return map(bytes);
  void* data = std::aligned_alloc(kLine, round_up(bytes, kLine));
  if (!data) fail(bytes);
  std::memset(data, 0, bytes);
  return Buffer(data, bytes, [](void* memory, size_t) { std::free(memory); });
}

}  // namespace dtrain::cpu
