// Loss and metrics of a data split.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "engine/engine.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns whether a loss is NaN or infinite, or negative although no loss of the run can be negative. Such a
/// loss may be caused by invalid samples.
bool is_suspect(const RunConfig& config, double loss);

/// Opens a split as a data set with the columns that the run reads (inputs, targets and row weights).
/// `training`: true if the run trains on the split; the samples are then augmented, and class weights are
/// applied.
std::shared_ptr<const Dataset> open_samples(const RunConfig& config, const SplitSpec& split, bool training);

/// Returns the lengths of the samples of a split; null if batches are not truncated by length
/// (bucket_by_length).
std::shared_ptr<const SampleLengths> lengths_of(const RunConfig& config, const Dataset& data);

/// Opens a split as a loader of the run's batches. `rows`: the rows that are read (LoaderOptions::rows).
std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle,
                                    bool training, RowsOfBatch rows = nullptr);
/// Returns a function that returns the rows of a batch that the replicas of this process compute; null if
/// there is only one process.
RowsOfBatch own_rows(const RunPlan& plan, Plan::Purpose purpose);

/// Loss and metrics of a split.
struct Measures {
  /// A metric whose error may be larger than kStatedAccuracy. `by`: an upper bound of the error.
  struct Uncertain {
    std::string name;
    double by = 0;
    /// Returns a warning for the user. `prefix`: the split's prefix, "val_" or "".
    std::string describe(const std::string& prefix = "") const;
  };
  static constexpr double kStatedAccuracy = 0.005;

  /// The names and values of all numbers: first "loss" (the weighted sum of the losses of all heads, plus the
  /// penalties of regularizers), then the entries of RunConfig::total_names that are numbers.
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::pair<std::string, Json>> tables;  // metrics that are arrays
  std::vector<std::pair<std::string, Json>> curves;  // Metric::curve() of the metrics that have one
  std::vector<Uncertain> uncertain;

  double loss() const { return numbers.front().second; }
  void add_numbers_to(Json& record, const std::string& prefix = "") const;
  /// Adds all metrics to `record`, numbers first.
  void add_to(Json& record) const;
};

/// Computes loss and metrics from the heads' accumulators over `samples` samples.
Measures measures_of(const RunConfig& config, std::span<const double> sums, int64_t samples);
/// Computes the numbers only, without the tables, which may be large.
std::vector<std::pair<std::string, double>> numbers_of(const RunConfig& config, std::span<const double> sums,
                                                       int64_t samples);
/// Resets sums of an unfinished epoch to 0 if their meaning has changed since the version `version`
/// (TrainingState::sums_version). Returns the names of the affected metrics.
std::vector<std::string> clear_outdated(const RunConfig& config, std::span<double> sums, int64_t version);
/// Computes the loss only.
double loss_of(const RunConfig& config, std::span<const double> sums, int64_t samples);

/// Computes loss and metrics over a whole split. Returns nullopt as soon as `should_stop` (called before each
/// batch; null: never) returns true.
std::optional<Measures> evaluate_split(const RunConfig& config, Engine& engine, Loader& loader,
                                       const std::function<bool()>& should_stop);

}  // namespace dtrain
