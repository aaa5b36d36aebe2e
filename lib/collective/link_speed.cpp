#include "collective/link_speed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>

namespace dtrain {

namespace {

constexpr int64_t kShort = 8, kLong = int64_t{16} << 20;

/// Returns the shortest mean time of a message in one direction, over several tries.
double seconds_of_message(World& world, int with, int64_t bytes, int rounds, int tries) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) best = std::min(best, world.measure_round_trips(with, bytes, rounds) / 2);
  return best;
}

/// Measures a link; called by the two processes that it connects. Short messages are measured in many short
/// tries instead of a few long ones, because the messenger's thread polls less often when it has been waiting
/// for a long time (processes/backoff.h).
void measure(World& world, LinkSpeed& link) {
  const int with = world.rank() == link.first ? link.second : link.first;
  link.latency = seconds_of_message(world, with, kShort, 8, 25);
  link.bandwidth = static_cast<double>(kLong) / seconds_of_message(world, with, kLong, 2, 3);
}

}  // namespace

std::vector<std::vector<std::pair<int, int>>> link_rounds(const std::vector<std::string>& machines) {
  std::map<std::string, std::vector<int>> ranks;
  std::vector<int> firsts;
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    std::vector<int>& its = ranks[machines[rank]];
    its.push_back(static_cast<int>(rank));
    if (its.size() == 1) firsts.push_back(static_cast<int>(rank));
  }
  std::vector<std::vector<std::pair<int, int>>> rounds(1);
  for (const int first : firsts)
    if (const std::vector<int>& its = ranks[machines[static_cast<size_t>(first)]]; its.size() > 1)
      rounds[0].emplace_back(its[0], its[1]);
  // Circle method: the first machine keeps its place in the list, and after each round all other machines
  // move on by one place.
  constexpr int kNone = -1;
  if (firsts.size() % 2 == 1) firsts.push_back(kNone);
  for (size_t round = 1; round < firsts.size(); ++round) {
    std::vector<std::pair<int, int>>& pairs = rounds.emplace_back();
    for (size_t i = 0; i < firsts.size() / 2; ++i) {
      const auto [first, second] = std::minmax(firsts[i], firsts[firsts.size() - 1 - i]);
      if (first != kNone) pairs.emplace_back(first, second);
    }
    std::rotate(firsts.begin() + 1, firsts.end() - 1, firsts.end());
  }
  std::erase_if(rounds, [](const auto& pairs) { return pairs.empty(); });
  return rounds;
}

std::vector<LinkSpeed> measure_links(World& world, const std::vector<std::string>& machines) {
  std::vector<LinkSpeed> links;
  // Latency and bandwidth of the links that this process measures; 0 for other links.
  std::vector<double> mine;
  for (const auto& round : link_rounds(machines)) {
    world.any(false);  // waits for all processes, so that they start together
    for (const auto& [first, second] : round) {
      LinkSpeed speed{first, second};
      if (world.rank() == first || world.rank() == second) measure(world, speed);
      links.push_back(speed);
      mine.insert(mine.end(), {speed.latency, speed.bandwidth});
    }
  }
  std::vector<double> all(mine.size() * machines.size());
  world.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (size_t i = 0; i < links.size(); ++i) {
    const size_t at = static_cast<size_t>(links[i].first) * mine.size() + 2 * i;
    links[i].latency = all[at];
    links[i].bandwidth = all[at + 1];
  }
  std::sort(links.begin(), links.end(), [](const LinkSpeed& a, const LinkSpeed& b) {
    return std::pair(a.first, a.second) < std::pair(b.first, b.second);
  });
  return links;
}

double measure_process_sum(World& world, size_t bytes) {
  constexpr int kRounds = 6;  // the first round is a warm-up and is not counted
  std::vector<float> values(bytes / sizeof(float));
  const std::array<float*, 1> sums{values.data()};
  const auto sum =
      world.background_sum_of_floats(world.replica_ranks(1), static_cast<int64_t>(values.size()));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    world.any(false);  // waits for all processes, so that they start together
    const auto start = std::chrono::steady_clock::now();
    sum->start(sums);
    sum->wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (round > 0) best = std::min(best, taken.count());
  }
  std::vector<double> all(static_cast<size_t>(world.size()));
  world.all_gather(std::as_bytes(std::span(&best, 1)), std::as_writable_bytes(std::span(all)));
  return *std::max_element(all.begin(), all.end());
}

}  // namespace dtrain
