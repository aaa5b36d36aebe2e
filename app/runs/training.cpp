#include "runs/training.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/invocation.h"
#include "cli/process_group.h"
#include "cli/signals.h"
#include "print/progress.h"
#include "report/run_files.h"
#include "run/record/outcome.h"
#include "runs/histograms.h"
#include "runs/run_recorder.h"
#include "runs/start.h"
#include "runs/step_log.h"
#include "train/continued_run.h"
#include "train/shared_run.h"

namespace dtrain {

namespace {

/// Adds a line to run.jsonl. Warns if the line cannot be written.
void note_event(const RunDirectory& directory, const Json& event, Observer& observer) {
  try {
    directory.append_event(event);
  } catch (const Error& error) {
    observer.on_warning(error.what());
  }
}

Json event_of(const std::string& name, const TrainingState& state) {
  return Json::object()
      .set("event", name)
      .set("time", format_time_now())
      .set("epoch", state.epoch)
      .set("step", state.step);
}

/// Returns the configuration keys that the user has written. The configuration of a resumed run comes from
/// the checkpoint and contains every key, so only the keys of --set are returned for it.
Json written_keys(const RunConfig& config, bool resumed, const std::vector<std::string>& sets) {
  Json keys = Json::array();
  const Json written = settings_of(config.written);
  if (resumed)
    for (const std::string& set : sets) keys.push(set.substr(0, set.find('=')));
  else
    for (const auto& [key, value] : written.entries()) keys.push(key);
  return keys;
}

Json begin_event(Trainer& trainer, bool resumed, const std::vector<std::string>& sets) {
  Json event = event_of(resumed ? "resume" : "fit", trainer.state());
  event.set("written", written_keys(trainer.config(), resumed, sets));
  return describe_run(describe_invocation(event), trainer);
}

/// Trains and records how training ended.
void run_noted(Trainer& trainer, const RunDirectory& directory, RunRecorder& observer, const World& world) {
  const int64_t first_step = trainer.state().step;
  const auto note_end = [&](Outcome outcome, const std::string& how) {
    Json event = event_of("end", trainer.state()).set("outcome", name_of(outcome)).set("how", how);
    if (trainer.state().step > first_step) event.set("seconds", trainer.time_spent().to_json());
    if (outcome == Outcome::failed) event.set("failed", true);
    note_event(directory, event, observer);
    observer.end(outcome == Outcome::done || outcome == Outcome::stopped);
  };
  try {
    trainer.run();
  } catch (const Interrupted& asked) {
    note_end(Outcome::interrupted, asked.what());
    throw;
  } catch (const std::exception& error) {
    note_end(Outcome::failed, error.what());
    // Prints the error before destructors run, because they may take a long time or block forever if a GPU
    // has failed.
    if (dynamic_cast<const Error*>(&error)) print_error(world.complete_error(error.what()));
    throw;
  }
  const TrainingState& state = trainer.state();
  if (state.stopped)
    return note_end(Outcome::stopped,
                    state.stop_reason.empty() ? "a callback ended the run" : state.stop_reason);
  const bool done = state.epoch >= trainer.config().train.epochs;
  note_end(done ? Outcome::done : Outcome::out_of_time, done ? "done" : "max_time is over");
}

/// Returns the record of the epoch that ended at this step, or null if there is none.
Json record_at(const History& history, int64_t step) {
  for (Json& record : parse_json_lines(history.text()))
    if (record.at("step").as_int() == step) return std::move(record);
  return {};
}

Json outcome(const Trainer& trainer, const RunDirectory& directory) {
  const TrainingState& state = trainer.state();
  Json result = Json::object();
  result.set("run_directory", directory.path());
  result.set("checkpoint", directory.checkpoint_path(state.step));
  result.set("epochs", state.epoch).set("step", state.step);
  result.set("last_epoch", state.history.last());
  if (state.best)
    result
        .set("best", Json::object()
                         .set("monitor", trainer.config().checkpoint.best->monitor)
                         .set("value", state.best->value)
                         .set("step", state.best->step)
                         .set("checkpoint", directory.checkpoint_path(state.best->step)))
        .set("best_epoch", record_at(state.history, state.best->step));
  return result;
}

std::string closing_lines(const Json& outcome) {
  const Json& last = *outcome.find("last_epoch");
  std::string text = fmt::format("{}, {}", format_plural(outcome.find("epochs")->as_int(), "epoch"),
                                 format_plural(outcome.find("step")->as_int(), "step"));
  if (last.is_object()) text += ": " + format_metrics(last, ", ");
  text += "\nsaved " + outcome.find("checkpoint")->as_string() + "\n";
  if (const Json* best = outcome.find("best")) {
    text += fmt::format("best  {} ({} {})\n", best->find("checkpoint")->as_string(),
                        best->find("monitor")->as_string(), format_value(best->find("value")->as_double()));
    if (const Json& epoch = outcome.at("best_epoch"); epoch.is_object() && last.is_object())
      if (const Json& number = epoch.at("epoch"); number.as_int() != last.at("epoch").as_int())
        text +=
            fmt::format("      epoch {}: {}\n", format_count(number.as_int()), format_metrics(epoch, ", "));
  }
  return text;
}

}  // namespace

std::vector<std::string> TrainingOptions::all_sets() const {
  std::vector<std::string> all = sets;
  if (epochs) all.push_back(fmt::format("train.epochs={}", *epochs));
  return all;
}

void add_training_options(Command& command, TrainingOptions& options) {
  command.add_option("--output,-o", options.directory, "The run directory").type_name("DIR");
  command
      .add_option("--epochs", options.epochs, "Train until the end of epoch N. This overrides train.epochs")
      .at_least(0)
      .type_name("N");
  add_set_option(command, options.sets);
  command
      .add_option("--step-log", options.step_log,
                  "Append a JSON line for each step to this file, with the step, the loss of the batch, and "
                  "the seconds since the start of the process")
      .type_name("FILE");
  add_interface_option(command);
  add_output_options(command, options.output);
}

void in_run_directory(RunDirectory directory, const std::function<void()>& work) {
  catch_signals();
  directory.hold();
  try {
    work();
  } catch (const UserError&) {
    directory.discard();
    throw;
  } catch (...) {
    if (!directory.has_begun()) directory.discard();
    throw;
  }
}

void in_world(World& world, const std::function<void()>& work) try { work(); } catch (const Interrupted&) {
  throw;  // all processes were interrupted, so there is no error to report
} catch (const UserError&) {
  throw;  // main() reports it with its exit code
} catch (const std::exception& error) {
  world.abort(error.what(), false);
  throw;
}

void train_along(World& world) {
  // Catches signals first, because a signal may arrive while process 0 is still preparing the run.
  Requests& requests = catch_signals();
  const SharedRun run = receive_run(world);
  HistogramSender sender;
  Trainer trainer(plan_training(run.config, world), RunDirectory(run.directory), sender, requests);
  if (run.checkpoint) {
    trainer.restore(*run.checkpoint);
  } else {
    trainer.start();
  }
  sender.begin(trainer);
  trainer.run();
}

RunPlan share_and_plan(RunConfig config, World& world, const RunDirectory& directory,
                       const Checkpoint* checkpoint) {
  send_run(world, config, directory.path(), checkpoint);
  return plan_training(std::move(config), world);
}

void train(RunPlan plan, const RunDirectory& directory, const Checkpoint* checkpoint, Existing existing,
           const TrainingOptions& options) {
  const std::vector<DeviceId> devices = plan.placement.devices();
  const bool gpus = std::any_of(devices.begin(), devices.end(),
                                [](DeviceId device) { return device.kind == DeviceId::Kind::gpu; });
  const std::unique_ptr<Observer> progress = make_progress(options.output.quiet, gpus);
  std::unique_ptr<Observer> step_log;
  if (!options.step_log.empty()) step_log = std::make_unique<StepLog>(options.step_log, *progress);
  RunRecorder observer(directory, step_log ? *step_log : *progress);
  const World& world = plan.world;

  progress->on_wait("reading the data");
  Trainer trainer(std::move(plan), directory, observer, catch_signals());
  if (checkpoint) {
    trainer.restore(*checkpoint);
  } else {
    trainer.start();
  }
  const TrainingState& state = trainer.state();
  if (existing == Existing::clear) {
    directory.clear();
  } else {
    set_newer_aside(directory, state.step, observer);
  }
  if (checkpoint) {
    bring_checkpoints(directory, *checkpoint, trainer, observer);
    if (const std::string why = explain_end(state, trainer.config()); !why.empty()) observer.on_note(why);
  }
  note_event(directory, begin_event(trainer, checkpoint != nullptr, options.all_sets()), observer);
  observer.begin(trainer);
  observer.on_note(describe_start(trainer, directory));
  run_noted(trainer, directory, observer, world);

  const Json result = outcome(trainer, directory);
  if (options.output.json) print_json(result);
  if (options.output.text()) print_text(closing_lines(result));
}

}  // namespace dtrain
