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

/// Returns the pairs of processes that measure_links() measures, in rounds: pairs of a round have no machine
/// in common, except for those within one machine. There is a pair for each two machines, of their first
/// processes, and one for each machine with several processes. `machines`: names by rank. Rounds of pairs of
/// machines are those of a round-robin tournament (circle method).
std::vector<std::vector<std::pair<int, int>>> link_rounds(const std::vector<std::string>& machines);

/// Measures links by messages as in training, one round after the other. All processes must call it, and get
/// the same results, sorted by ranks.
std::vector<LinkSpeed> measure_links(World& world, const std::vector<std::string>& machines);

/// Returns the seconds in which the processes sum one array of this many bytes each, as the gradients of CPUs
/// are summed: best of several sums, in the slowest process. All processes must call it.
double measure_process_sum(World& world, size_t bytes);

}  // namespace dtrain
