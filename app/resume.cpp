// dtrain resume: continues from a checkpoint.
#include <memory>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "cli/console.h"
#include "cli/launcher.h"
#include "commands.h"
#include "runs/training.h"
#include "train/continued_run.h"

namespace dtrain {

namespace {

struct ResumeOptions : TrainingOptions {
  std::string path;
  bool best = false;
};

/// Returns the directory in which the run continues: its own directory, or another directory that contains no
/// other run.
RunDirectory directory_for(const ResumeOptions& options) {
  if (options.directory.empty() && imported_model_at(options.path))
    throw UserError(
        fmt::format("{}: this is an imported model, which has no run directory; give a directory for the new "
                    "run with --output DIR",
                    options.path));
  const std::optional<RunDirectory> own = run_directory_of(options.path);
  if (options.directory.empty()) {
    if (own) return *own;
    throw UserError(fmt::format(
        "{}: this checkpoint is not in a run directory; give a directory for the run with --output DIR",
        options.path));
  }
  RunDirectory directory(options.directory);
  const bool same = own && real_path(own->path()) == real_path(directory.path());
  if (!same && !directory.checkpoints().empty())
    throw UserError(fmt::format(
        "{}: the directory contains another run's checkpoints; resume that run (dtrain resume {}), or give "
        "another directory with --output",
        directory.path(), directory.path()));
  return directory;
}

void resume(const ResumeOptions& options, World& world) {
  if (world.size() == 1) reject_several_tasks();
  if (!world.writes_files()) return train_along(world);
  const RunDirectory directory = directory_for(options);
  in_run_directory(directory, [&] {
    SavedRun run = load_saved_run(options.path, options.all_sets(), print_warning,
                                  options.best ? Which::best : Which::newest);
    run.config.require_train(run.checkpoint.path());
    run.config.require_dataset(run.checkpoint.path());
    RunPlan plan = share_and_plan(config_to_continue(std::move(run.config), run.checkpoint), world, directory,
                                  &run.checkpoint);
    print_warnings(plan.warnings);
    train(std::move(plan), directory, &run.checkpoint, Existing::keep, options);
  });
}

}  // namespace

void add_resume(CommandLine& line, World& world) {
  Command command =
      line.add_command("resume", "Continue training from a checkpoint to the end of the configured epochs");
  const auto options = std::make_shared<ResumeOptions>();
  command.add_option("PATH", options->path, "A run directory (its newest checkpoint), or a checkpoint file")
      .required();
  add_best_option(command, options->best);
  add_training_options(command, *options);
  command.option("--output").description("Continue in this directory instead of the run's own directory");
  command.callback([options, &world] { in_world(world, [&] { resume(*options, world); }); });
}

}  // namespace dtrain
