#include "data/columns/column.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <sys/mman.h>

namespace dtrain {

std::shared_ptr<std::byte> allocate_bytes(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const bool large = bytes >= 2 * kHugePage;
  const size_t alignment = large ? kHugePage : 64;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  if (rounded < bytes) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, rounded);
  if (!memory) throw std::bad_alloc();
  if (large) madvise(memory, rounded, MADV_HUGEPAGE);  // only a hint: the system may ignore it
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

void MemoryColumn::read_rows(std::span<const int64_t> rows, void* dst) const {
  const size_t bytes = row_bytes();
  auto* out = static_cast<std::byte*>(dst);
  for (const int64_t row : rows) {
    std::memcpy(out, data_.get() + static_cast<size_t>(row) * bytes, bytes);
    out += bytes;
  }
}

std::vector<int64_t> row_numbers(int64_t first, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

}  // namespace dtrain
