// The samples of a split that a trained model is most wrong about.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/replicas.h"
#include "train/run_config.h"

namespace dtrain {

struct WorstSample {
  int64_t row = 0;  // in the split, from 0
  std::string id;   // as the data call it: its name, or its row in the file
  double loss = 0;  // as that of a batch of this sample alone, without weights
  /// By output: {target, prediction}, and where it has a class {target, prediction, scores}: numbers in the
  /// units of the data's targets, or arrays of them.
  std::vector<Json> outputs;
};

/// At most `count` samples (at least 1) of a split, the worst first. `replicas`: for prediction, with batches
/// of `batch_size`. Ends early, with nothing, once `is_to_end`, which is asked before each batch, says so.
std::optional<std::vector<WorstSample>> worst_samples(const RunConfig& config, Replicas& replicas,
                                                      const std::shared_ptr<const Dataset>& data,
                                                      int64_t batch_size, size_t count,
                                                      const std::function<bool()>& is_to_end);

}  // namespace dtrain
