#include <algorithm>

#include "data/cache.h"

namespace dtrain {

namespace {

struct MemoryCacheOptions {};

class MemoryCache final : public Cache {
 public:
  explicit MemoryCache(const MemoryCacheOptions&) {}

 protected:
  CachedColumns make(const CacheKey& key, const Open& open) const override {
    Columns columns = open();
    const int64_t total = columns.front()->size();
    const bool there = std::all_of(columns.begin(), columns.end(),
                                   [](const auto& column) { return column->data() && column->in_memory(); });
    if (there) return {std::move(columns), 0, total};
    const auto [from, to] = rows_to_keep(key, total);
    for (auto& column : columns) column = copied(*column, from, to);
    return {std::move(columns), from, total};
  }

 private:
  static std::shared_ptr<const Column> copied(const Column& column, int64_t from, int64_t to) {
    const auto data = allocate_bytes(static_cast<size_t>(to - from) * column.row_bytes());
    for_each_block(column, from, to, [&](int64_t first, int64_t count, size_t offset) {
      column.read(row_numbers(first, count), data.get() + offset);
    });
    return std::make_shared<MemoryColumn>(column.spec(), to - from, data);
  }
};

}  // namespace

void add_memory_cache(KindTable<Cache>& table) {
  table.add<MemoryCache>("memory",
                         Schema<MemoryCacheOptions>(
                             "All samples are decoded at the start and kept in memory, in the file's type."));
}

}  // namespace dtrain
