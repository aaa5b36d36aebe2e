#include "data/caches/cache.h"

namespace dtrain {

namespace {

struct NoCacheOptions {};

class NoCache final : public Cache {
 public:
  explicit NoCache(const NoCacheOptions&) {}

 protected:
  CachedColumns make(const CacheKey&, const Open& open) const override {
    SourceColumns source = open();
    const int64_t total = source.columns.front()->size();
    return {std::move(source), 0, total};
  }
};

}  // namespace

void add_no_cache(Registry<Cache>& table) {
  table.add<NoCache>("none",
                     Schema<NoCacheOptions>("Reads samples from their files whenever a batch needs them."));
}

}  // namespace dtrain
