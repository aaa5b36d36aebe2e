// The runs of a sweep, and statistics for each setting.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/run_files.h"

namespace dtrain {

/// Returns the shortest distinct suffixes of keys: "learning_rate" for "train.optimizer.adam.learning_rate".
/// A schedule's option becomes "learning_rate.initial", whatever the schedule.
std::vector<std::string> short_keys(const std::vector<std::string>& whole_keys);

/// A run of a sweep. `values` has the varied values as written, by key; "seed" is not part of a setting.
struct SweepRun {
  std::vector<std::pair<std::string, std::string>> values;
  bool finished = false, failed = false;
  std::optional<BestRecord> best;  // best record of the monitored value
  std::string note;                // why the run failed
};

SweepRun sweep_run_of(const RunFiles& run);

/// The runs that differ only in their seed.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values;
  int64_t runs = 0, finished = 0, failed = 0;
  std::optional<double> mean;       // mean of the best monitored values of the finished runs
  std::optional<double> deviation;  // sample standard deviation (divides by n - 1); empty for one run
  std::string note;                 // note of the first failed run
};

/// Returns the settings, best mean first. Settings without a mean come last, in the order of the runs.
std::vector<SweepSetting> settings_of(std::span<const SweepRun> runs);

/// Returns the name of the monitored value, or "" if no run has one.
std::string monitored_value(std::span<const SweepRun> runs);

/// Returns an object for each setting, in the same order: values (numbers as numbers), runs, finished,
/// failed, monitor, mean, deviation, and `note` if a run failed.
Json sweep_json(std::span<const SweepRun> runs);

/// Returns the runs that belong to sweeps, by the sweep's folder.
std::map<std::string, std::vector<SweepRun>> sweeps_of(std::span<const RunFiles> runs);

}  // namespace dtrain
