// The samples of a split that a trained model is most wrong about.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "train/predicted_batches.h"

namespace dtrain {

struct WorstSample {
  int64_t row = 0;  // in the split, from 0
  std::string id;   // as the data call it: its name, or its row in the file
  double loss = 0;  // as that of a batch of this sample alone, without weights
  /// By output: {target, prediction}, and where it has a class {target, prediction, scores}: numbers in the
  /// units of the data's targets, or arrays of them.
  std::vector<Json> outputs;
};

/// Keeps at most `count` samples (at least 1) of a split, the worst first.
class WorstSamples final : public PredictionVisitor {
 public:
  /// Refers to the arguments.
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

/// The worst samples of a split, as above. Nothing where `is_to_end`, which is asked before each batch, ended
/// it early. `replicas`: for prediction, with batches of `batch_size`.
std::optional<std::vector<WorstSample>> worst_samples(const RunConfig& config, Replicas& replicas,
                                                      const std::shared_ptr<const Dataset>& data,
                                                      int64_t batch_size, size_t count,
                                                      const std::function<bool()>& is_to_end);

}  // namespace dtrain
