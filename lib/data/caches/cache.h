// Caches keep the samples of a split between the first time they are read and the next.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "data/columns/source_columns.h"

namespace dtrain {

/// Identifies the samples of a reader, so that splits can share them and a stale cache file is noticed.
struct CacheKey {
  std::string source;    // the reader's options, its files' paths, the rows, what the model wants
  std::string identity;  // the same, and the files' sizes and times
  std::string name;      // of the first of the splits that read these samples
  /// [from, to) has all rows that any of the splits needs; unset: all rows of the source.
  std::optional<std::vector<int64_t>> rows;
  SourceFacts facts;  // by which they are to be read
};

/// Samples as a cache keeps them. The columns hold consecutive rows of the source, which has `total` of them.
struct CachedColumns : SourceColumns {
  CachedColumns() = default;
  CachedColumns(SourceColumns source, int64_t first_row, int64_t rows)
      : SourceColumns(std::move(source)), first(first_row), total(rows) {}
  /// Whether reading by these facts gives what is here.
  bool was_read_by(const SourceFacts& wanted) const { return wanted == known || wanted == facts; }
  /// The columns, the weights and the names, as far as they are there.
  Columns all() const;
  /// Replaces them, in this order.
  void replace(const Columns& all);

  SourceFacts known;  // before they were read
  int64_t first = 0;  // the source's number of the columns' first row
  int64_t total = 0;
  bool on_device = false;  // each device that the samples go to is to keep a copy
};

/// Holds a cache's options and knows the samples that are in use at the moment. Any thread may use it.
class Cache {
 public:
  using Open = std::function<SourceColumns()>;

  virtual ~Cache() = default;
  /// The samples of `key`. Calls `open` where nobody holds them; splits of the same file share one copy.
  std::shared_ptr<const CachedColumns> get(const CacheKey& key, const Open& open) const;
  /// Throws UserError where the cache could not keep the samples of the split with this name
  /// (CacheKey::name).
  virtual void check(const std::string& /*name*/) const {}

 protected:
  virtual CachedColumns make(const CacheKey& key, const Open& open) const = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<std::weak_ptr<const CachedColumns>>> held_;
};

template <>
const Registry<Cache>& registry<Cache>();

/// The rows [first, second) that are to be kept: those of the key, as far as a source of `total` rows has
/// them.
std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total);

// Each cache adds itself; cache.cpp lists them.
void add_no_cache(Registry<Cache>& table);
void add_memory_cache(Registry<Cache>& table);
void add_file_cache(Registry<Cache>& table);
void add_device_cache(Registry<Cache>& table);

}  // namespace dtrain
