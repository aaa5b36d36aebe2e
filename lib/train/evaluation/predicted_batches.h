// Outputs and targets of a model, batch by batch, in host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "engine/engine.h"
#include "run/run_config.h"

namespace dtrain {

/// One output of the model for the samples of a batch. `output` contains the values of all samples
/// contiguously.
struct HeadBatch {
  std::span<float> output;
  View target;                     // shape [samples, ...], in the form that the loss takes
  std::span<const float> weights;  // weights of the samples' rows; empty: all equal
};

struct PredictedBatch {
  std::span<const int64_t> rows;  // indices in the data set
  std::vector<HeadBatch> heads;   // in the order of RunConfig::heads
};

/// Receives the outputs and targets of a whole split, batch by batch.
class PredictionVisitor {
 public:
  virtual ~PredictionVisitor() = default;
  /// `batch` is valid during the call only.
  virtual void visit(const PredictedBatch& batch) = 0;
};

/// Runs every sample through the model once, in order, and passes each batch to all visitors. `engine`:
/// allocated for prediction with batches of `batch_size`. `data`: columns of inputs, targets and, if the
/// run's rows have weights, the weights. Returns false if `should_stop`, which is called before each batch,
/// has returned true.
bool visit_predictions(const RunConfig& config, Engine& engine, const std::shared_ptr<const Dataset>& data,
                       int64_t batch_size, std::span<PredictionVisitor* const> visitors,
                       const std::function<bool()>& should_stop);

}  // namespace dtrain
