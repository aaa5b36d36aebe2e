// A run as the files in its directory tell of it.
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

/// The file in a sweep's folder that says which run has which values: {"runs": {"<folder>": {"<key>":
/// "<value>", ...}}}.
inline constexpr const char* kSweepFile = "sweep.json";

/// What a run's configuration says of the metrics that its records have, by their names without "val_".
struct MetricFacts {
  bool known = false;
  std::set<std::string> larger_is_better;
  std::map<std::string, std::string> targets;   // by metric: the target that it compares an output with
  std::map<std::string, std::string> computes;  // by metric: equal for one metric under two names

  /// Not known for a configuration that this version does not accept.
  static MetricFacts of(const ConfigNode& config);
  bool is_larger_better(const std::string& name) const;
  /// "" where nothing is known.
  std::string target_of(const std::string& name) const;
};

struct RunFiles {
  std::string path;           // of the run directory, as it was given
  std::string config_text;    // of config.yaml; "" where it cannot be read
  ConfigNode config;          // the same; null where it is no YAML
  MetricFacts metrics;        // that it tells of
  std::vector<Json> records;  // of metrics.jsonl
  std::vector<Json> tables;   // of tables.jsonl, as parse_tables() has them
  std::vector<Json> events;   // of run.jsonl, the oldest first
  Json samples;               // samples.json; null where there is none
  bool running = false;       // a process trains there now
  /// Of a run of a sweep: its values, by key.
  std::vector<std::pair<std::string, std::string>> varied;
  Json seconds;  // where the time of the last process went, as TimeSpent says it; null where nobody said

  /// As the configuration says it, or else that of the directory.
  std::string name() const;
  /// Epochs and steps that the records tell of.
  int64_t epochs() const;
  int64_t steps() const;
  /// To which the run was to go; nothing where the configuration does not say.
  std::optional<int64_t> epochs_configured() const;
  /// The last event of this name ("end") or, of `begin`, either that begins a process ("fit", "resume").
  const Json* last_event(std::string_view name) const;
  const Json* last_begin() const;

  /// "running", "failed", "finished" (its configured end, or a callback's), "stopped" (before that), or
  /// "empty".
  std::string state() const;
  /// How the last process that trained the run ended; nothing if it still runs or was killed.
  std::optional<Outcome> outcome() const;
  /// What run.jsonl says of how it ended; what is known where it does not say ("killed").
  std::string how() const;
};

/// Takes what is there: a run that is under way, or was killed in the middle of a line, is read up to there.
/// Throws UserError where `path` is no run directory: one has config.yaml, and metrics.jsonl or run.jsonl.
RunFiles read_run_files(const std::string& path);
/// Run directories in a folder, itself included, and in folders of those that are none (`runs/tuning/a`), by
/// path.
std::vector<std::string> find_runs(const std::string& folder);

/// Every scalar of a configuration under its path: {"train.optimizer.adam.learning_rate": "0.001"}.
Json settings_of(const ConfigNode& config);

/// The records that these lines hold; lines that are none are passed over.
std::vector<Json> parse_json_lines(std::string_view text);

/// A confusion matrix of more classes is not shown cell by cell.
constexpr size_t kMostMatrixClasses = 60;
/// The lines of tables.jsonl. Of a matrix with more classes than that there is an object: `classes`, for each
/// class [its rows, rows predicted to be of it, rows that are both], and `confusions`, the most frequent
/// [target, prediction, rows].
std::vector<Json> parse_tables(std::string_view lines);

/// The best value of one of the records' numbers.
struct BestRecord {
  std::string monitor;
  double value = 0;
  int64_t epoch = 0;
  bool larger_is_better = false;
};
/// Nothing where no record has that number.
std::optional<BestRecord> best_record(const RunFiles& run, const std::string& monitor,
                                      MonitorMode mode = MonitorMode::automatic);
/// Of what the run's checkpoint.best watches, else of val_loss, else of the loss.
std::optional<BestRecord> best_record(const RunFiles& run);
/// Of what checkpoint.best watches; nothing where the run does not keep its best checkpoint.
std::optional<BestRecord> kept_best_record(const RunFiles& run);

}  // namespace dtrain
