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

/// Name of the file, in a sweep's folder, that lists the values of each run: {"runs": {"<folder>": {"<key>":
/// "<value>", ...}}}.
inline constexpr const char* kSweepFile = "sweep.json";

/// Information about metrics that is derived from a run's configuration. The names of metrics have no "val_"
/// prefix.
struct MetricFacts {
  bool known = false;
  std::set<std::string> larger_is_better;
  std::map<std::string, std::string> targets;  // for each metric, the target with which it compares an output
  /// For each metric, a description of what it computes. If the same metric occurs under two names, both have
  /// the same description.
  std::map<std::string, std::string> computes;

  /// Returns the information for a configuration. `known` is false if this version of dtrain does not accept
  /// the configuration.
  static MetricFacts of(const ConfigNode& config);
  bool is_larger_better(const std::string& name) const;
  /// Returns the target with which a metric compares an output, or "" if it is unknown.
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
  Json samples;               // content of samples.json; null if the file is missing
  bool running = false;       // whether a process is training the run at the moment
  /// For a run of a sweep: the keys that the sweep varies, with their values in this run.
  std::vector<std::pair<std::string, std::string>> varied;
  Json seconds;  // time breakdown (TimeSpent) of the last process; null if it was not recorded

  /// Returns the name of the run in its configuration. If the configuration has no name, returns the name of
  /// the directory.
  std::string name() const;
  /// Return the epoch and the step of the last record.
  int64_t epochs() const;
  int64_t steps() const;
  /// Returns the configured number of epochs, or nullopt if the configuration does not specify it.
  std::optional<int64_t> epochs_configured() const;
  /// last_event() returns the last event with this name, e.g. "end". last_begin() returns the last event with
  /// which a process began ("fit" or "resume"). Both return null if there is no such event.
  const Json* last_event(std::string_view name) const;
  const Json* last_begin() const;

  /// Returns the state of the run: "running", "failed", "finished" (it reached its configured end, or a
  /// callback ended it), "stopped" (it ended earlier) or "empty".
  std::string state() const;
  /// Returns how the last process that trained the run ended. Returns nullopt if the process is still running
  /// or was killed.
  std::optional<Outcome> outcome() const;
  /// Returns how the run ended, in the words of run.jsonl. Returns "killed, or the machine stopped" if the
  /// last process recorded no end, and "" if the run is still running.
  std::string how() const;
};

/// Reads the files of a run that exist. Incomplete lines are ignored, because the run may still be running,
/// or may have been killed while it wrote a line. Throws UserError if `path` is not a run directory. A run
/// directory contains config.yaml, and metrics.jsonl or run.jsonl.
RunFiles read_run_files(const std::string& path);
/// Returns the paths of the run directories in a folder, sorted. If the folder is itself a run directory,
/// returns the folder. Subfolders that are not run directories are also searched (`runs/tuning/a`).
std::vector<std::string> find_runs(const std::string& folder);

/// Returns every scalar of a configuration, indexed by its path, e.g. {"train.optimizer.adam.learning_rate":
/// "0.001"}.
Json settings_of(const ConfigNode& config);

/// Returns the records in these lines. Skips invalid lines.
std::vector<Json> parse_json_lines(std::string_view text);

/// Maximum number of classes of a confusion matrix whose cells are shown.
constexpr size_t kMostMatrixClasses = 60;
/// Parses the lines of tables.jsonl. A confusion matrix with more than kMostMatrixClasses classes is replaced
/// by an object. Its key `classes` has [true rows, predicted rows, correct rows] for each class. Its key
/// `confusions` has the most frequent confusions as [target, prediction, rows].
std::vector<Json> parse_tables(std::string_view lines);

/// The best value of a number in the records of a run.
struct BestRecord {
  std::string monitor;
  double value = 0;
  int64_t epoch = 0;
  bool larger_is_better = false;
};
/// Returns the best value of the number called `monitor`, or nullopt if no record contains this number.
std::optional<BestRecord> best_record(const RunFiles& run, const std::string& monitor,
                                      MonitorMode mode = MonitorMode::automatic);
/// Returns the best value of the number that checkpoint.best monitors. If checkpoint.best is not set, uses
/// val_loss, or the loss if there is no val_loss.
std::optional<BestRecord> best_record(const RunFiles& run);
/// Returns the best value of the number that checkpoint.best monitors. Returns nullopt if the run does not
/// keep its best checkpoint.
std::optional<BestRecord> kept_best_record(const RunFiles& run);

}  // namespace dtrain
