// Formats the measured communication speeds between processes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "collective/link_speed.h"

namespace dtrain {

/// Formats a speed: "1.2 GB/s".
std::string format_rate(double bytes_per_second);

/// Communication speeds between several processes.
struct Communication {
  // Bytes of the arrays that are summed for a measurement: the default size of a gradient bucket.
  static constexpr size_t kSumBytes = size_t{25} << 20;

  std::vector<std::string> machines;  // names, indexed by rank
  std::vector<LinkSpeed> links;
  double sum_seconds = 0;     // time that CPUs need to sum kSumBytes over all processes
  double all_reduce = 0;      // bytes per second of NCCL's all-reduce over all GPUs; 0 if not measured
  std::string no_all_reduce;  // the reason why all_reduce was not measured although all processes have GPUs
};

/// Returns a table of the links, a line about the sum on CPUs and, if all processes have GPUs, a line about
/// NCCL's all-reduce.
std::string communication_text(const Communication& found);
/// Returns {links: [{between: [{process, machine}, ...], latency_seconds, bytes_per_second}],
/// sum_over_processes: {bytes, seconds}, all_reduce_bytes_per_second}.
Json communication_json(const Communication& found);

}  // namespace dtrain
