#include "collective/world.h"

namespace dtrain {

namespace {

class SingleProcess final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  LocalRanks local_ranks(int count) override { return {0, count}; }
  void all_reduce(std::span<double>) override {}
  int64_t all_reduce_max(int64_t mine) override { return mine; }
  void broadcast(std::span<std::byte>) override {}
  void abort() noexcept override {}
};

}  // namespace

World& single_process() {
  static SingleProcess world;
  return world;
}

}  // namespace dtrain
