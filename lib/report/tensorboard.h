// Writes a run's metrics for TensorBoard to the run directory's tensorboard/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"
#include "nn/graph.h"
#include "run/record/run_directory.h"
#include "run/tensorboard_options.h"
#include "train/observer.h"

namespace dtrain {

/// Writes one file per process, named ...dtrain, in each of several folders, which TensorBoard shows as
/// separate runs: train/ and validation/ (epoch_loss etc. by epoch; the same tags, so that they share charts)
/// and steps/ (by global step). Removes an earlier process's records of steps after the one from which this
/// process continues, so that the files have the records of a run without interruption; an event tells a
/// TensorBoard that has read these records to discard them. Used by the trainer's thread. A write failure
/// causes one warning and does not end the run.
class TensorBoard {
 public:
  using Warn = std::function<void(const std::string&)>;
  /// The run continues after `epoch` and `step`; both are 0 for a new run.
  TensorBoard(RunDirectory directory, const TensorboardOptions& options, int64_t epoch, int64_t step,
              Warn warn);

  /// Writes the optional data before the first step: the graph, and samples of the training split as the
  /// model receives them with this seed. Does nothing if the run was resumed.
  void add_model(const Graph& graph, const Dataset& samples, uint64_t seed);
  /// Writes every number of an epoch's record except "epoch" and "step".
  void add_epoch(const Json& record);
  /// Writes a step's numbers at the interval that the options specify.
  void add_step(const Progress& progress);
  void add_histogram(int64_t epoch, const std::string& tag, std::span<const float> values);
  /// Writes the steps buffered by add_step().
  void flush();

 private:
  using Clock = std::chrono::steady_clock;
  using Scalars = std::vector<std::pair<std::string, double>>;

  void add_inputs(const TensorSpec& spec, size_t column, const Dataset& samples, uint64_t seed);
  void cut(const std::string& folder, int64_t last_step);
  void write(const std::string& folder, const std::string& records);

  const RunDirectory directory_;
  const TensorboardOptions options_;
  const int64_t epoch_, step_;
  const Warn warn_;
  const std::string file_name_;
  std::map<std::string, bool> begun_;  // folders that already have this process's file
  std::string steps_;                  // records not written yet
  Clock::time_point flushed_ = Clock::now();
  bool failed_ = false;
};

}  // namespace dtrain
