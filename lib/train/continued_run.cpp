#include "train/continued_run.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/run_plan.h"
#include "train/saved_run.h"

namespace dtrain {

RunConfig config_to_continue(RunConfig config, const Checkpoint& checkpoint) {
  config = keep_choices(std::move(config), *saved_config(checkpoint, {}).resolved.find("strategy"));
  config.dataset.facts = saved_facts(checkpoint);
  return config;
}

void set_newer_aside(const RunDirectory& directory, int64_t step, Observer& observer) {
  for (const std::string& path : directory.set_aside_after(step))
    observer.on_note(
        fmt::format("the run continues from step {1}; the newer checkpoint is set aside as {0}", path, step));
}

namespace {

void bring_checkpoint(const RunDirectory& directory, const Checkpoint& checkpoint, int64_t step) {
  if (!directory.has_checkpoint(step)) directory.save(step, checkpoint.content());
}

}  // namespace

void bring_checkpoints(const RunDirectory& directory, const Checkpoint& resumed, Trainer& trainer,
                       Observer& observer) {
  bring_checkpoint(directory, resumed, trainer.state().step);
  if (!trainer.state().best) return;
  const int64_t step = trainer.state().best->step;
  if (directory.has_checkpoint(step)) return;
  const auto beside = std::filesystem::path(resumed.path()).replace_filename(checkpoint_name(step));
  try {
    bring_checkpoint(directory, Checkpoint::load(beside.string()), step);
  } catch (const UserError& error) {
    observer.on_warning(fmt::format(
        "{}; the best checkpoint will be chosen only from the epochs that are trained from now on",
        error.what()));
    trainer.forget_best();
  }
}

std::string explain_end(const TrainingState& state, const RunConfig& config) {
  if (state.stopped)
    return fmt::format(
        "nothing left to train: a callback ended the run after {}{}. To continue, set another number of "
        "epochs (--epochs N) or other callbacks (--set 'train.callbacks=[terminate_on_nan]')",
        format_plural(state.epoch, "epoch"),
        state.stop_reason.empty() ? "" : fmt::format(" ({})", state.stop_reason));
  if (state.epoch < config.train.epochs) return "";
  return fmt::format("nothing left to train: {} of {} done; use --epochs N to train more epochs", state.epoch,
                     format_plural(config.train.epochs, "epoch"));
}

}  // namespace dtrain
