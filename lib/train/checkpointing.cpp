#include "train/checkpointing.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/exit_deadline.h"
#include "base/files/new_file.h"
#include "base/finite.h"
#include "base/stopwatch.h"
#include "config/load/environment.h"
#include "train/checkpoint_content.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

/// With `every: auto`, the minimum number of seconds between two saves. A run that is killed loses at most
/// this time plus one epoch, and saving takes only a small part of the time.
constexpr double kSecondsBetween = 10;

/// Thrown if weights to be saved have non-finite elements.
class WeightsNotFinite : public Error {
 public:
  using Error::Error;
};

/// The checkpoints that must be kept if the disk is full. Older checkpoints are removed to free space.
struct Room {
  int64_t keep;               // number of the newest checkpoints, including the new one
  std::vector<int64_t> kept;  // steps of checkpoints that are never removed
};

/// Writes a checkpoint. While the disk is full, removes older checkpoints and tries again.
void write_checkpoint(const RunDirectory& directory, int64_t step, const CheckpointContent& content,
                      const Room& room) {
  const ExitDeadline::Hold hold;
  for (;;) try {
      return directory.save(step, content);
    } catch (const NoSpace&) {
      if (!directory.make_room(step, room.keep, room.kept)) throw;
    }
}

}  // namespace

HostArrays Checkpointing::Held::arrays() {
  HostArrays all{values, {}};
  for (std::vector<float>& slot : slots) all.slots.emplace_back(slot);
  return all;
}

Checkpointing::Checkpointing(const RunPlan& plan, RunDirectory directory, TrainingState& state,
                             Observer& observer)
    : config_(plan.config),
      directory_(std::move(directory)),
      state_(state),
      observer_(observer),
      world_(plan.world),
      writes_files_(plan.world.writes_files()) {}

void Checkpointing::begin(Engine& engine, bool on_disk, int64_t steps_per_epoch) {
  steps_per_epoch_ = steps_per_epoch;
  engine_ = &engine;
  if (on_disk) saved_ = now();
  written_best_ = state_.best;
  check_directory();
  // Makes a snapshot before the training begins, because the first snapshot allocates memory, which takes
  // much longer than copying.
  if (saves_on_the_way(config_, config_.train.epochs - state_.epoch, steps_per_epoch))
    engine.state().snapshot();
  last_save_ = Clock::now();
}

bool Checkpointing::due_after_step(int64_t step) const {
  const Interval& every = config_.checkpoint.every;
  if (every.is_time()) return seconds_since(last_save_) >= every.seconds();
  return every.unit == Interval::Unit::step && step % static_cast<int64_t>(every.count) == 0;
}

bool Checkpointing::due_after_epoch() const {
  const Interval& every = config_.checkpoint.every;
  if (every.unit == Interval::Unit::automatic) return !task_ && seconds_since(last_save_) >= kSecondsBetween;
  return every.unit == Interval::Unit::epoch && state_.epoch % static_cast<int64_t>(every.count) == 0;
}

/// Runs `write` and returns whether it succeeded. A failure only causes a warning, because the next save
/// tries again; a disk that is full for some time must not end a run. `then`: the part of the warning that
/// tells the user how the run continues. Throws Error if the weights are not finite and a callback wants the
/// run to end in this case.
bool Checkpointing::attempt(const std::function<void()>& write, std::string_view then) {
  try {
    write();
    return true;
  } catch (const std::exception& error) {
    if (dynamic_cast<const WeightsNotFinite*>(&error) && wants_finite_weights(config_.train.callbacks))
      throw Error(fmt::format("{}; earlier checkpoints are unchanged", error.what()));
    observer_.on_warning(fmt::format("{}; {}", error.what(), then));
    return false;
  }
}

/// Creates the run directory if it is missing, and writes the configuration and the metrics if they are
/// missing. Returns true if the run directory or its folder checkpoints/ was created again, which means that
/// it contains no checkpoints.
bool Checkpointing::check_directory() {
  if (!writes_files_) return false;
  const std::string change = directory_.ensure();
  if (!change.empty()) {
    observer_.on_warning(change);
    complete_ = false;
    saved_ = {};
    written_best_.reset();
    if (state_.best && state_.best->step != state_.step) settle_best();
  }
  if (!complete_) {
    directory_.write_config(escape_environment(config_.resolved).to_yaml());
    write_metrics();
    complete_ = true;
  }
  return !change.empty();
}

void Checkpointing::save_async(bool announce) {
  wait();
  last_save_ = Clock::now();  // set even if the save fails
  if (!agreed(attempt([&] { check_directory(); }))) return settle_best();
  if (const auto arrays = engine_->state().snapshot()) return start(&*arrays, announce);
  const HostArrays arrays = engine_->state().download();
  start(&arrays, announce);
  wait();
}

void Checkpointing::save_if_needed() {
  wait("the run tries to save again before it ends");
  const bool is_there = !writes_files_ || directory_.has_checkpoint(state_.step);
  if (agreed(saved_ == now() && !held_.filled && is_there)) return;
  check_directory();
  is_last_ = true;
  const HostArrays arrays = engine_->state().download();
  for (const auto best = state_.best;;) {
    start(&arrays, false);
    try {
      writer_.wait();
      return finish(true);
    } catch (...) {
      finish(false);
      if (!check_directory()) throw;
      // Sets the best epoch again, because finish() has removed it.
      if (best && best->step == state_.step) state_.best = best;
    }
  }
}

void Checkpointing::save_best() {
  wait();
  if (agreed(may_save_best()) || !hold()) save_async();
}

bool Checkpointing::agreed(bool mine) const {
  if (!engine_->state().is_spread()) return mine;
  return world_.any(mine && writes_files_);
}

/// Returns whether a save of a new best epoch would take only a small part of the time since the last save.
bool Checkpointing::may_save_best() const {
  // Minimum ratio of the time since the last save to the time that a save takes.
  constexpr double kCheap = 20;
  return seconds_since(last_save_) >= std::min(kSecondsBetween, kCheap * seconds_of_a_save());
}

/// Stores a copy of the current state in memory. Returns false if the host does not have enough memory for
/// the copy.
bool Checkpointing::hold() {
  if (agreed(held_.values.empty() && !engine_->state().has_room_for_snapshot())) return false;
  const HostArrays arrays = engine_->state().download();
  held_.values.assign(arrays.values.begin(), arrays.values.end());
  held_.slots.resize(arrays.slots.size());
  for (size_t i = 0; i < arrays.slots.size(); ++i)
    held_.slots[i].assign(arrays.slots[i].begin(), arrays.slots[i].end());
  complete_state();
  held_.state = state_;
  held_.filled = true;
  return true;
}

void Checkpointing::poll() {
  if (task_ && writer_.idle()) wait();
  if (task_ || !held_.filled || !may_save_best()) return;
  last_save_ = Clock::now();
  if (attempt([&] { check_directory(); })) start(nullptr, false);
}

void Checkpointing::save_held() {
  constexpr std::string_view kEnds = "the run ends";
  wait(kEnds);
  if (held_.filled && attempt([&] { check_directory(); }, kEnds)) start(nullptr, false);
  wait(kEnds);
}

void Checkpointing::start(const HostArrays* arrays, bool announce) {
  last_save_ = Clock::now();
  // If the current state is a new best, the held copy is no longer needed.
  if (arrays && state_.best && state_.best->step == state_.step) held_.filled = false;
  task_ = Task{.holds = held_.filled, .announce = announce, .start = last_save_};
  task_->best = arrays ? state_.best : held_.state.best;
  if (arrays) task_->point = now();
  if (arrays) complete_state();
  ended_ = last_save_;
  if (writes_files_)
    return writer_.submit([this, work = checkpoint_task(arrays)] {
      work();
      ended_ = Clock::now();
    });
  held_.filled = false;
}

void Checkpointing::wait(std::string_view then) {
  if (!task_) return;
  bool written = false;
  std::exception_ptr failure;
  try {
    written = attempt([&] { writer_.wait(); }, then);
  } catch (...) {
    failure = std::current_exception();
  }
  finish(written);
  if (failure) std::rethrow_exception(failure);
}

void Checkpointing::finish(bool written) {
  const Task task = *std::exchange(task_, std::nullopt);
  longest_save_ = std::max(longest_save_, std::chrono::duration<double>(ended_ - task.start).count());
  if (task.holds && !held_.filled) written_best_ = held_.state.best;
  if (written) {
    written_best_ = task.best;
    if (task.point != Point{}) saved_ = task.point;
    if (task.announce)
      observer_.on_note(
          fmt::format("saved {}; training continues", directory_.checkpoint_path(task.point.step)));
  } else {
    settle_best();
  }
}

/// Sets the best epoch to an epoch that can be restored: the epoch of the held copy or, if there is no held
/// copy, the epoch of the best checkpoint on disk.
void Checkpointing::settle_best() {
  state_.best = held_.filled ? held_.state.best : written_best_;
}

std::function<void()> Checkpointing::checkpoint_task(const HostArrays* arrays) {
  std::vector<std::function<void()>> parts;
  if (held_.filled) {
    parts.push_back(write_task(held_.state, held_.arrays()));
    parts.push_back([this] { held_.filled = false; });
  }
  if (arrays) parts.push_back(write_task(state_, *arrays));
  return [parts = std::move(parts)] {
    for (const auto& part : parts) part();
  };
}

/// Returns a function that writes a checkpoint of `state` and `arrays`. Both must not change until this
/// function has run.
std::function<void()> Checkpointing::write_task(const TrainingState& state, const HostArrays& arrays) const {
  // The last state of a run is worth more than old checkpoints, because it cannot be saved later.
  Room room{is_last_ ? 1 : config_.checkpoint.keep, {}};
  for (const auto& best : {written_best_, state.best, state_.best})
    if (best) room.kept.push_back(best->step);
  return [directory = directory_, step = state.step, values = arrays.values, room,
          keep = config_.checkpoint.keep, best = state.best ? std::optional(state.best->step) : std::nullopt,
          content = checkpoint_content(config_, engine_->layout(), arrays, state, steps_per_epoch_)] {
    if (!all_finite(values))
      throw WeightsNotFinite(fmt::format("step {} is not saved: its weights are not finite", step));
    write_checkpoint(directory, step, content, room);
    directory.write_tables(content.tables);
    directory.prune(keep, best);
  };
}

/// Sets the members of the state that only checkpoints need: epochs and loss scale.
void Checkpointing::complete_state() {
  state_.epochs = config_.train.epochs;
  state_.loss_scale = 0;
  if (config_.train.precision != Precision::mixed_float16) return;
  const GradientScale scale = engine_->state().gradient_scale();
  state_.loss_scale = static_cast<double>(scale.loss_scale);
  state_.good_steps = scale.good_steps;
}

void Checkpointing::write_metrics() {
  directory_.write_metrics(state_.history.text());
  directory_.write_tables(state_.table_lines());
  table_.update(state_.history);
  directory_.write_table(table_.text());
}

void Checkpointing::append_last_metrics() {
  directory_.append_metrics(state_.history.last_line());
  table_.update(state_.history);
  if (const auto rows = table_.appended()) return directory_.append_table(*rows);
  directory_.write_table(table_.text());
}

void Checkpointing::append_metrics() {
  if (!writes_files_) return;
  try {
    metrics_whole_ ? append_last_metrics() : write_metrics();
    metrics_whole_ = true;
  } catch (...) {
    wait();
    metrics_whole_ = attempt([&] {
      if (!check_directory()) throw;
    });
  }
}

void Checkpointing::end() {
  std::exception_ptr failure;
  try {
    save_if_needed();
  } catch (...) {
    failure = std::current_exception();
  }
  // Writes the metrics of the last epoch even if its weights could not be saved.
  try {
    if (writes_files_) write_metrics();
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
}

double Checkpointing::seconds_of_a_save() const {
  constexpr double kSlowDisk = 50e6;  // bytes per second, until the first save is measured
  return longest_save_ > 0 ? longest_save_
                           : static_cast<double>(engine_->state().snapshot_bytes()) / kSlowDisk;
}

double Checkpointing::seconds_to_save() const {
  return 2 * seconds_of_a_save();
}

}  // namespace dtrain
