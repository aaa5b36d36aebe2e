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
  double latency = 0;         // time of one message of 8 bytes in one direction, in seconds
  double bandwidth = 0;       // bytes per second for messages of 16 MiB in one direction
};

/// Returns the pairs of processes that measure_links() measures. The pairs are divided into rounds, and the
/// pairs of one round are measured at the same time. The first round measures links within machines: it
/// contains the first two processes of every machine that has several processes. The other rounds measure the
/// links between machines, as in a round-robin tournament (circle method). Every two machines form one pair,
/// which is measured between their first processes, and a machine is in at most one pair of a round.
/// `machines`: the name of each rank's machine.
std::vector<std::vector<std::pair<int, int>>> link_rounds(const std::vector<std::string>& machines);

/// Measures the links one round after the other, with messages that are sent in the same way as in training.
/// All processes must call it. Every process gets the same results, sorted by ranks.
std::vector<LinkSpeed> measure_links(World& world, const std::vector<std::string>& machines);

/// Returns the time, in seconds, that the processes need to sum their arrays. Each process has one array of
/// `bytes` bytes. The arrays are summed in the same way as gradients on CPUs. Each process takes its fastest
/// of several sums, and the result is the time of the slowest process. All processes must call it.
double measure_process_sum(World& world, size_t bytes);

}  // namespace dtrain
