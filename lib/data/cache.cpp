#include "data/cache.h"

#include <algorithm>

namespace dtrain {

template <>
const Registry<Cache>& registry<Cache>() {
  static const Registry<Cache> table = [] {
    Registry<Cache> all("cache");
    add_no_cache(all);
    add_memory_cache(all);
    add_file_cache(all);
    add_device_cache(all);
    return all;
  }();
  return table;
}

std::shared_ptr<const CachedColumns> Cache::get(const CacheKey& key, const Open& open) const {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const CachedColumns>& slot = held_[key.identity];
  if (auto held = slot.lock()) return held;
  auto made = std::make_shared<const CachedColumns>(make(key, open));
  slot = made;
  return made;
}

std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total) {
  if (!key.rows) return {0, total};
  const int64_t to = std::min((*key.rows)[1], total);
  return {std::min((*key.rows)[0], to), to};
}

}  // namespace dtrain
