#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "collective/sum_tree.h"
#include "collective/team.h"
#include "device/device.h"

using namespace dtrain;

TEST_CASE("parts cover the whole range in order and have nearly equal sizes") {
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
        CHECK(largest - smallest < 2 * grain);  // the last grain may be incomplete
        if (grain == 1) CHECK(largest - smallest <= 1);
      }
}

namespace {

/// Returns equal shares in even rounds. In odd rounds, the share of rank 0 is empty, and the shares of later
/// ranks are larger.
Range share_of(int64_t n, int rank, int size, int round) {
  if (round % 2 == 0 || size == 1) return part_of(n, rank, size, 16);
  const auto start = [&](int64_t i) { return n * (i * (i - 1) / 2) / (int64_t{size} * (size - 1) / 2); };
  return {start(rank), start(rank + 1)};
}

}  // namespace

TEST_CASE("all_reduce and reduce_scatter add in the order of the tree over ranks in every call") {
  for (const int size : {1, 2, 3, 4, 5}) {
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
        const Range range = share_of(n, member.rank(), size, round);
        member.reduce_scatter(mine.data(), range);
        std::copy(mine.begin() + range.begin, mine.begin() + range.end, result.begin() + range.begin);
        double values[2] = {1.0, static_cast<double>(member.rank())};
        member.all_reduce(values);
        if (values[0] != size || values[1] != size * (size - 1) / 2.0) throw Error("wrong sum");
      });
      bool same = true;
      for (int64_t i = 0; i < n; ++i) {
        const auto sum = [&](const auto& self, Range node) -> float {
          if (node.size() == 1) return 0.1f * static_cast<float>(i + node.begin * 7 + round);
          const int64_t middle = middle_of(node);
          return self(self, {node.begin, middle}) + self(self, {middle, node.end});
        };
        same = same && result[static_cast<size_t>(i)] == sum(sum, {0, size});
      }
      CHECK(same);
    }
  }
}

TEST_CASE("all_gather gives every rank the values of all ranks, and zeros for ranks without values") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    constexpr size_t kValues = 7;
    Team team(size, false);
    team.run([&](Collective& member) {
      const auto context = make_cpu_context({}, {available_cores().front()}, false);
      for (int round = 0; round < 200; ++round) {
        // Each member overwrites its array immediately after the call. The call must not return while other
        // members still copy the array.
        std::vector<double> mine(kValues), all(kValues * static_cast<size_t>(size));
        for (size_t i = 0; i < kValues; ++i)
          mine[i] = 100.0 * round + 10.0 * member.rank() + static_cast<double>(i);
        if (member.rank() == round % 4) {
          all_gather_zeros(member, kValues);
          continue;
        }
        all_gather(member, *context, mine.data(), all.data(), kValues);
        std::fill(mine.begin(), mine.end(), -1.0);
        for (size_t i = 0; i < all.size(); ++i) {
          const auto rank = static_cast<int>(i / kValues);
          const double expected =
              rank == round % 4 ? 0.0 : 100.0 * round + 10.0 * rank + static_cast<double>(i % kValues);
          if (all[i] != expected) throw Error("wrong values");
        }
      }
    });
  }
}

TEST_CASE("members in one process exchange pointers and sum each other's arrays") {
  const int size = 3;
  Team team(size, false);
  std::vector<std::vector<float>> data(size, std::vector<float>(2)), sums = data;
  for (int round = 0; round < 200; ++round)
    team.run([&](Collective& member) {
      const auto rank = static_cast<size_t>(member.rank());
      // There is no barrier between the two calls. A member may be in the second call while other members
      // still read its data in the first call. The second call must not change these data.
      for (size_t call = 0; call < 2; ++call) {
        data[rank][call] = static_cast<float>(round + member.rank());
        const std::span<float* const> parts = member.share_pointers(&data[rank][call]);
        if (parts.size() != static_cast<size_t>(size) || parts[rank] != &data[rank][call])
          throw Error("wrong pointers");
        sums[rank][call] = 0;
        for (const float* part : parts) sums[rank][call] += *part;
      }
      member.barrier();
      for (const float sum : sums[rank])
        if (sum != static_cast<float>(size * round + 3)) throw Error("wrong sum");
    });
}

TEST_CASE("an error of one member is reported, and all members end") {
  for (const int failing : {0, 1, 2}) {
    Team team(3, false);
    const auto work = [&](Collective& member) {
      member.barrier();
      if (member.rank() == failing) throw Error("it broke");
      for (;;) member.barrier();
    };
    CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);
    CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);  // the error persists in later calls
  }
}

TEST_CASE("an error also wakes members that wait for something outside the group") {
  for (const int failing : {0, 1}) {
    Team team(2, false);
    std::atomic<bool> freed{false};
    std::atomic<int> calls{0};
    team.on_abort([&] {
      ++calls;
      freed = true;
      freed.notify_all();
    });
    team.run([](Collective& member) { member.barrier(); });
    CHECK(calls == 0);
    const auto work = [&](Collective& member) {
      if (member.rank() == failing) throw Error("it broke");
      freed.wait(false);
      throw Aborted();
    };
    CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);
    CHECK(calls == 1);
  }
}
