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
/// at the same time. The first round has the first two processes of each machine with several. The other
/// rounds are those of a round-robin tournament of the machines (circle method): each two machines meet once,
/// each machine at most once in a round, and their first processes are the pair. `machines`: the name of each
/// rank's machine.
std::vector<std::vector<std::pair<int, int>>> link_rounds(const std::vector<std::string>& machines);

/// Measures links with the messages that training uses, one round after the other. All processes must call
/// it, and get the same results, sorted by ranks.
std::vector<LinkSpeed> measure_links(World& world, const std::vector<std::string>& machines);

/// Returns the seconds in which the processes sum one array of this many bytes each, in the way in which the
/// gradients of CPUs are summed. Each process takes the shortest of several sums, and the result is that of
/// the slowest process. All processes must call it.
double measure_process_sum(World& world, size_t bytes);

}  // namespace dtrain
