// A sweep's folder: sweep.json, sweep.csv, sweep.jsonl, configs/, logs/ and a directory per run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/directory_lock.h"
#include "sweep/sweep_plan.h"

namespace dtrain {

/// A run of a sweep that has been planned but not trained yet.
struct PlannedRun {
  std::string name;      // name of its directory in the sweep's folder
  SettingValues values;  // includes "seed" if seeds vary
  std::string config;    // resolved configuration, YAML
  int cores = 1;         // number of cores for training
  /// The same run under its other name: without the seed if `name` contains the seed, and with the seed if it
  /// does not. With --seeds, names contain the seed, so an earlier command may have trained the run under the
  /// other name. Contains at most one run. Empty if the run has only one possible name, as for all seeds
  /// except the configured one.
  std::vector<PlannedRun> other_name = {};
};

/// Identifies a sweep, so that the same command line finds the folder of the sweep again. The values of the
/// keys are not part of the identity, so that a later command can add runs with other values to the sweep.
struct SweepIdentity {
  std::string name;           // name of the sweep, from the configuration
  std::string configuration;  // hash of the configuration as written and of the varied keys
};
SweepIdentity identify_sweep(const std::string& name, const std::string& written,
                             const std::vector<VariedKey>& varied);

class SweepFolder {
 public:
  /// Uses the folder `output`. If `output` is empty, uses the first of the folders runs/NAME-sweep,
  /// runs/NAME-sweep-2, ... that is unused or contains this sweep. Throws UserError if `output` contains a
  /// different sweep, or files that have the names of a sweep's files but were not written by dtrain.
  SweepFolder(const SweepIdentity& identity, const std::string& output);

  const std::string& path() const { return path_; }
  std::string run_path(const PlannedRun& run) const { return path_ + "/" + run.name; }
  std::string config_path(const PlannedRun& run) const { return path_ + "/configs/" + run.name + ".yaml"; }
  std::string log_path(const PlannedRun& run) const { return path_ + "/logs/" + run.name + ".log"; }

  /// Creates and locks the folder. Writes sweep.json, which lists all runs, and a configuration for each run.
  /// A run that the folder already contains under its other name (PlannedRun::other_name) keeps this name:
  /// its element of `runs` is replaced. Throws UserError if another process is training the sweep.
  void begin(std::vector<PlannedRun>& runs);
  /// Writes a file of the folder atomically.
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string path_, configuration_;
  std::optional<DirectoryLock> lock_;
};

}  // namespace dtrain
