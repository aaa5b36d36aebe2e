// Errors of a split's predictions in the units of the data.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/target_scale.h"
#include "train/evaluation.h"
#include "train/predicted_batches.h"

namespace dtrain {

/// The metrics that have a unit (mean_absolute_error, mean_squared_error, root_mean_squared_error), for
/// outputs whose targets the data set's transforms changed, as if nothing had been transformed. Outputs
/// without such a metric get mean_absolute_error and root_mean_squared_error.
class ErrorsInUnits final : public PredictionVisitor {
 public:
  /// Refers to the configuration.
  explicit ErrorsInUnits(const RunConfig& config);
  ~ErrorsInUnits() override;

  /// Whether they are more than the evaluation's numbers in another unit, so that the predictions have to be
  /// visited.
  bool needs_predictions() const;
  void visit(const PredictedBatch& batch) override;
  /// By name, as evaluation calls the metrics. `numbers` are Measures::numbers of the same samples.
  std::vector<std::pair<std::string, double>> results(
      const std::vector<std::pair<std::string, double>>& numbers) const;

 private:
  struct ScaledError;

  void add(const std::string& name, size_t head, std::shared_ptr<const Metric> metric, bool is_configured,
           bool weighted);

  const RunConfig& config_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  std::vector<TargetScale> scales_;  // by head
  std::vector<ScaledError> errors_;
};

}  // namespace dtrain
