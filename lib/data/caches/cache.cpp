#include "data/caches/cache.h"

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
  auto& slots = held_[key.identity];
  std::erase_if(slots, [](const auto& slot) { return slot.expired(); });
  for (const auto& slot : slots)
    if (auto held = slot.lock(); held && held->was_read_by(key.facts)) return held;
  CachedColumns made = make(key, open);
  made.known = key.facts;
  auto shared = std::make_shared<const CachedColumns>(std::move(made));
  slots.push_back(shared);
  return shared;
}

Columns CachedColumns::all() const {
  Columns all = columns;
  for (const auto& extra : {weights, names})
    if (extra) all.push_back(extra);
  return all;
}

void CachedColumns::replace(const Columns& all) {
  size_t next = 0;
  for (auto& column : columns) column = all[next++];
  for (auto* extra : {&weights, &names})
    if (*extra) *extra = all[next++];
}

std::pair<int64_t, int64_t> rows_to_keep(const CacheKey& key, int64_t total) {
  if (!key.rows) return {0, total};
  const int64_t to = std::min((*key.rows)[1], total);
  return {std::min((*key.rows)[0], to), to};
}

}  // namespace dtrain
