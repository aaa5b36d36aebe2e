// Computes the members of StepRequest that depend on row weights.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/executor.h"
#include "run/run_config.h"

namespace dtrain {

class StepWeights {
 public:
  /// Keeps a reference to the configuration.
  explicit StepWeights(const RunConfig& config);

  /// Sets StepRequest::loss_factors, and `row_weights` of StepRequest::numbers, from the request's batch.
  void set(StepRequest& request);

 private:
  /// Returns Head::weights_per_sample of each head, for batches whose Batch::length() is `length`.
  const std::vector<int64_t>& per_sample(int64_t length);

  const RunConfig& config_;
  const bool needs_divisors_;
  std::map<int64_t, std::vector<int64_t>> per_sample_;  // by length; 0: batches that are not truncated
};

}  // namespace dtrain
