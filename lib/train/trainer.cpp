#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "train/placement.h"
#include "train/sample_check.h"

namespace dtrain {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A loss as samples can give it that the model cannot take.
bool is_suspect(double loss) {
  return !std::isfinite(loss) || loss < 0;
}

/// "shuffle: true", of a part of a configuration.
std::string written_in(const Node& part, std::string_view key) {
  std::string text = Node::mapping({Node::entry(key, *part.find(key))}).to_yaml();
  text.pop_back();  // the end of the line
  return text;
}

/// Refuses what would make an epoch that is under way meet samples twice or never, or its sums be of two
/// kinds.
void check_epoch_goes_on(const std::string& path, const Node& saved, const Node& now) {
  const auto check = [&](const Node& before, const Node& after, std::string_view key) {
    if (written_in(before, key) == written_in(after, key)) return;
    throw UserError(fmt::format("{}: within an epoch, '{}' cannot become '{}'; change it at the end of one",
                                path, written_in(before, key), written_in(after, key)));
  };
  check(saved, now, "seed");
  check(*saved.find("dataset"), *now.find("dataset"), "shuffle");
  for (const char* key : {"loss", "metrics"}) check(*saved.find("train"), *now.find("train"), key);
}

}  // namespace

std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle) {
  return std::make_unique<Loader>(
      open_split(config.dataset, split, config.graph.input_specs(), config.targets()),
      config.train.batch_size, shuffle, static_cast<uint64_t>(config.seed), config.dataset.prefetch);
}

std::vector<std::pair<std::string, double>> means_of(const RunConfig& config, const std::vector<double>& sums,
                                                     int64_t samples) {
  std::vector<std::pair<std::string, double>> means{{"loss", 0.0}};
  size_t total = 0;
  for (const Head& head : config.heads) {
    const Shape& shape = config.graph.nodes[static_cast<size_t>(head.node)].output.shape;
    const int64_t positions = shape.rank() ? shape.elements() / shape.back() : 1;
    const double rows = static_cast<double>(samples) * static_cast<double>(positions);
    for (size_t i = 0; i <= head.metrics.size(); ++i, ++total) {
      const double mean = sums[total] / rows;
      if (i == 0) means[0].second += mean;
      if (config.total_names[total] != "loss") means.emplace_back(config.total_names[total], mean);
    }
  }
  return means;
}

std::optional<std::vector<std::pair<std::string, double>>> evaluate_split(const RunConfig& config,
                                                                          Replicas& replicas, Loader& loader,
                                                                          const std::atomic<int>* stop) {
  std::vector<double> sums(config.total_names.size(), 0.0);
  loader.begin(0, 0);
  while (const auto batch = loader.next()) {
    if (stop && *stop != 0) return std::nullopt;
    const BatchTotals& totals = replicas.evaluate(*batch);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += totals.sums[i];
  }
  auto means = means_of(config, sums, loader.samples());
  if (is_suspect(means[0].second)) check_samples(config, loader.dataset(), "evaluated", true);
  return means;
}

Trainer::Trainer(RunConfig config, RunDirectory directory, Observer& observer, const std::atomic<int>& stop)
    : config_(std::move(config)), directory_(std::move(directory)), observer_(observer), stop_(stop) {
  const std::vector<DeviceId> devices = place_for_training(config_);
  loader_ = open_loader(config_, *config_.dataset.train, config_.dataset.shuffle);
  if (config_.dataset.validation) validation_ = open_loader(config_, *config_.dataset.validation, false);
  background_ = std::make_unique<Background>();  // before the replicas bind this thread
  replicas_ = std::make_unique<Replicas>(config_, devices);
  size_t kept = 0;
  for (const Loader* loader : {loader_.get(), validation_.get()})
    if (loader && loader->dataset().on_device()) kept += loader->dataset().stored_bytes();
  replicas_->plan_data(kept);
  state_.sums.assign(config_.total_names.size(), 0.0);
  take_callbacks({});
}

/// Each callback's state is the one saved of the next of its kind; those that are new begin with none.
void Trainer::take_callbacks(std::vector<TrainingState::OfCallback> saved) {
  state_.callbacks.clear();
  for (const Kind<Callback>& callback : config_.train.callbacks) {
    const auto found =
        std::find_if(saved.begin(), saved.end(), [&](const auto& one) { return one.kind == callback.name; });
    state_.callbacks.push_back({callback.name, Json()});
    if (found == saved.end()) continue;
    state_.callbacks.back().state = std::move(found->state);
    saved.erase(found);
  }
}

void Trainer::start() {
  replicas_->start();
}

void Trainer::restore(const Checkpoint& checkpoint) {
  state_ = TrainingState::from_json(checkpoint.content().state);
  const Node saved = saved_config(checkpoint, {}).resolved;
  if (state_.step_in_epoch > 0) check_epoch_goes_on(checkpoint.path(), saved, config_.resolved);
  replicas_->allocate_parameters(Plan::Purpose::training, config_.train.batch_size);
  restore_weights(checkpoint, *replicas_);
  replicas_->allocate_slots();
  if (!restore_slots(checkpoint, config_, *replicas_))
    observer_.on_warning("the checkpoint is of another optimizer: this one's slots start anew");
  replicas_->publish();
  if (state_.loss_scale != 0 && config_.train.precision == Precision::mixed_float16)
    replicas_->set_gradient_scale({.loss_scale = static_cast<float>(state_.loss_scale),
                                   .good_steps = static_cast<int32_t>(state_.good_steps)});
  if (state_.step_in_epoch == 0) state_.sums.assign(config_.total_names.size(), 0.0);  // maybe of others
  if (state_.sums.size() != config_.total_names.size())
    throw UserError(fmt::format("{}: expected sums of {} totals, found {}", checkpoint.path(),
                                config_.total_names.size(), state_.sums.size()));
  if (state_.step_in_epoch > loader_->steps_per_epoch() ||
      state_.samples != std::min(state_.step_in_epoch * config_.train.batch_size, loader_->samples()))
    throw UserError(fmt::format(
        "{}: {} of the epoch's {} samples were trained on, which batches of {} do not meet; change the "
        "batch size or the data at the end of an epoch",
        checkpoint.path(), state_.samples, loader_->samples(), config_.train.batch_size));
  take_callbacks(std::move(state_.callbacks));
  // What ended it was another run's; a new end was asked for.
  if (config_.train.epochs != state_.epochs || written_in(*saved.find("train"), "callbacks") !=
                                                   written_in(*config_.resolved.find("train"), "callbacks"))
    state_.stopped = false;
  const auto& best = config_.checkpoint.best;
  if (!best || (state_.best && state_.best->watched != watched(best->mode, best->monitor)))
    state_.best.reset();
  saved_step_ = state_.step;
}

void Trainer::run() {
  directory_.create();
  directory_.write_config(config_.resolved.to_yaml());
  directory_.write_metrics(state_.history);
  if (const std::string advice = replicas_->exchange().advice(); !advice.empty()) observer_.on_note(advice);
  // The first one touches its memory, which takes far longer than to copy into it.
  if (saves_on_the_way(config_, config_.train.epochs - state_.epoch, loader_->steps_per_epoch()))
    replicas_->snapshot();
  last_save_ = Clock::now();
  try {
    while (state_.epoch < config_.train.epochs && !state_.stopped) {
      train_epoch();
      finish_epoch();
    }
  } catch (...) {
    finish_save();
    throw;
  }
  save_what_is_not();
}

/// The rest of the epoch under way.
void Trainer::train_epoch() {
  loader_->begin(state_.epoch, state_.step_in_epoch);
  lap_ = Clock::now();
  while (const auto batch = loader_->next()) {
    check_stop();
    const int64_t step = state_.step + replicas_->pending();
    replicas_->launch(*batch, step, learning_rate_at(step));
    finish_steps(replicas_->most_pending());
    if (background_->done()) finish_save();
    if (due(Interval::Unit::step, step + 1) || due(Interval::Unit::minute, 0)) {
      finish_steps(0);
      save_behind(state_.best);
      lap_ = Clock::now();
    }
  }
  finish_steps(0);
  check_stop();
}

double Trainer::learning_rate_at(int64_t step) const {
  return config_.train.optimizer->learning_rate().at(step, loader_->steps_per_epoch(), state_.schedule);
}

void Trainer::finish_steps(int most_pending) {
  while (replicas_->pending() > most_pending) finish_step();
}

void Trainer::finish_step() {
  const BatchTotals& totals = replicas_->finish();
  for (size_t i = 0; i < state_.sums.size(); ++i) state_.sums[i] += totals.sums[i];
  state_.samples += totals.samples;
  const double step_loss = means_of(config_, totals.sums, totals.samples)[0].second;
  ++state_.step;
  ++state_.step_in_epoch;
  if (is_suspect(step_loss) && !std::exchange(samples_checked_, true))
    check_samples(config_, loader_->dataset(), "trained on", true);
  for (const auto& callback : config_.train.callbacks)
    callback->after_step(state_.step, state_.epoch + 1, step_loss);
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - lap_).count();
  lap_ = now;
  state_.train_seconds += seconds;
  state_.epoch_seconds += seconds;
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
  progress.means = means_of(config_, state_.sums, state_.samples);
  progress.samples_per_second = static_cast<double>(state_.samples) / std::max(state_.train_seconds, 1e-9);
  progress.seconds_left =
      static_cast<double>(loader_->samples() - state_.samples) / std::max(progress.samples_per_second, 1e-9);
  observer_.on_step(progress);
}

void Trainer::check_stop() {
  const int signal = stop_;
  if (signal == 0) return;
  finish_steps(0);
  save_what_is_not();
  throw Interrupted(signal, fmt::format("stopped at step {}; saved {}", state_.step,
                                        directory_.checkpoint_path(state_.step)));
}

/// Validation, the epoch's record, callbacks; then the state is that of the next epoch's beginning.
void Trainer::finish_epoch() {
  const auto start = Clock::now();
  auto numbers = means_of(config_, state_.sums, state_.samples);
  if (validation_) {
    const auto means = evaluate_split(config_, *replicas_, *validation_, &stop_);
    if (!means) check_stop();
    for (const auto& [name, value] : *means) numbers.emplace_back("val_" + name, value);
  }
  const double seconds = state_.epoch_seconds + seconds_since(start);
  Json record = Json::object().set("epoch", state_.epoch + 1).set("step", state_.step);
  for (const auto& [name, value] : numbers) record.set(name, value);
  record.set("learning_rate", learning_rate_at(state_.step - 1)).set("seconds", seconds);
  record.set("samples_per_second",
             static_cast<double>(state_.samples) / std::max(state_.train_seconds, 1e-9));
  state_.history.push(record);
  state_.epoch += 1;
  state_.step_in_epoch = 0;
  state_.sums.assign(state_.sums.size(), 0.0);
  state_.samples = 0;
  state_.train_seconds = state_.epoch_seconds = 0;

  const MetricLookup metric = [&](const std::string& name) -> std::optional<double> {
    for (const auto& [known, value] : numbers)
      if (known == name) return value;
    return std::nullopt;
  };
  observer_.on_epoch(record, config_.train.epochs);
  std::string message;
  state_.schedule =
      config_.train.optimizer->learning_rate().after_epoch(std::move(state_.schedule), metric, message);
  if (!message.empty()) observer_.on_note(message);
  for (size_t i = 0; i < state_.callbacks.size(); ++i) {
    const Callback::Verdict verdict =
        config_.train.callbacks[i]->after_epoch(state_.callbacks[i].state, metric);
    if (!verdict.message.empty()) observer_.on_note(verdict.message);
    if (verdict.stop) state_.stopped = true;
  }
  finish_save();  // what it was of may be the best
  const std::optional<TrainingState::Best> best_before = state_.best;
  const bool improved = update_best(metric);
  if (state_.epoch >= config_.train.epochs || state_.stopped) {
    try {
      save();
    } catch (...) {
      attempt([&] { directory_.write_metrics(state_.history); });
      throw;
    }
    directory_.write_metrics(state_.history);
    return;
  }
  if (improved || due(Interval::Unit::epoch, state_.epoch)) save_behind(best_before);
  metrics_whole_ = attempt([&] {
    metrics_whole_ ? directory_.append_metrics(state_.history) : directory_.write_metrics(state_.history);
  });
}

/// True where this epoch is the best so far.
bool Trainer::update_best(const MetricLookup& metric) {
  if (!config_.checkpoint.best) return false;
  const BestOptions& best = *config_.checkpoint.best;
  const std::optional<double> value = metric(best.monitor);
  if (!value || std::isnan(*value)) return false;
  if (state_.best && !improves(*value, state_.best->value, best.mode, best.monitor)) return false;
  state_.best = TrainingState::Best{*value, state_.step, watched(best.mode, best.monitor)};
  return true;
}

bool Trainer::due(Interval::Unit unit, int64_t count) const {
  const Interval& every = config_.checkpoint.every;
  if (every.unit != unit) return false;
  if (unit == Interval::Unit::minute) return seconds_since(last_save_) >= every.count * 60;
  return count % static_cast<int64_t>(every.count) == 0;
}

/// A disk that is full for a while must not end a run: what fails here is tried again at the next occasion.
bool Trainer::attempt(const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const std::exception& error) {
    observer_.on_warning(fmt::format("{}; training goes on", error.what()));
    return false;
  }
}

void Trainer::save_what_is_not() {
  finish_save();
  if (saved_step_ != state_.step) save();
}

void Trainer::save() {
  finish_save();
  last_save_ = Clock::now();
  replicas_->fetch();
  writing(replicas_->arrays())();
  saved_step_ = state_.step;
}

void Trainer::save_behind(const std::optional<TrainingState::Best>& best_before) {
  finish_save();
  last_save_ = Clock::now();
  save_under_way_ = Save{state_.step, best_before};
  if (const auto arrays = replicas_->snapshot()) return background_->start(writing(*arrays));
  background_->start(writing(replicas_->arrays()));
  finish_save();
}

void Trainer::finish_save() {
  if (!save_under_way_) return;
  if (attempt([&] { background_->wait(); }))
    saved_step_ = save_under_way_->step;
  else if (state_.best && state_.best->step == save_under_way_->step)
    state_.best = save_under_way_->best_before;  // what is not saved is not the best to go back to
  save_under_way_.reset();
}

/// What writes a checkpoint of now; it needs nothing but the arrays to stay as they are.
std::function<void()> Trainer::writing(const HostArrays& arrays) {
  state_.epochs = config_.train.epochs;
  state_.loss_scale = 0;
  if (config_.train.precision == Precision::mixed_float16) {
    const GradientScale scale = replicas_->gradient_scale();
    state_.loss_scale = static_cast<double>(scale.loss_scale);
    state_.good_steps = scale.good_steps;
  }
  return [directory = directory_, step = state_.step, values = arrays.values, keep = config_.checkpoint.keep,
          best = state_.best ? std::optional(state_.best->step) : std::nullopt,
          content = checkpoint_content(config_, replicas_->layout(), arrays,
                                       state_.to_json().set("seed", config_.seed))] {
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
      throw Error(fmt::format("step {} is not saved: its weights are no finite numbers any more", step));
    save_checkpoint(directory.checkpoint_path(step), content);
    directory.prune(keep, best);
  };
}

}  // namespace dtrain
