// Measures the links between the processes of a run.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "collective/world.h"

namespace dtrain {

/// The link between two processes.
struct LinkSpeed {
  int first = 0, second = 0;  // ranks
  double latency = 0;         // seconds of a message of 8 bytes, in one direction
  double bandwidth = 0;       // bytes per second of a message of 16 MiB, in one direction
};

/// Returns the pairs of processes that measure_links() measures, in rounds. Pairs of one round are measured
/// at the same time. The first round has the first two processes of each machine that has several processes.
/// The other rounds pair the machines as in a round-robin tournament (circle method): every two machines form
/// one pair, a machine is in at most one pair of a round, and a pair is measured between the first processes
/// of its machines. `machines`: the name of each rank's machine.
std::vector<std::vector<std::pair<int, int>>> link_rounds(const std::vector<std::string>& machines);

/// Measures links with the messages that training uses, one round after the other. All processes must call
/// it, and get the same results, sorted by ranks.
std::vector<LinkSpeed> measure_links(World& world, const std::vector<std::string>& machines);

/// Returns the seconds that the processes need to sum one array of `bytes` bytes each, in the same way as the
/// gradients of CPUs. Each process takes the shortest of several sums, and the result is that of the slowest
/// process. All processes must call it.
double measure_process_sum(World& world, size_t bytes);

}  // namespace dtrain
