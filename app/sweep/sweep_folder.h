// The folder of a sweep: sweep.json, sweep.csv, sweep.jsonl, configs/, logs/ and a directory for each run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/directory_lock.h"
#include "sweep/sweep_plan.h"

namespace dtrain {

/// A run of a sweep, before it is trained.
struct PlannedRun {
  std::string name;      // of its directory in the sweep's folder
  SettingValues values;  // "seed" among them where seeds vary
  std::string config;    // YAML, as resolved
  int cores = 1;         // that it trains on
};

/// What a sweep is: the same command line finds its folder again. Runs may be added to it.
struct SweepIdentity {
  std::string name;           // of the configuration
  std::string configuration;  // a hash of the configuration as it is written, and of the keys that vary
};
SweepIdentity identify_sweep(const std::string& name, const std::string& written,
                             const std::vector<VariedKey>& varied);

class SweepFolder {
 public:
  /// `output`, or where that is empty the first of runs/NAME-sweep, runs/NAME-sweep-2, ... that is free or
  /// holds this sweep. Throws UserError where `output` holds another sweep, or files under the names of a
  /// sweep's that dtrain did not write.
  SweepFolder(const SweepIdentity& identity, const std::string& output);

  const std::string& path() const { return path_; }
  std::string run_path(const PlannedRun& run) const { return path_ + "/" + run.name; }
  std::string config_path(const PlannedRun& run) const { return path_ + "/configs/" + run.name + ".yaml"; }
  std::string log_path(const PlannedRun& run) const { return path_ + "/logs/" + run.name + ".log"; }

  /// Makes the folder, keeps other sweeps out of it, and writes sweep.json, which names all runs, and their
  /// configurations. Throws UserError where another process trains the sweep.
  void begin(const std::vector<PlannedRun>& runs);
  /// Writes a file of the folder, whole or not at all.
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string path_, configuration_;
  std::optional<DirectoryLock> lock_;
};

}  // namespace dtrain
