#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/stopwatch.h"
#include "engine/reading.h"
#include "run/learning_rate.h"
#include "run/monitors.h"
#include "run/row_weights.h"
#include "train/data_agreement.h"
#include "train/sample_check.h"

namespace dtrain {

Trainer::Trainer(RunPlan plan, RunDirectory directory, Observer& observer, Requests& requests)
    : plan_(std::move(plan)), observer_(observer), requests_(requests), clock_(plan_.begin) {
  world_.set_peer_timeout(config_.train.peer_timeout.seconds());
  world_.set_position("reading the data", 0);
  loader_ = open_loader(config_, *config_.dataset.train, config_.dataset.shuffle, true,
                        own_rows(plan_, Plan::Purpose::training));
  data_["train"] = loader_->dataset().identity();
  plan_.config.dataset.facts = loader_->dataset().facts();
  if (config_.dataset.validation)
    validation_ = open_loader(config_, *config_.dataset.validation, false, false,
                              own_rows(plan_, Plan::Purpose::evaluation));
  if (validation_) data_["validation"] = validation_->dataset().identity();
  check_data_agree(world_, data_);
  // Checkpointing starts a thread, so it is created before the engine binds this thread to a core.
  checkpointing_ = std::make_unique<Checkpointing>(plan_, std::move(directory), state_, observer_);
  engine_ = std::make_unique<Engine>(plan_);
  size_t kept = 0;
  int64_t samples = 0;
  ReadAheadMemory ahead;
  std::set<int64_t> lengths;
  // Each warning is shown once, because splits of the same files have the same warnings.
  std::set<std::string> reported;
  for (const Loader* loader : {loader_.get(), validation_.get()}) {
    if (!loader) continue;
    if (loader->dataset().on_device()) kept += loader->dataset().stored_bytes();
    samples = std::max(samples, loader->samples());
    for (const std::string& warning : loader->dataset().warnings())
      if (reported.insert(warning).second) observer_.on_warning(warning);
    ahead += loader->read_ahead_memory();
    if (const SampleLengths* its = loader->lengths()) lengths.merge(its->cut());
  }
  if (const SampleLengths* its = loader_->lengths(); its && !its->warning().empty())
    observer_.on_warning(its->warning());
  for (const std::string& warning : class_warnings(config_, config_.dataset.facts))
    observer_.on_warning(warning);
  if (const std::string warning = warning_of_zero_rate(config_, loader_->steps_per_epoch()); !warning.empty())
    observer_.on_warning(warning);
  if (engine_->layout().trained() == 0)
    observer_.on_warning(
        "the model has no weights to train; check the options that exclude weights from training: "
        "model.freeze, trainable and train.groups");
  engine_->memory().set_data(
      {.on_gpu = kept, .most_samples = samples, .read_ahead = ahead, .lengths = std::move(lengths)});
  if (const std::string advice = engine_->memory().advice(Plan::Purpose::training, config_.train.batch_size);
      !advice.empty())
    observer_.on_warning(advice);
  for (const std::string& warning : engine_->memory().training_plan(config_.train.batch_size).warnings())
    observer_.on_warning(warning);
  state_.sums.assign(count_totals(config_.graph, config_.heads), 0.0);
  state_.data = data_;
  take_callbacks({});
}

void Trainer::run() {
  clock_.begin_run();
  {
    const Stopwatch stopwatch(clock_.spent().saving);
    checkpointing_->begin(*engine_, restored_, loader_->steps_per_epoch());
  }
  for (const std::string& advice : engine_->advice()) observer_.on_note(advice);
  for (const std::string& note : engine_->memory().training_plan(config_.train.batch_size).notes())
    observer_.on_note(note);
  const int64_t first_step = state_.step;
  bool ended = false;
  try {
    ended = train();
    finish_steps(0);
  } catch (const std::exception& error) {
    // An error that may have occurred only in this process must be sent to the other processes. A UserError
    // need not be sent, because all processes throw the same one, except for a ReadError.
    const bool is_user_error = dynamic_cast<const UserError*>(&error) != nullptr;
    if (!is_user_error || dynamic_cast<const ReadError*>(&error)) world_.abort(error.what(), is_user_error);
    save_after_failure(first_step);
    throw;
  }
  {
    world_.set_position("saving", state_.step);
    const Stopwatch stopwatch(clock_.spent().saving);
    checkpointing_->end();
    engine_->set_saved();
  }
  const std::string where = checkpointing_->directory().checkpoint_path(state_.step);
  if (ended) return;
  if (stop_ != 0) throw Interrupted(stop_, fmt::format("stopped at step {}; saved {}", state_.step, where));
  observer_.on_note(
      fmt::format("the run ends at step {}, to save within max_time ({}); `dtrain resume {}` "
                  "continues the run",
                  state_.step, config_.train.max_time->str(), checkpointing_->directory().path()));
}

/// Returns false if the run should end before its configured end.
bool Trainer::train() {
  while (state_.epoch < config_.train.epochs && !state_.stopped)
    if (!train_epoch() || !finish_epoch()) return false;
  return true;
}

/// Saves the state after the last finished step. If this state cannot be used, or if no step was finished,
/// only writes the best epoch, if it has not been saved yet. The state cannot be used if a device has failed,
/// if the loss or the weights were rejected, or if other processes have parts of the state.
void Trainer::save_after_failure(int64_t first_step) {
  try {
    if (engine_->state().is_spread()) {
      if (is_valid_ && state_.step > first_step)
        observer_.on_warning(
            fmt::format("step {} is not saved, because other processes have parts of the optimizer state or "
                        "of the weights; when the run is resumed, it continues from the last checkpoint",
                        state_.step));
      return checkpointing_->save_held();
    }
    if (!is_valid_ || !engine_->intact() || state_.step == first_step) return checkpointing_->save_held();
    finish_steps(0);
    checkpointing_->end();
    observer_.on_warning(fmt::format("the run fails at step {}; saved {}", state_.step,
                                     checkpointing_->directory().checkpoint_path(state_.step)));
  } catch (const std::exception& error) {
    observer_.on_warning(error.what());
  }
}

/// Trains the rest of the current epoch; returns false if the run should end before the epoch's end.
bool Trainer::train_epoch() {
  loader_->begin(state_.epoch, state_.step_in_epoch);
  clock_.begin_epoch();
  while (const auto batch = next_batch()) {
    if (should_stop()) return false;
    const int64_t step = state_.step + engine_->pending();
    launch(*batch, step);
    finish_steps(engine_->most_pending());
    checkpointing_->poll();
    if (is_save_due(step + 1)) save_async(false);
  }
  finish_steps(0);
  return !should_stop();
}

std::shared_ptr<const Batch> Trainer::next_batch() {
  const Stopwatch stopwatch(clock_.spent().waiting);
  world_.set_position("reading samples", state_.step + engine_->pending() + 1);
  return read_next(*loader_);
}

void Trainer::launch(const Batch& batch, int64_t step) {
  world_.set_position("training", step + 1);
  const StepSeconds before = engine_->step_seconds();
  engine_->launch(batch, step, learning_rate_at(step));
  const StepSeconds after = engine_->step_seconds();
  clock_.spent().copying += after.copying - before.copying;
  clock_.spent().updating += after.updating - before.updating;
}

TimeSpent Trainer::time_spent() const {
  TimeSpent spent = clock_.summary();
  for (const Loader* loader : {loader_.get(), validation_.get()})
    if (loader) spent.reading += loader->read_seconds();
  return spent;
}

void Trainer::save_async(bool announce) {
  finish_steps(0);
  world_.set_position("saving", state_.step);
  const Stopwatch stopwatch(clock_.spent().saving);
  checkpointing_->save_async(announce);
  clock_.begin_step();
}

/// Returns whether the run should end early. Starts a save if one was requested. A request to one process
/// applies to all.
bool Trainer::should_stop(bool may_save) {
  // The next step (or the rest of the running step) and the save after it must end before max_time.
  const bool is_over = config_.train.max_time && clock_.seconds_since_begin() + 2 * clock_.step_seconds() +
                                                         checkpointing_->seconds_to_save() >=
                                                     config_.train.max_time->seconds();
  if (requests_.stop == 0 && world_.writes_files() && stop_command_.take(checkpointing_->directory())) {
    observer_.on_note("`dtrain stop` was called: the run saves a checkpoint and ends");
    requests_.stop = SIGTERM;
  }
  const bool save = may_save && requests_.save.exchange(false);
  std::array<int64_t, 3> asked{requests_.stop, save ? 1 : 0, is_over ? 1 : 0};
  world_.all_reduce_max(asked);  // a single call for all three values, because every step waits for it
  if (asked[1] != 0) save_async(true);
  stop_ = static_cast<int>(asked[0]);
  return stop_ != 0 || asked[2] != 0;
}

/// Returns whether a checkpoint is due after `step` steps. If the interval between checkpoints is a number of
/// steps or epochs, all processes make the same decision without communication. If the interval is a time,
/// the processes communicate to make the same decision.
bool Trainer::is_save_due(int64_t step) {
  const bool due = checkpointing_->due_after_step(step);
  return config_.checkpoint.every.is_time() ? world_.any(due) : due;
}

double Trainer::learning_rate_at(int64_t step) const {
  return config_.train.optimizer->learning_rate().at(
      step, run_length(config_, loader_->steps_per_epoch(), schedule_shift_), state_.schedule);
}

void Trainer::finish_steps(int most_pending) {
  while (engine_->pending() > most_pending) finish_step();
}

namespace {

/// Returns a sentence about a NaN or infinite value in the samples of a batch; "" if there is none.
std::string describe_bad_samples(const RunConfig& config, const Loader& loader, int64_t step) {
  try {
    return describe_not_finite(config, loader.dataset(), loader.samples_of(step), "the training data");
  } catch (const std::exception&) {
    return "";  // The samples cannot be read again. The caller reports the loss.
  }
}

}  // namespace

void Trainer::finish_step() {
  const BatchTotals& totals = engine_->finish();
  for (size_t i = 0; i < state_.sums.size(); ++i) state_.sums[i] += totals.sums[i];
  state_.samples += totals.samples;
  const double step_loss = loss_of(config_, totals.sums, totals.samples);
  ++state_.step;
  ++state_.step_in_epoch;
  is_valid_ = false;  // until all checks have passed
  if (is_suspect(config_, step_loss) && !std::exchange(samples_checked_, true))
    check_samples(config_, loader_->dataset(), "the training data");
  try {
    for (const auto& callback : config_.train.callbacks)
      callback->after_step(state_.step, state_.epoch + 1, step_loss);
  } catch (const Error& error) {
    const std::string cause = describe_bad_samples(config_, *loader_, state_.step_in_epoch - 1);
    if (cause.empty()) throw;
    throw Error(fmt::format("{}; {}", error.what(), cause));
  }
  is_valid_ = true;
  const double seconds = clock_.end_step();
  state_.train_seconds += seconds;
  state_.epoch_seconds += seconds;
  if (const std::string advice = engine_->take_advice(); !advice.empty()) observer_.on_note(advice);
  report(step_loss);
}

void Trainer::report(double step_loss) {
  Progress progress;
  progress.epoch = state_.epoch + 1;
  progress.epochs = config_.train.epochs;
  progress.step = state_.step_in_epoch;
  progress.steps = loader_->steps_per_epoch();
  progress.global_step = state_.step;
  progress.step_loss = step_loss;
  progress.means = [this] { return numbers_of(config_, state_.sums, state_.samples); };
  progress.samples_per_second = static_cast<double>(state_.samples) / std::max(state_.train_seconds, 1e-9);
  progress.seconds_left =
      static_cast<double>(loader_->samples() - state_.samples) / std::max(progress.samples_per_second, 1e-9);
  progress.learning_rate = learning_rate_at(state_.step - 1);
  progress.run_seconds_left = run_seconds_left(progress.seconds_left);
  progress.waiting = clock_.waiting_in_epoch();
  observer_.on_step(progress);
}

/// Returns an estimate of the seconds until the end of the run. Assumes that each later epoch takes as long
/// as the last finished epoch. In the first epoch, assumes that each later epoch takes as long as the first.
double Trainer::run_seconds_left(double epoch_seconds_left) const {
  const Json* last = state_.history.last().find("seconds");
  const double training = state_.train_seconds + epoch_seconds_left;
  const double whole = last ? last->as_double() : training;
  const double validation = std::max(0.0, whole - training);
  return epoch_seconds_left + validation +
         whole * static_cast<double>(config_.train.epochs - state_.epoch - 1);
}

}  // namespace dtrain
