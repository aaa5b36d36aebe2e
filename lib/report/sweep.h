// The runs of a sweep, and statistics for each of its settings.
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

/// Returns short names for keys: for each key, the shortest suffix that differs from those of the other keys.
/// Example: "learning_rate" for "train.optimizer.adam.learning_rate". The type of a learning rate schedule is
/// omitted, as in "learning_rate.initial".
std::vector<std::string> short_keys(const std::vector<std::string>& whole_keys);

/// A run of a sweep. `values` has the keys that the sweep varies, with their values as written. It may
/// include "seed", which does not belong to a setting.
struct SweepRun {
  std::vector<std::pair<std::string, std::string>> values;
  bool finished = false, failed = false;
  std::optional<BestRecord> best;  // record with the best monitored value
  std::string note;                // the reason why the run failed
};

SweepRun sweep_run_of(const RunFiles& run);

/// One setting of a sweep, that is, all runs that differ only in their seed.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values;
  int64_t runs = 0, finished = 0, failed = 0;
  std::optional<double> mean;  // mean of the best monitored values of the finished runs
  // Sample standard deviation of the same values (n - 1 as divisor); nullopt if there are fewer than two.
  std::optional<double> deviation;
  std::string note;  // note of the first run that failed
};

/// Returns the settings sorted by their mean, the best first. Settings without a mean come last, in the order
/// of the runs.
std::vector<SweepSetting> settings_of(std::span<const SweepRun> runs);

/// Returns the name of the value that the sweep monitors, or "" if no run has such a value.
std::string monitored_value(std::span<const SweepRun> runs);

/// Returns a JSON array with one object per setting, in the order of settings_of(). Each object has the keys
/// `values`, `runs`, `finished`, `failed`, `monitor`, `mean` and `deviation`. If a run failed, the object
/// also has the key `note`. In `values`, numbers are JSON numbers.
Json sweep_json(std::span<const SweepRun> runs);

/// Returns the runs that belong to sweeps, grouped by the folder of the sweep.
std::map<std::string, std::vector<SweepRun>> sweeps_of(std::span<const RunFiles> runs);

}  // namespace dtrain
