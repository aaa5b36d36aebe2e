// A model's outputs beside their targets, batch by batch, in host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "engine/replicas.h"
#include "run/run_config.h"

namespace dtrain {

/// One output's rows of a batch: the elements of its samples, one after the other.
struct HeadBatch {
  std::span<float> output;
  View target;                     // of shape [samples, ...], as the loss wants it
  std::span<const float> weights;  // of the samples' rows; empty where all count the same
};

struct PredictedBatch {
  std::span<const int64_t> rows;  // of the data set
  std::vector<HeadBatch> heads;   // in the order of RunConfig::heads
};

/// Computes something from the outputs and targets of a whole split.
class PredictionVisitor {
 public:
  virtual ~PredictionVisitor() = default;
  /// The batch is valid during the call.
  virtual void visit(const PredictedBatch& batch) = 0;
};

/// Runs every sample through the model once, in order, and shows each batch to all visitors. `replicas`: for
/// prediction, with batches of `batch_size`. `data`: the inputs, the targets, and where the run's rows have
/// weights, these. False where `is_to_end`, which is asked before each batch, ended it early.
bool visit_predictions(const RunConfig& config, Replicas& replicas,
                       const std::shared_ptr<const Dataset>& data, int64_t batch_size,
                       std::span<PredictionVisitor* const> visitors, const std::function<bool()>& is_to_end);

}  // namespace dtrain
