// Reads a run from the files in its directory.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "config/node.h"
#include "optim/monitor.h"
#include "run/record/outcome.h"

namespace dtrain {

/// The file in a sweep's folder with the values of each run: {"runs": {"<folder>": {"<key>": "<value>",
/// ...}}}.
inline constexpr const char* kSweepFile = "sweep.json";

/// Facts from a run's configuration about the metrics in its records. Names have no "val_" prefix.
struct MetricFacts {
  bool known = false;
  std::set<std::string> larger_is_better;
  std::map<std::string, std::string> targets;  // by metric, the target that it compares an output with
  /// By metric, a description of its computation, which is equal for one metric under two names.
  std::map<std::string, std::string> computes;

  /// Returns the facts; `known` is false if this version of dtrain does not accept the configuration.
  static MetricFacts of(const ConfigNode& config);
  bool is_larger_better(const std::string& name) const;
  /// Returns the target that a metric compares an output with; "" if unknown.
  std::string target_of(const std::string& name) const;
};

struct RunFiles {
  std::string path;           // path of the run directory, as given by the user
  std::string config_text;    // config.yaml; "" if it cannot be read
  ConfigNode config;          // parsed config.yaml; null if it is not valid YAML
  MetricFacts metrics;        // from the configuration
  std::vector<Json> records;  // from metrics.jsonl
  std::vector<Json> tables;   // from tables.jsonl, see parse_tables()
  std::vector<Json> events;   // from run.jsonl, oldest first
  Json samples;               // samples.json; null if absent
  bool running = false;       // whether a process trains the run now
  /// For a run of a sweep: its varied values, by key.
  std::vector<std::pair<std::string, std::string>> varied;
  Json seconds;  // time breakdown of the last process, from TimeSpent; null if not recorded

  /// Returns the name in the configuration, else the directory's name.
  std::string name() const;
  /// Return the epoch and the step of the last record.
  int64_t epochs() const;
  int64_t steps() const;
  /// Returns the epochs to train for, or nullopt if the configuration does not specify them.
  std::optional<int64_t> epochs_configured() const;
  /// Returns the last event of this name ("end"). last_begin() returns the last event that starts a process
  /// ("fit" or "resume").
  const Json* last_event(std::string_view name) const;
  const Json* last_begin() const;

  /// Returns "running", "failed", "finished" (reached its configured end, or a callback ended it), "stopped"
  /// (ended earlier) or "empty".
  std::string state() const;
  /// Returns how the last process that trained the run ended; nullopt if it still runs or was killed.
  std::optional<Outcome> outcome() const;
  /// Returns how the run ended, as run.jsonl says; "killed, or the machine stopped" if the last process
  /// recorded no end; "" if the run still runs.
  std::string how() const;
};

/// Reads all complete lines of the files that exist: the run may still be running, or may have been killed in
/// the middle of a line. Throws UserError if `path` is not a run directory: one with config.yaml, and
/// metrics.jsonl or run.jsonl.
RunFiles read_run_files(const std::string& path);
/// Returns the run directories in a folder (or the folder itself), sorted by path. Also searches subfolders
/// that are not run directories (`runs/tuning/a`).
std::vector<std::string> find_runs(const std::string& folder);

/// Returns every scalar of a configuration by its path, such as {"train.optimizer.adam.learning_rate":
/// "0.001"}.
Json settings_of(const ConfigNode& config);

/// Returns the records in these lines. Skips invalid lines.
std::vector<Json> parse_json_lines(std::string_view text);

/// Larger confusion matrices are not shown cell by cell.
constexpr size_t kMostMatrixClasses = 60;
/// Parses the lines of tables.jsonl. Replaces a matrix with more than kMostMatrixClasses classes by an
/// object: `classes` has [true rows, predicted rows, correct rows] for each class, and `confusions` the most
/// frequent [target, prediction, rows].
std::vector<Json> parse_tables(std::string_view lines);

/// The best value of one number in the records.
struct BestRecord {
  std::string monitor;
  double value = 0;
  int64_t epoch = 0;
  bool larger_is_better = false;
};
/// Returns the best value of the number `monitor`; nullopt if no record has the number.
std::optional<BestRecord> best_record(const RunFiles& run, const std::string& monitor,
                                      MonitorMode mode = MonitorMode::automatic);
/// Returns the best value of the number that checkpoint.best monitors, else of val_loss, else of the loss.
std::optional<BestRecord> best_record(const RunFiles& run);
/// Returns the best value of the number that checkpoint.best monitors, or nullopt if the run does not keep
/// its best checkpoint.
std::optional<BestRecord> kept_best_record(const RunFiles& run);

}  // namespace dtrain
