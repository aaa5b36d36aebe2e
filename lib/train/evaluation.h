// Loss and metrics of a split.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "engine/replicas.h"
#include "run/run_config.h"

namespace dtrain {

/// Whether a loss is not finite, or negative where no loss of the run can be: samples may be at fault.
bool is_suspect(const RunConfig& config, double loss);

/// A split as the run's plans take it. `training`: it is trained on, so that it is augmented, and weights of
/// classes count.
std::shared_ptr<const Dataset> open_samples(const RunConfig& config, const SplitSpec& split, bool training);

/// A split in the run's batches.
std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle,
                                    bool training);

/// What a split's loss and metrics come to.
struct Measures {
  /// A number that may be off by more than kStatedAccuracy, and by how much at most.
  struct Uncertain {
    std::string name;
    double by = 0;
    /// Words for people; `prefix` is the split's, "val_" or "".
    std::string describe(const std::string& prefix = "") const;
  };
  static constexpr double kStatedAccuracy = 0.005;

  /// "loss" (the weighted sum of the heads' losses where there are several), then those of
  /// RunConfig::total_names that are numbers.
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::pair<std::string, Json>> tables;  // those that are arrays
  std::vector<std::pair<std::string, Json>> curves;  // Metric::curve(), of the numbers that have one
  std::vector<Uncertain> uncertain;

  double loss() const { return numbers.front().second; }
  void add_numbers_to(Json& record, const std::string& prefix = "") const;
  /// Sets them all, numbers first.
  void add_to(Json& record) const;
};

/// What the heads' totals over so many samples come to.
Measures measures_of(const RunConfig& config, std::span<const double> sums, int64_t samples);
/// The numbers alone; tables, which may be large, are not made.
std::vector<std::pair<std::string, double>> numbers_of(const RunConfig& config, std::span<const double> sums,
                                                       int64_t samples);
/// Sets sums of an epoch under way to 0 that `version` of TrainingState::sums counted in another way than
/// this one. Returns the names of the metrics that they are of.
std::vector<std::string> clear_outdated(const RunConfig& config, std::span<double> sums, int64_t version);
/// The loss alone.
double loss_of(const RunConfig& config, std::span<const double> sums, int64_t samples);

/// Loss and metrics over a whole split. Ends early, with nothing, once `is_to_end` (asked before each batch;
/// null: never) says so.
std::optional<Measures> evaluate_split(const RunConfig& config, Replicas& replicas, Loader& loader,
                                       const std::function<bool()>& is_to_end);

}  // namespace dtrain
