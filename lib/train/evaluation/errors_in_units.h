// Errors of a split's predictions, in the units of the data.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/target_scale.h"
#include "train/evaluation/evaluation.h"
#include "train/evaluation/predicted_batches.h"

namespace dtrain {

/// Computes the metrics that have a unit (mean_absolute_error, mean_squared_error, root_mean_squared_error)
/// in the data's original units, for outputs whose targets were changed by the data set's transforms. Outputs
/// without such a metric get mean_absolute_error and root_mean_squared_error. Errors that must be computed
/// from predictions are left out if the outputs have masks, because predictions have no masks.
class ErrorsInUnits final : public PredictionVisitor {
 public:
  /// Keeps a reference to the configuration.
  explicit ErrorsInUnits(const RunConfig& config);
  ~ErrorsInUnits() override;

  /// Returns whether visit() must be called with all predictions. This is not necessary if each error is a
  /// value from the evaluation multiplied by a factor.
  bool needs_predictions() const;
  void visit(const PredictedBatch& batch) override;
  /// Returns the name and the value of each error metric, such as mean_absolute_error. The names are the same
  /// as in the evaluation. `numbers`: Measures::numbers of the same samples.
  std::vector<std::pair<std::string, double>> results(
      const std::vector<std::pair<std::string, double>>& numbers) const;

 private:
  struct ScaledError;

  void add(const std::string& name, size_t head, std::shared_ptr<const Metric> metric, bool is_configured,
           bool weighted);

  const RunConfig& config_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  std::vector<TargetScale> scales_;  // one per head
  std::vector<ScaledError> errors_;
};

}  // namespace dtrain
