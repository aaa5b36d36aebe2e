// Finds the samples of a split with the largest losses.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "train/evaluation/predicted_batches.h"

namespace dtrain {

struct WorstSample {
  int64_t row = 0;  // index in the split, from 0
  std::string id;   // the sample's name in the data, or its row in the file
  double loss = 0;  // the loss of a batch of this sample only, without weights
  /// Contains one element for each output of the model: {target, prediction}, or {target, prediction, scores}
  /// if the prediction is a class. Values are numbers in the units of the data's targets, or arrays of such
  /// numbers.
  std::vector<Json> outputs;
};

/// Keeps up to `count` (at least 1) samples of a split, worst first.
class WorstSamples final : public PredictionVisitor {
 public:
  /// Keeps references to the arguments.
  WorstSamples(const RunConfig& config, const Dataset& data, size_t count);
  ~WorstSamples() override;

  void visit(const PredictedBatch& batch) override;
  std::vector<WorstSample> take() { return std::move(samples_); }

 private:
  class HeadErrors;

  const Dataset& data_;
  size_t count_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  std::vector<HeadErrors> heads_;
  std::vector<WorstSample> samples_;
};

/// Returns the worst samples of a split; nullopt if `should_stop`, which is called before each batch, has
/// returned true. `engine`: allocated for prediction with batches of `batch_size`.
std::optional<std::vector<WorstSample>> worst_samples(const RunConfig& config, Engine& engine,
                                                      const std::shared_ptr<const Dataset>& data,
                                                      int64_t batch_size, size_t count,
                                                      const std::function<bool()>& should_stop);

}  // namespace dtrain
