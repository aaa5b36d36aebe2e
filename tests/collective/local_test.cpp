#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "collective/team.h"

using namespace dtrain;

TEST_CASE("parts cover the whole, in order, and hardly differ") {
  for (const int64_t n : {0, 1, 5, 16, 17, 100, 1000})
    for (const int parts : {1, 2, 3, 8})
      for (const int64_t grain : {1, 16}) {
        int64_t at = 0, smallest = n, largest = 0;
        for (int i = 0; i < parts; ++i) {
          const Range range = part_of(n, i, parts, grain);
          CHECK(range.begin == at);
          at = range.end;
          smallest = std::min(smallest, range.size());
          largest = std::max(largest, range.size());
        }
        CHECK(at == n);
        CHECK(largest - smallest < 2 * grain);  // the last grain may itself be cut short
        if (grain == 1) CHECK(largest - smallest <= 1);
      }
}

TEST_CASE("all_reduce and reduce_scatter add in the order of ranks, many times over") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    const int64_t n = 5003;
    std::vector<std::vector<float>> data(static_cast<size_t>(size),
                                         std::vector<float>(static_cast<size_t>(n)));
    std::vector<float> result(static_cast<size_t>(n));
    Team team(size, size <= 2);
    for (int round = 0; round < 50; ++round) {
      team.run([&](Collective& member) {
        auto& mine = data[static_cast<size_t>(member.rank())];
        for (int64_t i = 0; i < n; ++i)
          mine[static_cast<size_t>(i)] = 0.1f * static_cast<float>(i + member.rank() * 7 + round);
        const Range range = member.reduce_scatter(mine.data(), n);
        std::copy(mine.begin() + range.begin, mine.begin() + range.end, result.begin() + range.begin);
        double values[2] = {1.0, static_cast<double>(member.rank())};
        member.all_reduce(values);
        if (values[0] != size || values[1] != size * (size - 1) / 2.0) throw Error("wrong sum");
      });
      bool same = true;
      for (int64_t i = 0; i < n; ++i) {
        float expected = 0.1f * static_cast<float>(i + round);
        for (int rank = 1; rank < size; ++rank) expected += 0.1f * static_cast<float>(i + rank * 7 + round);
        same = same && result[static_cast<size_t>(i)] == expected;
      }
      CHECK(same);
    }
  }
}

TEST_CASE("one member's error is the one that surfaces, and nobody hangs") {
  for (const int failing : {0, 1, 2}) {
    Team team(3, false);
    const auto work = [&](Collective& member) {
      member.barrier();
      if (member.rank() == failing) throw Error("it broke");
      for (;;) member.barrier();
    };
    CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);
    CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);  // and stays the answer
  }
}
