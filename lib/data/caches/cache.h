// Caches keep the samples of a split after they have been read for the first time.
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

/// Identifies the data that a reader reads. With the key, splits can share the samples that they have in
/// common, and a stale cache file can be detected.
struct CacheKey {
  // The reader's options, the paths and rows of its files, and the columns that the model needs.
  std::string source;
  std::string identity;  // `source`, and the sizes and modification times of the files
  std::string name;      // name of the first split that reads these samples
  /// Range [from, to) of rows that contains the rows of all splits that share this cache. If not set, all
  /// rows of the source are cached.
  std::optional<std::vector<int64_t>> rows;
  SourceFacts facts;  // facts passed to the reader
};

/// Samples in a cache. The columns hold consecutive rows of the source, which has `total` rows.
struct CachedColumns : SourceColumns {
  CachedColumns() = default;
  CachedColumns(SourceColumns source, int64_t first_row, int64_t rows)
      : SourceColumns(std::move(source)), first(first_row), total(rows) {}
  /// Returns true if reading the source with the facts `wanted` would give the same columns.
  bool was_read_by(const SourceFacts& wanted) const { return wanted == known || wanted == facts; }
  /// Returns the columns, followed by the weights and the names if they exist.
  Columns all() const;
  /// Replaces all columns, weights and names. `all` must have the same order as the result of all().
  void replace(const Columns& all);

  SourceFacts known;  // facts that were passed to the reader; `facts` contains the facts after reading
  int64_t first = 0;  // the first row of the columns is this row of the source
  int64_t total = 0;
  bool on_device = false;  // whether each device that uses the samples should keep a copy
};

/// Holds a cache's options and tracks the samples currently in use. Safe to use from several threads.
class Cache {
 public:
  using Open = std::function<SourceColumns()>;

  virtual ~Cache() = default;
  /// Returns the samples of `key`. Splits of the same file share one copy. `open` is not called if another
  /// caller currently holds the samples, or if a cache file contains them.
  std::shared_ptr<const CachedColumns> get(const CacheKey& key, const Open& open) const;
  /// Throws UserError if the cache could not store the samples of this split (CacheKey::name).
  virtual void check(const std::string& /*name*/) const {}

 protected:
  virtual CachedColumns make(const CacheKey& key, const Open& open) const = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<std::weak_ptr<const CachedColumns>>> held_;
};

template <>
const Registry<Cache>& registry<Cache>();

/// Returns the range [first, second) of rows that the cache keeps: the rows of the key, limited to the
/// `total` rows of the source.
std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total);

// Each cache registers itself; cache.cpp lists them.
void add_no_cache(Registry<Cache>& table);
void add_memory_cache(Registry<Cache>& table);
void add_file_cache(Registry<Cache>& table);
void add_device_cache(Registry<Cache>& table);

}  // namespace dtrain
