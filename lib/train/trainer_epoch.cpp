// The end of an epoch: validation, the record, callbacks, the best checkpoint.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/stopwatch.h"
#include "run/learning_rate.h"
#include "run/monitors.h"
#include "train/epoch_report.h"
#include "train/trainer.h"

namespace dtrain {

/// Evaluates the validation split, with the averaged weights if an average is kept. Returns nullopt if the
/// run should end before the evaluation is complete.
std::optional<Measures> Trainer::validate() {
  // Nothing can be saved while the average replaces the weights, because a checkpoint would contain the
  // average in place of the weights.
  const bool may_save = !engine_->state().has_average();
  int64_t step = 0;
  const auto should_stop_before_batch = [&] {
    observer_.on_validation(state_.epoch + 1, config_.train.epochs, ++step, validation_->steps_per_epoch());
    return should_stop(may_save);
  };
  const auto evaluate = [&] {
    return evaluate_split(config_, *engine_, *validation_, should_stop_before_batch);
  };
  if (may_save) return evaluate();
  engine_->state().swap_average();
  try {
    auto measures = evaluate();
    engine_->state().swap_average();
    return measures;
  } catch (...) {
    // If the state is divided among processes, it cannot be saved after a failure, so the weights need not be
    // restored.
    if (!engine_->state().is_spread()) engine_->state().swap_average();
    throw;
  }
}

/// Throws Error if weights are NaN or infinite. This check is necessary because the loss may be finite even
/// if weights are not.
void Trainer::check_weights() {
  if (!wants_finite_weights(config_.train.callbacks)) return;
  const std::string weight = engine_->state().first_weight_not_finite();
  if (weight.empty()) return;
  is_valid_ = false;
  throw Error(
      fmt::format("the weight '{}' has elements that are not finite at step {} (epoch {}); earlier "
                  "checkpoints are unchanged",
                  weight, state_.step, state_.epoch + 1));
}

/// Ends an epoch: validates, records the results, calls callbacks and saves. Afterwards, the state is the
/// state at the start of the next epoch. Returns false if the run should end before the epoch is complete.
bool Trainer::finish_epoch() {
  const auto start = std::chrono::steady_clock::now();
  check_weights();
  EpochReport report(config_, state_.epoch + 1, state_.step);
  take_measures(report, measures_of(config_, state_.sums, state_.samples), "");
  if (!validate_into(report)) return false;
  report.add_speed(learning_rate_at(state_.step - 1), state_.epoch_seconds + seconds_since(start),
                   static_cast<double>(state_.samples) / std::max(state_.train_seconds, 1e-9));
  const MetricLookup metric = report.metric();
  warn_of_monitors(metric);
  // Functions that may throw are called before begin_next_epoch(), so that after an exception the state is
  // still that of this epoch, and not a mixture of two epochs.
  EpochDecisions decisions = decide(metric);
  wait_for_best();
  begin_next_epoch(report, decisions);
  const bool improved = update_best(metric);
  announce_epoch(report, decisions);
  save_after_epoch(improved);
  return true;
}

/// Adds the measures of a split to the report. Warns about measures that may be inaccurate, once per metric.
void Trainer::take_measures(EpochReport& report, const Measures& measures, const std::string& prefix) {
  report.add(measures, prefix);
  for (const Measures::Uncertain& number : measures.uncertain)
    if (warned_.insert(number.name).second) observer_.on_warning(number.describe(prefix));
}

/// Evaluates the validation split, if there is one. Returns false if the run should end before the evaluation
/// is complete.
bool Trainer::validate_into(EpochReport& report) {
  if (!validation_) return true;
  world_.set_position("validating", state_.step);
  const Stopwatch stopwatch(clock_.spent().validating);
  const std::optional<Measures> measures = validate();
  if (measures) take_measures(report, *measures, "val_");
  return measures.has_value();
}

/// Passes the epoch's numbers to the learning rate schedule and the callbacks, and returns their decisions.
Trainer::EpochDecisions Trainer::decide(const MetricLookup& metric) const {
  EpochDecisions decisions;
  std::string message;
  decisions.schedule = config_.train.optimizer->learning_rate().after_epoch(state_.schedule, metric, message);
  decisions.messages.push_back(message);
  decisions.callbacks = state_.callbacks;
  decisions.stopped = state_.stopped;
  for (size_t i = 0; i < decisions.callbacks.size(); ++i) {
    const Callback::Verdict verdict =
        config_.train.callbacks[i]->after_epoch(decisions.callbacks[i].state, metric);
    decisions.messages.push_back(verdict.message);
    if (verdict.stop && decisions.stop_reason.empty()) decisions.stop_reason = verdict.message;
    decisions.stopped = decisions.stopped || verdict.stop;
  }
  return decisions;
}

/// Waits for the checkpoint that is being written, because it may be the checkpoint of the best epoch.
void Trainer::wait_for_best() {
  if (!config_.checkpoint.best) return;
  const Stopwatch stopwatch(clock_.spent().saving);
  checkpointing_->wait();
}

void Trainer::begin_next_epoch(EpochReport& report, EpochDecisions& decisions) {
  state_.history.push(report.record());
  state_.tables = report.finish_tables();
  state_.schedule = std::move(decisions.schedule);
  state_.callbacks = std::move(decisions.callbacks);
  state_.stopped = decisions.stopped;
  state_.stop_reason = std::move(decisions.stop_reason);
  state_.epoch += 1;
  state_.step_in_epoch = 0;
  state_.sums.assign(state_.sums.size(), 0.0);
  state_.samples = 0;
  state_.train_seconds = state_.epoch_seconds = 0;
}

void Trainer::announce_epoch(const EpochReport& report, const EpochDecisions& decisions) {
  observer_.on_epoch(report.record(), config_.train.epochs);
  for (const std::string& message : decisions.messages)
    if (!message.empty()) observer_.on_note(message);
}

/// Saves if a checkpoint is due or the epoch is the best. run() saves the final state. Only process 0 knows
/// which checkpoints were written, so it decides whether the epoch is the best.
void Trainer::save_after_epoch(bool improved) {
  if (state_.epoch >= config_.train.epochs || state_.stopped) return;
  const Stopwatch stopwatch(clock_.spent().saving);
  std::array<int64_t, 2> asked{checkpointing_->due_after_epoch() ? 1 : 0,
                               improved && world_.writes_files() ? 1 : 0};
  world_.all_reduce_max(asked);
  if (asked[0] != 0) {
    checkpointing_->save_async();
  } else if (asked[1] != 0) {
    checkpointing_->save_best();
  }
  checkpointing_->append_metrics();
}

/// Warns about each monitor that is NaN, once.
void Trainer::warn_of_monitors(const MetricLookup& metric) {
  for (const std::string& monitor : monitors_of(config_)) {
    const std::optional<MonitoredNumber> number = metric(monitor);
    if (!number || !std::isnan(number->value) || !warned_.insert("nan " + monitor).second) continue;
    observer_.on_warning(
        fmt::format("the monitored '{0}' is nan in epoch {1}. Either it is undefined for these samples (an "
                    "auc, for example, is undefined if all samples have the same class), or the outputs of "
                    "the model are not finite. An epoch in which '{0}' is nan is never the best epoch. "
                    "Epochs without improvement are counted only after '{0}' was a number for the first time",
                    monitor, state_.epoch + 1));
  }
}

/// Updates the best epoch; returns true if this epoch is the best so far.
bool Trainer::update_best(const MetricLookup& metric) {
  if (!config_.checkpoint.best) return false;
  const BestOptions& best = *config_.checkpoint.best;
  const std::optional<MonitoredNumber> number = metric(best.monitor);
  if (!number || std::isnan(number->value)) return false;
  const MonitorMode mode = resolved(best.mode, number->larger_is_better);
  if (state_.best && !improves(number->value, state_.best->value, mode)) return false;
  state_.best = TrainingState::Best{number->value, state_.step, watched(mode, best.monitor), state_.tables};
  return true;
}

}  // namespace dtrain
