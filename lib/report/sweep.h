// The runs of a sweep, and what they come to by setting.
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

/// The last parts of keys, "learning_rate" of "train.optimizer.adam.learning_rate", as short as they may be
/// without being the same. A schedule's option is "learning_rate.initial", whatever the schedule.
std::vector<std::string> short_keys(const std::vector<std::string>& whole_keys);

/// A run of a sweep. `values` are by key, as they were written; the key "seed" is no part of a setting.
struct SweepRun {
  std::vector<std::pair<std::string, std::string>> values;
  bool finished = false, failed = false;
  std::optional<BestRecord> best;  // of the monitored value
  std::string note;                // why it failed
};

SweepRun sweep_run_of(const RunFiles& run);

/// The runs that differ in nothing but their seed.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values;
  int64_t runs = 0, finished = 0, failed = 0;
  std::optional<double> mean;       // of the monitored value's best, over the finished runs
  std::optional<double> deviation;  // of the sample: divided by the runs less one; nothing for one run
  std::string note;                 // of the first run that failed
};

/// The settings, the best mean first; those without a mean last, in the order of the runs.
std::vector<SweepSetting> settings_of(std::span<const SweepRun> runs);

/// The name of the monitored value; "" where no run has one.
std::string monitored_value(std::span<const SweepRun> runs);

/// An object for each setting, in the same order: values (numbers as numbers), runs, finished, failed,
/// monitor, mean, deviation; `note` where a run failed.
Json sweep_json(std::span<const SweepRun> runs);

/// The runs that are of sweeps, by the sweep's folder.
std::map<std::string, std::vector<SweepRun>> sweeps_of(std::span<const RunFiles> runs);

}  // namespace dtrain
