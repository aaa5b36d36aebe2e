// A run's numbers for TensorBoard, in the run directory's tensorboard/.
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

/// Writes files of its own, named ...dtrain, one a process, in folders that TensorBoard shows as runs beside
/// each other: train/ and validation/ (epoch_loss and the like, by epoch, under the same tags, so that they
/// lie over one another) and steps/ (by global step). Records that an earlier process wrote of later steps
/// than this one goes on from are cut off, so that all read as if nothing had happened; a TensorBoard that
/// has read them is told to forget them. Used by the trainer's thread. Whatever cannot be written is told
/// once, and is not worth a run.
class TensorBoard {
 public:
  using Warn = std::function<void(const std::string&)>;
  /// The run goes on after `epoch` and `step`, which are 0 at its beginning.
  TensorBoard(RunDirectory directory, const TensorboardOptions& options, int64_t epoch, int64_t step,
              Warn warn);

  /// What the options want of it before the first step: the graph, and samples of the training split as the
  /// model gets them with this seed. Not where the run goes on.
  void add_model(const Graph& graph, const Dataset& samples, uint64_t seed);
  /// Writes every number of an epoch's record but "epoch" and "step".
  void add_epoch(const Json& record);
  /// Of each step, or every so many, as the options say.
  void add_step(const Progress& progress);
  bool wants_histograms(int64_t epoch) const;
  bool wants_gradients() const { return options_.write_grads; }
  void add_histogram(int64_t epoch, const std::string& tag, std::span<const float> values);
  /// Writes what add_step() has put off.
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
  std::map<std::string, bool> begun_;  // folders that have this process's file
  std::string steps_;                  // records that are not written yet
  Clock::time_point flushed_ = Clock::now();
  bool failed_ = false;
};

}  // namespace dtrain
