// The state of training, except the arrays. Stored as /dtrain/state in checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/splits/data_identity.h"
#include "run/record/epoch_tables.h"
#include "run/record/history.h"

namespace dtrain {

struct TrainingState {
  /// Upper limit of the number of sums of a run's metrics. There is a limit because every step copies the
  /// sums.
  static constexpr int64_t kMostSums = int64_t{1} << 24;
  static constexpr int64_t kSumsVersion = 2;  // the largest Metric::sums_version()

  int64_t step = 0;           // number of steps done in the whole run
  int64_t epoch = 0;          // finished epochs
  int64_t step_in_epoch = 0;  // steps done in the current epoch
  // State of the current epoch, over its training batches:
  std::vector<double> sums;             // all zero at an epoch's start; saved within an epoch only
  int64_t sums_version = kSumsVersion;  // the Metric::sums_version() that the sums follow
  int64_t samples = 0;
  double train_seconds = 0;  // seconds spent in steps
  double epoch_seconds = 0;  // seconds in total

  // State of float16 loss scaling; 0 without it.
  double loss_scale = 0;
  int64_t good_steps = 0;  // number of steps with a finite gradient since the scale changed

  // For weights whose optimizer state began after the run did (they were frozen, or trained by another
  // optimizer), the number of steps that were done at that time.
  std::map<std::string, int64_t> slots_since;

  Json schedule;  // state of the learning rate schedule
  struct OfCallback {
    std::string kind;
    Json state;
  };
  std::vector<OfCallback> callbacks;  // in the configuration's order
  struct Best {
    double value;
    int64_t step;
    std::string watched;    // the monitor and its mode, in the form of optim/monitor.h
    TableLine tables = {};  // tables of that epoch
  };
  std::optional<Best> best;
  std::map<std::string, DataIdentity> data;  // identity of the data, by split; empty in older checkpoints
  History history;                           // a separate part of a checkpoint
  // Tables of the newest epoch. Together with the tables of the best epoch, they are a separate part of a
  // checkpoint.
  TableLine tables;
  bool stopped = false;     // whether a callback stopped the run
  std::string stop_reason;  // the callback's message, if stopped
  int64_t epochs = 0;       // train.epochs when this state was saved

  /// Returns the lines of tables.jsonl: the line of the best epoch and, if the newest epoch is a different
  /// epoch, also the line of the newest epoch.
  std::string table_lines() const;

  /// Returns everything except the history and the tables. Doubles round-trip exactly.
  Json to_json() const;
  /// `history`: the lines of metrics.jsonl. Checkpoints of earlier versions have an array "history" in `json`
  /// instead, which takes precedence and includes the tables. `tables`: the lines of tables.jsonl. Throws
  /// UserError if a part is missing or malformed. Does not check `schedule` and the callbacks' states, which
  /// their owners check.
  static TrainingState from_json(const Json& json, const std::string& history, std::string_view tables = "");

 private:
  void take_history(const Json* records, const std::string& lines);
  void take_tables(std::string_view lines);
};

}  // namespace dtrain
