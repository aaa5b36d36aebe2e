// Starts a trainer with initial weights, with the weights of a file, or with the state of a checkpoint.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "run/monitors.h"
#include "train/pretrained_loading.h"
#include "train/restored_state.h"
#include "train/split_overlap.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

/// Returns the entry `key` of a part of a configuration as text, such as "shuffle: true".
std::string written_in(const ConfigNode& part, std::string_view key) {
  std::string text = ConfigNode::mapping({ConfigNode::entry(key, *part.find(key))}).to_yaml();
  text.pop_back();  // the newline
  return text;
}

/// Throws UserError if options have changed that must not change within an epoch. Otherwise the epoch would
/// use some samples twice or not at all, or would add values of different losses or metrics to the same sums.
void check_epoch_continues(const std::string& path, const ConfigNode& saved, const ConfigNode& now) {
  const auto check = [&](const ConfigNode& before, const ConfigNode& after, std::string_view key) {
    if (written_in(before, key) == written_in(after, key)) return;
    throw UserError(fmt::format(
        "{}: cannot change '{}' to '{}' in the middle of an epoch; change it at the end of an epoch", path,
        written_in(before, key), written_in(after, key)));
  };
  check(saved, now, "seed");
  const ConfigNode &data = *saved.find("dataset"), &data_now = *now.find("dataset");
  check(data, data_now, "shuffle");
  check(*data.find("batches"), *data_now.find("batches"), "bucket_by_length");
  for (const char* key : {"loss", "metrics", "weighted_metrics", "class_weight", "threshold"})
    check(*saved.find("train"), *now.find("train"), key);
}

}  // namespace

/// Throws UserError if the data changed within an epoch, because the epoch would use some samples twice or
/// not at all. If the data changed between epochs, this may be intended, so the user only gets a warning.
void Trainer::check_data_unchanged(const std::string& path) {
  for (const auto& [split, before] : std::exchange(state_.data, data_)) {
    const auto now = data_.find(split);
    const std::string change = now == data_.end() ? "" : describe_change(before, now->second);
    if (change.empty()) continue;
    if (split == "train" && state_.step_in_epoch > 0)
      throw UserError(
          fmt::format("{}: the data have changed in the middle of an epoch: {}; change the data only at the "
                      "end of an epoch",
                      path, change));
    observer_.on_warning(fmt::format("the data of the split '{}' have changed: {}", split, change));
  }
}

/// Assigns the saved states of callbacks to the callbacks of the same type, in order. New callbacks start
/// with a null state.
void Trainer::take_callbacks(std::vector<TrainingState::OfCallback> saved) {
  state_.callbacks.clear();
  for (const Configured<Callback>& callback : config_.train.callbacks) {
    const auto found =
        std::find_if(saved.begin(), saved.end(), [&](const auto& one) { return one.kind == callback.name; });
    state_.callbacks.push_back({callback.name, Json()});
    if (found == saved.end()) continue;
    state_.callbacks.back().state = std::move(found->state);
    saved.erase(found);
  }
}

void Trainer::start() {
  engine_->allocate(Plan::Purpose::training, config_.train.batch_size);
  engine_->initialize();
  if (config_.graph.pretrained) take_pretrained();
  engine_->state().broadcast();
  engine_->state().begin_average();
}

/// Process 0 reads the file, and sends the weights to the other processes.
void Trainer::take_pretrained() {
  std::optional<Pretrained> pretrained;
  if (world_.writes_files()) {
    pretrained = load_pretrained(config_.graph);
    for (const std::string& warning : pretrained->warnings) observer_.on_warning(warning);
    for (const std::string& warning :
         warnings_of_vocabularies(config_.graph, config_.dataset.facts, *pretrained))
      observer_.on_warning(warning);
    if (const Checkpoint* other = pretrained->file.checkpoint())
      for (const std::string& warning : warnings_of_overlap(config_, *other)) observer_.on_warning(warning);
  }
  for (const ParameterSlice& slice : engine_->layout().slices()) {
    std::vector<float> values;
    if (pretrained)
      if (const auto found = pretrained->weights.find(slice.path()); found != pretrained->weights.end()) {
        const auto* const data = static_cast<const float*>(found->second->data);
        values.assign(data, data + slice.elements());
      }
    int64_t floats = static_cast<int64_t>(values.size());
    world_.broadcast(std::as_writable_bytes(std::span(&floats, 1)));
    if (floats == 0) continue;
    values.resize(static_cast<size_t>(floats));
    world_.broadcast(std::as_writable_bytes(std::span(values)));
    engine_->state().write(kParameters, {slice.offset, slice.offset + slice.elements()}, values.data());
  }
  engine_->state().finish_writing();
  if (pretrained) observer_.on_note(pretrained->description);
}

namespace {

/// Returns the optimizer and the learning rate of a configuration, without the options that say when a
/// reduce_on_plateau reduces the rate.
std::string rate_of(const ConfigNode& config) {
  const auto& [optimizer, options] = config.find("train")->find("optimizer")->entries().front();
  const ConfigNode* const rate = options.find("learning_rate");
  if (!rate || !rate->is_mapping())
    return fmt::format("{} {}", optimizer.text(), rate ? rate->to_yaml() : "");
  constexpr std::array<std::string_view, 7> kReductions{"monitor",   "mode",     "factor", "patience",
                                                        "min_delta", "cooldown", "min"};
  const auto& [schedule, its] = rate->entries().front();
  return fmt::format("{} {} {}", optimizer.text(), schedule.text(), its.without(kReductions).to_yaml());
}

}  // namespace

void Trainer::restore(const Checkpoint& checkpoint) {
  state_ = saved_state(checkpoint);
  const ConfigNode saved = saved_config(checkpoint, {}).resolved;
  if (state_.step_in_epoch > 0) check_epoch_continues(checkpoint.path(), saved, config_.resolved);
  check_data_unchanged(checkpoint.path());
  if (const std::string warning = restore_for_training(checkpoint, config_, *engine_, state_);
      !warning.empty())
    observer_.on_warning(warning);
  if (state_.loss_scale != 0 && config_.train.precision == Precision::mixed_float16)
    engine_->state().set_gradient_scale({.loss_scale = static_cast<float>(state_.loss_scale),
                                         .good_steps = static_cast<int32_t>(state_.good_steps)});
  if (state_.step_in_epoch == 0)
    state_.sums.assign(count_totals(config_.graph, config_.heads),
                       0.0);  // the checkpoint may be from a run with different metrics
  if (state_.sums.size() != count_totals(config_.graph, config_.heads))
    throw UserError(fmt::format(
        "{}: the checkpoint was saved in the middle of an epoch with {} of losses and metrics, but "
        "this configuration needs {}; change outputs, losses and metrics only at the end of an epoch",
        checkpoint.path(), format_plural(static_cast<int64_t>(state_.sums.size()), "running sum"),
        count_totals(config_.graph, config_.heads)));
  if (const auto names = clear_outdated(config_, state_.sums, state_.sums_version); state_.step_in_epoch > 0)
    for (const std::string& name : names)
      observer_.on_warning(
          fmt::format("{}: this checkpoint is from an earlier version of dtrain, which computed '{}' "
                      "differently; in the current epoch, this metric covers only the steps from step {} on",
                      checkpoint.path(), name, state_.step + 1));
  state_.sums_version = TrainingState::kSumsVersion;
  if (state_.step_in_epoch > loader_->steps_per_epoch() ||
      state_.samples != std::min(state_.step_in_epoch * config_.train.batch_size, loader_->samples()))
    throw UserError(
        fmt::format("{}: the batch size or the data have changed in the middle of an epoch: the run has used "
                    "{} of the epoch's {} samples in {}, which is impossible with batches of {}; change them "
                    "only at the end of an epoch",
                    checkpoint.path(), state_.samples, loader_->samples(),
                    format_plural(state_.step_in_epoch, "step"), config_.train.batch_size));
  take_callbacks(std::move(state_.callbacks));
  // Continues a run that a callback stopped if the number of epochs or the callbacks have changed since then.
  if (config_.train.epochs != state_.epochs || written_in(*saved.find("train"), "callbacks") !=
                                                   written_in(*config_.resolved.find("train"), "callbacks")) {
    for (size_t i = 0; state_.stopped && i < state_.callbacks.size(); ++i)
      config_.train.callbacks[i]->continue_after_stop(state_.callbacks[i].state);
    state_.stopped = false;
  }
  if (!state_.stopped) state_.stop_reason.clear();
  const auto& best = config_.checkpoint.best;
  const auto watches = [&](const BestOptions& options) {
    return watched(resolved(options.mode, larger_is_better(config_, options.monitor)), options.monitor);
  };
  if (!best || (state_.best && state_.best->watched != watches(*best))) state_.best.reset();
  if (!state_.schedule.is_null() && rate_of(saved) != rate_of(config_.resolved)) {
    state_.schedule = Json();
    observer_.on_note(
        "the optimizer or its learning rate has changed, so earlier reductions of the learning rate do not "
        "apply");
  }
  schedule_shift_ = state_.schedule_shift(loader_->steps_per_epoch());
  restored_ = true;
}

}  // namespace dtrain
