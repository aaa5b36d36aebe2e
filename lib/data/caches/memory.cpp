#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"
#include "data/caches/cache.h"
#include "data/loader/parallel.h"
#include "device/device.h"

namespace dtrain {

namespace {

struct MemoryCacheOptions {};

class MemoryCache : public Cache {
 public:
  explicit MemoryCache(const MemoryCacheOptions&) {}

 protected:
  CachedColumns make(const CacheKey& key, const Open& open) const override {
    SourceColumns source = open();
    const int64_t total = source.columns.front()->size();
    CachedColumns cached(std::move(source), 0, total);
    Columns columns = cached.all();
    const bool there = std::all_of(columns.begin(), columns.end(),
                                   [](const auto& column) { return column->data() && column->in_memory(); });
    if (there) return cached;
    const auto [from, to] = rows_to_keep(key, total);
    check_room(columns, to - from);
    for (auto& column : columns) column = copied(*column, from, to);
    cached.replace(columns);
    cached.first = from;
    return cached;
  }

 private:
  /// Throws UserError if the rows do not fit into the free memory. The check is made before any memory is
  /// allocated. Otherwise, a system that overcommits memory would kill the process later, without a message.
  static void check_room(const Columns& columns, int64_t rows) {
    size_t bytes = 0;
    for (const auto& column : columns) bytes += static_cast<size_t>(rows) * column->row_bytes();
    const HostMemory memory = host_memory();
    if (bytes > memory.left())
      throw UserError(
          fmt::format("cache: the samples need {} of memory, but only {} is available (limited by {}); use "
                      "`cache: none` to read samples when they are needed",
                      format_bytes(bytes), format_bytes(memory.left()), memory.whose));
  }

  /// Copies the rows [from, to) of a column to memory. Several threads copy a large column because most of
  /// the time is spent on clearing newly allocated pages.
  static std::shared_ptr<const Column> copied(const Column& column, int64_t from, int64_t to) {
    const size_t row_bytes = column.row_bytes(), bytes = static_cast<size_t>(to - from) * row_bytes;
    const auto data = allocate_bytes(bytes);
    const auto copy = [&](int64_t begin, int64_t end) {
      std::byte* const dst = data.get() + static_cast<size_t>(begin - from) * row_bytes;
      for_each_block(column, begin, end, [&](int64_t first, int64_t count, size_t offset) {
        column.read(row_numbers(first, count), dst + offset);
      });
    };
    const size_t wanted = std::min(bytes / kBytesWorthAThread, available_cores().size());
    const auto parts = static_cast<int64_t>(std::max<size_t>(wanted, 1));
    run_blocks(parts, [&](int64_t i) {
      copy(from + (to - from) * i / parts, from + (to - from) * (i + 1) / parts);
    });
    return std::make_shared<MemoryColumn>(column.spec(), to - from, data);
  }

  static constexpr size_t kBytesWorthAThread = size_t{16} << 20;
};

/// Keeps the samples in host memory, and sets CachedColumns::on_device. Each device therefore copies the
/// samples to its own memory when it needs them for the first time.
class DeviceCache final : public MemoryCache {
 public:
  using MemoryCache::MemoryCache;

 protected:
  CachedColumns make(const CacheKey& key, const Open& open) const override {
    CachedColumns columns = MemoryCache::make(key, open);
    columns.on_device = true;
    return columns;
  }
};

}  // namespace

void add_device_cache(Registry<Cache>& table) {
  table.add<DeviceCache>(
      "device",
      Schema<MemoryCacheOptions>("Like `memory`, but also keeps a copy of the samples in the memory of each "
                                 "GPU, so that samples need not be copied from host memory in each step."));
}

void add_memory_cache(Registry<Cache>& table) {
  table.add<MemoryCache>(
      "memory",
      Schema<MemoryCacheOptions>(
          "Decodes all samples at the start and keeps them in memory, in the data type of the file."));
}

}  // namespace dtrain
