// Writes the metrics of a run for TensorBoard, into the folder tensorboard/ of the run directory.
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

/// Writes TensorBoard's event files. There are several folders, which TensorBoard shows as separate runs:
/// train/ and validation/ contain one value per epoch for each metric, such as epoch_loss, and steps/
/// contains values indexed by global step. train/ and validation/ use the same tags, so that their curves are
/// in the same charts. Each process writes one file, whose name ends in "dtrain", in each folder.
///
/// If a run continues from an earlier step, the records of later steps that a previous process has written
/// are removed. The files then have the same records as those of an uninterrupted run. In case
/// TensorBoard has already read the removed records, an event tells it to discard them. Only the trainer's
/// thread uses this object. The first failure to write causes a warning; failures do not end the run.
class TensorBoard {
 public:
  using Warn = std::function<void(const std::string&)>;
  /// `epoch`, `step`: epoch and step after which the run continues. Both are 0 for a new run.
  TensorBoard(RunDirectory directory, const TensorboardOptions& options, int64_t epoch, int64_t step,
              Warn warn);

  /// Writes the optional data before the first step: the graph, and samples of the training split. The
  /// samples are those that the model receives with this seed. Does nothing if the run was resumed.
  void add_model(const Graph& graph, const Dataset& samples, uint64_t seed);
  /// Writes all numbers in the record of an epoch, except "epoch" and "step".
  void add_epoch(const Json& record);
  /// Writes the numbers of a step, if the interval in the options has passed.
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
  std::map<std::string, bool> begun_;  // folders in which this process has already created its file
  std::string steps_;                  // records of steps that have not been written yet
  Clock::time_point flushed_ = Clock::now();
  bool failed_ = false;
};

}  // namespace dtrain
