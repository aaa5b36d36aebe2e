// The results of one epoch: its record for metrics.jsonl, its tables, and the numbers that callbacks look up.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "optim/monitor.h"
#include "run/record/epoch_tables.h"
#include "run/run_config.h"
#include "train/evaluation/evaluation.h"

namespace dtrain {

class EpochReport {
 public:
  /// `epoch` counts from 1; `step` is the global step at the epoch's end.
  EpochReport(const RunConfig& config, int64_t epoch, int64_t step);

  /// Adds the measures of a split. `prefix`: "" for the training split, "val_" for the validation split.
  void add(const Measures& measures, const std::string& prefix);
  /// Adds the learning rate of the last step, the epoch's seconds, and its training samples per second.
  void add_speed(double learning_rate, double seconds, double samples_per_second);

  const Json& record() const { return record_; }
  /// Returns the epoch's line of tables.jsonl. To be called once.
  TableLine finish_tables() { return tables_.finish(); }
  /// Returns a function that looks up a number by its name in the record. The function is valid as long as
  /// this object exists.
  MetricLookup metric() const;

 private:
  const RunConfig& config_;
  Json record_;
  TableLineWriter tables_;
  std::vector<std::pair<std::string, double>> numbers_;
};

}  // namespace dtrain
