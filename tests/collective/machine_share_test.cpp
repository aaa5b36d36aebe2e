// Processes that share cores or GPUs. The processes are threads here.
#include "collective/machine_share.h"

#include <string>
#include <vector>

#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("processes with the same text divide a list among them") {
  const std::vector<std::string> texts = {"a", "b", "a", "a"};
  std::vector<Range> parts(texts.size());
  Processes processes(4);
  processes.run([&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    const SharedPlace place = place_among_equals(world, texts[rank]);
    CHECK(place.sharing == (rank == 1 ? 1 : 3));
    parts[rank] = place.share_of(7);
  });
  const auto check = [&](size_t rank, int64_t begin, int64_t end) {
    CHECK(parts[rank].begin == begin);
    CHECK(parts[rank].end == end);
  };
  check(0, 0, 2);
  check(1, 0, 7);
  check(2, 2, 4);
  check(3, 4, 7);
}
