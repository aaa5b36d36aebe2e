// Measuring the links between processes, which are threads here.
#include "collective/link_speed.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

using Pair = std::pair<int, int>;

std::vector<std::string> different_machines(int count) {
  std::vector<std::string> machines;
  for (int i = 0; i < count; ++i) machines.push_back(fmt::format("node{}", i));
  return machines;
}

}  // namespace

TEST_CASE("every pair of machines is measured once, and a machine is in at most one pair per round") {
  for (const int count : {2, 3, 4, 7, 16}) {
    CAPTURE(count);
    std::set<Pair> all;
    const auto rounds = link_rounds(different_machines(count));
    CHECK(rounds.size() == static_cast<size_t>(count % 2 == 0 ? count - 1 : count));
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const Pair& pair : round) {
        CHECK(pair.first < pair.second);
        CHECK(busy.insert(pair.first).second);
        CHECK(busy.insert(pair.second).second);
        CHECK(all.insert(pair).second);
      }
    }
    CHECK(all.size() == static_cast<size_t>(count * (count - 1) / 2));
  }
}

TEST_CASE("links within machines are measured first, between the first two processes of each machine") {
  const std::vector<std::vector<Pair>> expected{{{0, 1}, {3, 5}}, {{0, 3}}};
  CHECK(link_rounds({"a", "a", "a", "b", "a", "b"}) == expected);
  CHECK(link_rounds({"a", "a"}) == std::vector<std::vector<Pair>>{{{0, 1}}});
}

TEST_CASE("all processes get the speeds of all links and the time of sums") {
  const std::vector<std::string> machines{"a", "a", "b", "c"};
  Processes processes(4);
  std::vector<std::vector<LinkSpeed>> links(4);
  std::vector<double> seconds(4);
  processes.run([&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    links[rank] = measure_links(world, machines);
    seconds[rank] = measure_process_sum(world, size_t{1} << 20);
  });
  CHECK(processes.queues().is_empty());
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    CAPTURE(rank);
    std::vector<Pair> pairs;
    for (size_t i = 0; i < links[rank].size(); ++i) {
      const LinkSpeed& link = links[rank][i];
      pairs.emplace_back(link.first, link.second);
      CHECK(link.latency > 0);
      CHECK(link.latency == links[0][i].latency);
      CHECK(link.bandwidth > 0);
      CHECK(link.bandwidth == links[0][i].bandwidth);
    }
    CHECK(pairs == std::vector<Pair>{{0, 1}, {0, 2}, {0, 3}, {2, 3}});
    CHECK(seconds[rank] > 0);
    CHECK(seconds[rank] == seconds[0]);
  }
}

TEST_CASE("measure_round_trips() sends a message to another process and back, once more than requested") {
  Processes processes(2);
  std::vector<double> seconds(2);
  processes.run([&](World& world) {
    seconds[static_cast<size_t>(world.rank())] = world.measure_round_trips(1 - world.rank(), 1000, 3);
  });
  CHECK(processes.queues().is_empty());
  CHECK(seconds[0] > 0);
  CHECK(seconds[1] == 0);
  for (const int rank : {0, 1}) CHECK(processes.queues().sent_by(rank) == 4 * 1000);
}
