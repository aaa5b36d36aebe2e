// Caches keep the samples of a split after the first time they are read.
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

/// Identifies the data that a reader reads, so that splits can share samples and a stale cache file is
/// detected.
struct CacheKey {
  std::string source;    // the reader's options, file paths and rows, and the columns that the model needs
  std::string identity;  // `source` plus sizes and times of the files
  std::string name;      // name of the first split that reads these samples
  /// Range [from, to) that covers the rows of all splits that share this cache; unset for all rows of the
  /// source.
  std::optional<std::vector<int64_t>> rows;
  SourceFacts facts;  // facts passed to the reader
};

/// Samples in a cache. The columns hold consecutive rows of the source, which has `total` rows.
struct CachedColumns : SourceColumns {
  CachedColumns() = default;
  CachedColumns(SourceColumns source, int64_t first_row, int64_t rows)
      : SourceColumns(std::move(source)), first(first_row), total(rows) {}
  /// Returns true if reading with the facts `wanted` would give these columns.
  bool was_read_by(const SourceFacts& wanted) const { return wanted == known || wanted == facts; }
  /// Returns the columns, then the weights and the names if present.
  Columns all() const;
  /// Replaces the columns that all() returns, in the same order.
  void replace(const Columns& all);

  SourceFacts known;  // facts passed to the reader (`facts` holds the result)
  int64_t first = 0;  // source row number of the columns' first row
  int64_t total = 0;
  bool on_device = false;  // whether each device that uses the samples should keep a copy
};

/// Holds a cache's options and tracks the samples currently in use. Safe to use from several threads.
class Cache {
 public:
  using Open = std::function<SourceColumns()>;

  virtual ~Cache() = default;
  /// Returns the samples of `key`. Calls `open` only if no caller holds them now; splits of the same file
  /// share one copy.
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

/// Returns the range [first, second) of rows to keep: the rows of the key, clipped to a source of `total`
/// rows.
std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total);

// Each cache registers itself; cache.cpp lists them.
void add_no_cache(Registry<Cache>& table);
void add_memory_cache(Registry<Cache>& table);
void add_file_cache(Registry<Cache>& table);
void add_device_cache(Registry<Cache>& table);

}  // namespace dtrain
