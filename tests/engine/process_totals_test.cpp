// Totals of a step, summed over slots, replicas and processes. The processes are threads here.
#include "engine/update/process_totals.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr int kReplicas = 5, kSlots = 3, kTotals = 7, kSteps = 4;

/// Returns a summand of a total. The sum of these numbers over slots and replicas depends on the order of
/// addition.
double total_of(int step, int replica, int slot, int i) {
  return std::sin(step + 10 * replica + 100 * slot + 1000 * i) * std::pow(10.0, (replica + slot) % 4);
}

std::vector<double> totals_of(int step, int replica, int slot) {
  std::vector<double> totals;
  for (int i = 0; i < kTotals; ++i) totals.push_back(total_of(step, replica, slot, i));
  return totals;
}

/// Returns the sums over all replicas, added in the order in which Engine adds them in a run with a single
/// process.
std::vector<double> sums_of(int step) {
  std::vector<std::vector<double>> replicas;
  std::vector<const double*> parts;
  for (int replica = 0; replica < kReplicas; ++replica) {
    std::vector<std::vector<double>> slots;
    std::vector<const double*> of_slots;
    for (int slot = 0; slot < kSlots; ++slot) slots.push_back(totals_of(step, replica, slot));
    for (const auto& totals : slots) of_slots.push_back(totals.data());
    replicas.emplace_back(kTotals);
    sum_over_slots(of_slots, replicas.back());
  }
  for (const auto& totals : replicas) parts.push_back(totals.data());
  std::vector<double> sums(kTotals);
  single_process().sum({0, {kReplicas}}, parts, sums);
  return sums;
}

}  // namespace

TEST_CASE("totals have the same bits, no matter how the replicas are divided among processes") {
  for (const std::vector<int>& counts : divisions(kReplicas)) {
    CAPTURE(counts.size());
    Processes processes(static_cast<int>(counts.size()));
    processes.run([&](World& world) {
      const ReplicaRanks ranks = world.replica_ranks(counts[static_cast<size_t>(world.rank())]);
      ProcessTotals totals(ranks, kSlots, kTotals, world);
      for (int step = 0; step < kSteps; ++step) {
        std::vector<std::vector<double>> mine;
        for (int rank = 0; rank < ranks.local(); ++rank)
          for (int slot = 0; slot < kSlots; ++slot)
            mine.push_back(totals_of(step, ranks.first() + rank, slot));
        std::vector<std::thread> threads;
        for (size_t i = 0; i < mine.size(); ++i)
          threads.emplace_back([&, i] {
            totals.add(static_cast<int>(i) / kSlots, static_cast<int>(i) % kSlots, mine[i].data());
          });
        for (std::thread& thread : threads) thread.join();
        totals.wait();
        const std::vector<double> expected = sums_of(step);
        if (!std::equal(expected.begin(), expected.end(), totals.sums().begin(), totals.sums().end()))
          throw Error("wrong sums");
        if (totals.sum_of(&mine.back()[2], ranks.local() - 1, kSlots - 1) != expected[2])
          throw Error("wrong sum of a total");
      }
    });
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("the memory of totals includes the sums over slots and the arrays of other processes") {
  Processes processes(2);
  processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(1);
    const size_t with_one = ProcessTotals(ranks, 1, kTotals, world).bytes();
    const size_t with_two = ProcessTotals(ranks, 2, kTotals, world).bytes();
    if (with_one != 2 * kTotals * sizeof(double)) throw Error("wrong bytes");
    if (with_two != 3 * kTotals * sizeof(double)) throw Error("wrong bytes of several slots");
  });
}
