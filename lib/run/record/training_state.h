// All that the next step depends on besides the arrays: what a checkpoint's /dtrain/state holds.
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
  /// The most sums that a run's metrics may keep: they are copied at every step.
  static constexpr int64_t kMostSums = int64_t{1} << 24;
  static constexpr int64_t kSumsVersion = 2;  // the greatest of all metrics

  int64_t step = 0;           // global: steps done
  int64_t epoch = 0;          // epochs finished
  int64_t step_in_epoch = 0;  // of the epoch under way
  // Of the epoch under way, over its training batches:
  std::vector<double> sums;             // saved within an epoch only; an epoch begins with zeros
  int64_t sums_version = kSumsVersion;  // Metric::sums_version() that whoever counted them knew
  int64_t samples = 0;
  double train_seconds = 0;  // in steps
  double epoch_seconds = 0;  // in all

  // Of float16's loss scaling; 0 where there is none.
  double loss_scale = 0;
  int64_t good_steps = 0;  // since it changed

  // Of weights whose optimizer slots began later than the run (thawed, or of another optimizer before): the
  // steps that were done by then.
  std::map<std::string, int64_t> slots_since;

  Json schedule;  // of the learning rate
  struct OfCallback {
    std::string kind;
    Json state;
  };
  std::vector<OfCallback> callbacks;  // in the configuration's order
  struct Best {
    double value;
    int64_t step;
    std::string watched;    // what the value is the best of, as optim/monitor.h says it
    TableLine tables = {};  // of that epoch
  };
  std::optional<Best> best;
  std::map<std::string, DataIdentity> data;  // by split; none in older checkpoints
  History history;                           // a part of its own in a checkpoint
  TableLine tables;                          // of the newest epoch; with the best one's another such part
  bool stopped = false;                      // by a callback
  std::string stop_reason;                   // its words, where it stopped
  int64_t epochs = 0;                        // the configured end when this was saved

  /// The lines of tables.jsonl: the best epoch's, and the newest one's where that is another.
  std::string table_lines() const;

  /// All but the history and the tables. Doubles come back to the bit.
  Json to_json() const;
  /// `history`: the lines of metrics.jsonl; checkpoints of earlier versions have them as an array under
  /// "history" in `json`, which counts where it is there, and the tables among them. `tables`: the lines of
  /// tables.jsonl. Throws UserError where a part is missing or is not what it must be. `schedule` and the
  /// callbacks' states are theirs to check.
  static TrainingState from_json(const Json& json, const std::string& history, std::string_view tables = "");

 private:
  void take_history(const Json* records, const std::string& lines);
  void take_tables(std::string_view lines);
};

}  // namespace dtrain
