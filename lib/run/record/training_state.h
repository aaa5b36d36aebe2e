// The state of training, except the arrays of weights and optimizer state. It is stored as /dtrain/state in
// checkpoints.
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
  /// Upper limit for the number of sums that a run's metrics have. The limit exists because every step copies
  /// the sums.
  static constexpr int64_t kMostSums = int64_t{1} << 24;
  static constexpr int64_t kSumsVersion = 2;  // the largest Metric::sums_version()

  int64_t step = 0;           // number of steps done in the whole run
  int64_t epoch = 0;          // finished epochs
  int64_t step_in_epoch = 0;  // steps done in the current epoch
  /// Returns RunLength::shift for a run that continues with this number of steps per epoch.
  int64_t schedule_shift(int64_t steps_per_epoch) const {
    return epoch * steps_per_epoch + step_in_epoch - step;
  }
  // The following members describe the part of the current epoch that has been trained.
  std::vector<double> sums;  // all 0 at the start of an epoch; saved only in checkpoints within an epoch
  int64_t sums_version = kSumsVersion;  // version of the meaning of the sums (Metric::sums_version())
  int64_t samples = 0;
  double train_seconds = 0;  // seconds spent in steps
  double epoch_seconds = 0;  // seconds in total

  // State of the loss scaling for float16; 0 if the run uses no loss scaling.
  double loss_scale = 0;
  int64_t good_steps = 0;  // number of steps with a finite gradient since the scale changed

  // Contains the weights whose optimizer state did not begin at the start of the run, because they were
  // frozen before or were trained by a different optimizer. The value is the number of steps that were done
  // when their optimizer state began.
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
    TableLine tables = {};  // tables of the best epoch
  };
  std::optional<Best> best;
  std::map<std::string, DataIdentity> data;  // identity of the data, by split; empty in older checkpoints
  History history;                           // stored as a separate part of a checkpoint
  // Tables of the newest epoch. Together with the tables of the best epoch, they are stored as a separate
  // part of a checkpoint.
  TableLine tables;
  bool stopped = false;     // whether a callback stopped the run
  std::string stop_reason;  // the callback's message, if stopped
  int64_t epochs = 0;       // train.epochs when this state was saved

  /// Returns the lines of tables.jsonl: the line of the best epoch and, if the newest epoch is a different
  /// epoch, also the line of the newest epoch.
  std::string table_lines() const;

  /// Returns everything except the history and the tables. Doubles round-trip exactly.
  Json to_json() const;
  /// `history`: the lines of metrics.jsonl. `tables`: the lines of tables.jsonl. In checkpoints of earlier
  /// versions, `json` has an array "history", which includes the tables; it is then used instead of
  /// `history`. Throws UserError if a part is missing or malformed. Does not check `schedule` and the states
  /// of the callbacks, because the schedule and the callbacks check them.
  static TrainingState from_json(const Json& json, const std::string& history, std::string_view tables = "");

 private:
  void take_history(const Json* records, const std::string& lines);
  void take_tables(std::string_view lines);
};

}  // namespace dtrain
