// Where the samples of a split stay between their first reading and the next.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "config/registry.h"
#include "data/column.h"

namespace dtrain {

/// What identifies the samples of a reader, so that splits share them and a stale cache file is noticed.
struct CacheKey {
  std::string identity;  // the reader's options, its files' sizes and times, what the model wants
  std::string name;      // of the split that stands for all that read the same
  std::optional<std::vector<int64_t>> rows;  // [from, to): those that any split needs; none: all
};

/// Samples as a cache keeps them: rows [first, first + rows held) of the source's `total`.
struct CachedColumns {
  Columns columns;
  int64_t first = 0;
  int64_t total = 0;
  bool on_device = false;  // to be kept where the model is, too
};

/// A cache's options, and what it holds at the moment. Any thread may use it.
class Cache {
 public:
  using Open = std::function<Columns()>;

  virtual ~Cache() = default;
  /// The samples of `key`, opened if nobody holds them: splits of the same file share one copy.
  std::shared_ptr<const CachedColumns> get(const CacheKey& key, const Open& open) const;
  /// Throws UserError where the samples of the split with this name (CacheKey::name) could not be kept.
  virtual void check(const std::string& /*name*/) const {}

 protected:
  virtual CachedColumns make(const CacheKey& key, const Open& open) const = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::weak_ptr<const CachedColumns>> held_;
};

template <>
const Registry<Cache>& registry<Cache>();

/// The rows of the key that a source of `total` rows has: [first, second).
std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total);

// Each cache adds itself; cache.cpp lists them.
void add_no_cache(Registry<Cache>& table);
void add_memory_cache(Registry<Cache>& table);
void add_file_cache(Registry<Cache>& table);
void add_device_cache(Registry<Cache>& table);

}  // namespace dtrain
