#include "training.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "console.h"
#include "progress.h"
#include "signals.h"
#include "step_log.h"
#include "text.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

/// A run writes config.yaml and metrics.jsonl anew; those of a directory that no run has are somebody else's.
void refuse_foreign_files(const RunDirectory& directory) {
  std::error_code missing;
  if (std::filesystem::exists(directory.checkpoint_directory(), missing)) return;
  for (const char* name : {"config.yaml", "metrics.jsonl"})
    if (const auto path = std::filesystem::path(directory.path()) / name;
        std::filesystem::exists(path, missing))
      throw UserError(
          fmt::format("{}: is of no run of dtrain's, and would be written over; give another "
                      "directory: --output",
                      path.string()));
}

void set_newer_aside(const RunDirectory& directory, int64_t step, Observer& observer) {
  for (const std::string& path : directory.set_aside_after(step))
    observer.on_note(fmt::format("set aside {}: newer than step {}, which the run goes on from", path, step));
}

void bring_checkpoint(const RunDirectory& directory, const Checkpoint& checkpoint, int64_t step) {
  const std::string path = directory.checkpoint_path(step);
  if (std::filesystem::exists(path)) return;
  directory.create();
  save_checkpoint(path, checkpoint.content());
}

/// The best one, which stands beside the one that is resumed from; where it does not, there is none so far.
void bring_best(const RunDirectory& directory, const Checkpoint& resumed, Trainer& trainer,
                Observer& observer) {
  if (!trainer.state().best) return;
  const int64_t step = trainer.state().best->step;
  if (std::filesystem::exists(directory.checkpoint_path(step))) return;
  const auto beside = std::filesystem::path(resumed.path()).replace_filename(checkpoint_name(step));
  try {
    bring_checkpoint(directory, Checkpoint::load(beside.string()), step);
  } catch (const UserError& error) {
    observer.on_warning(fmt::format("{}; the best checkpoint is chosen anew", error.what()));
    trainer.forget_best();
  }
}

Json outcome(const Trainer& trainer, const RunDirectory& directory) {
  const TrainingState& state = trainer.state();
  Json result = Json::object();
  result.set("run_directory", directory.path());
  result.set("checkpoint", directory.checkpoint_path(state.step));
  result.set("epochs", state.epoch).set("step", state.step);
  result.set("last_epoch", state.history.last());
  if (state.best)
    result.set("best", Json::object()
                           .set("monitor", trainer.config().checkpoint.best->monitor)
                           .set("value", state.best->value)
                           .set("step", state.best->step)
                           .set("checkpoint", directory.checkpoint_path(state.best->step)));
  return result;
}

std::string closing_lines(const Json& outcome) {
  const Json& last = *outcome.find("last_epoch");
  std::string text = fmt::format("{}, {}", format_plural(outcome.find("epochs")->as_int(), "epoch"),
                                 format_plural(outcome.find("step")->as_int(), "step"));
  if (last.is_object()) text += ": " + format_metrics(last, ", ");
  text += "\nsaved " + outcome.find("checkpoint")->as_string() + "\n";
  if (const Json* best = outcome.find("best"))
    text += fmt::format("best  {} ({} {})\n", best->find("checkpoint")->as_string(),
                        best->find("monitor")->as_string(), format_value(best->find("value")->as_double()));
  return text;
}

}  // namespace

std::vector<std::string> TrainingOptions::all_sets() const {
  std::vector<std::string> all = sets;
  if (epochs) all.push_back(fmt::format("train.epochs={}", *epochs));
  return all;
}

void add_training_options(CLI::App& command, TrainingOptions& options) {
  command.add_option("--output,-o", options.directory, "The run directory")->type_name("DIR");
  command.add_option("--epochs", options.epochs, "Train to the end of this epoch")
      ->check(whole_number(0))
      ->type_name("N");
  add_set_option(command, options.sets);
  command
      .add_option("--step-log", options.step_log,
                  "Append a JSON line a step to this file: step, loss of its batch, seconds since the start")
      ->type_name("FILE");
  add_output_options(command, options.output);
}

void train(RunConfig config, const RunDirectory& directory, const Checkpoint* checkpoint, Existing existing,
           const TrainingOptions& options) {
  const std::atomic<int>& stop = catch_stop_signals();
  refuse_foreign_files(directory);
  const std::unique_ptr<Observer> progress = make_progress(options.output.quiet);
  std::unique_ptr<Observer> step_log;
  if (!options.step_log.empty()) step_log = std::make_unique<StepLog>(options.step_log, *progress);
  Observer& observer = step_log ? *step_log : *progress;

  if (checkpoint) config.dataset.fields = saved_fields(*checkpoint);  // `fit --resume` read a file of its own
  Trainer trainer(std::move(config), directory, observer, stop);
  if (checkpoint) {
    trainer.restore(*checkpoint);
  } else {
    trainer.start();
  }
  const TrainingState& state = trainer.state();
  const RunDirectory::Lock lock = directory.lock();
  if (existing == Existing::clear) {
    directory.clear();
  } else {
    set_newer_aside(directory, state.step, observer);
  }
  if (checkpoint) {
    // A directory that a run moves to begins with what it is resumed from.
    bring_checkpoint(directory, *checkpoint, state.step);
    bring_best(directory, *checkpoint, trainer, observer);
    if (state.stopped)
      observer.on_note(fmt::format(
          "nothing left to train: a callback ended the run after {}; --epochs, or other callbacks, go on",
          format_plural(state.epoch, "epoch")));
    else if (state.epoch >= trainer.config().train.epochs)
      observer.on_note(fmt::format("nothing left to train: {} of {} done; --epochs sets another end",
                                   state.epoch, format_plural(trainer.config().train.epochs, "epoch")));
  }
  trainer.run();

  const Json result = outcome(trainer, directory);
  if (options.output.json) print_json(result);
  if (options.output.text()) print_text(closing_lines(result));
}

}  // namespace dtrain
