// dtrain fit: trains a model from a configuration.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/launcher.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "run/run_config_parser.h"
#include "runs/run_folder.h"
#include "runs/training.h"
#include "sweep/sweep_plan.h"
#include "train/continued_run.h"
#include "train/pretrained_loading.h"

namespace dtrain {

namespace {

struct FitOptions : TrainingOptions {
  std::string config;
  bool resume = false, overwrite = false;
};

/// Returns the run directory. Without --output, keeps the run of an earlier `fit` by appending a number to
/// the name.
RunDirectory directory_for(const FitOptions& options, const std::string& name) {
  if (!options.directory.empty()) return RunDirectory(options.directory);
  if (options.resume)
    if (const std::optional<RunDirectory> newest = newest_directory(name)) return *newest;
  const RunDirectory first("runs/" + name);
  if (options.overwrite) return first;
  RunDirectory directory = take_free_directory(name);
  if (directory.path() != first.path() && !options.output.quiet)
    print_note(fmt::format(
        "{} already contains a run{}, so this run is saved in {}{}", first.path(),
        options.resume ? " with another name" : "", directory.path(),
        options.resume ? "" : "; use --resume to continue the newest run with this name instead"));
  return directory;
}

/// Loads the configuration. If a --set has several values, the error message points to `dtrain sweep`.
RunConfig load_configuration(const FitOptions& options) {
  try {
    return load_run_config(options.config, options.all_sets(), ConfigUse::training);
  } catch (const UserError& error) {
    std::string message = error.what();
    for (const std::string& set : options.sets)
      if (message.find("--set " + set) != std::string::npos && !parse_sweep_sets({set}).varied.empty())
        message += fmt::format("\n--set {}: to train with several values of a key, use `dtrain sweep`", set);
    throw UserError(message);
  }
}

void fit(const FitOptions& options, World& world) {
  if (world.size() == 1) reject_several_tasks();
  if (!world.writes_files()) return train_along(world);
  reject_wrong_configuration(options.config);
  RunConfig config = load_configuration(options);
  print_warnings(config.warnings);
  const RunDirectory directory = directory_for(options, config.name);

  std::error_code missing;
  if (std::filesystem::equivalent(options.config, directory.path() + "/config.yaml", missing))
    throw UserError(fmt::format("{}: the run would overwrite this file; give another directory with --output",
                                options.config));

  in_run_directory(directory, [&] {
    std::optional<Checkpoint> checkpoint;
    if (options.resume) {
      checkpoint = load_newest(directory, print_warning);
    } else if (!options.overwrite && !directory.checkpoints().empty()) {
      throw UserError(fmt::format(
          "{}: the directory already contains checkpoints (the newest is {}). Use --resume to continue from "
          "the newest checkpoint, --overwrite to replace the run, or --output to give another directory",
          directory.path(), std::filesystem::path(directory.checkpoints().back()).filename().string()));
    }
    if (checkpoint)
      config = config_to_continue(std::move(config), *checkpoint);
    else
      load_vocabularies(config, print_warning);
    const Checkpoint* const resumed = checkpoint ? &*checkpoint : nullptr;
    train(share_and_plan(std::move(config), world, directory, resumed), directory, resumed,
          options.overwrite ? Existing::clear : Existing::keep, options);
  });
}

}  // namespace

void add_fit(CommandLine& line, World& world) {
  Command command = line.add_command("fit", "Train a model from a configuration");
  const auto options = std::make_shared<FitOptions>();
  command.add_option("CONFIG", options->config, "The configuration (a YAML file)").required();
  const Option resume =
      command.add_flag("--resume", options->resume,
                       "Continue from the newest checkpoint in the run directory, if there is one. Without "
                       "--output, the run directory is the newest one of this configuration");
  command
      .add_flag("--overwrite", options->overwrite,
                "Replace the run in the run directory: remove its checkpoints and other files first")
      .excludes(resume);
  add_training_options(command, *options);
  command.option("--output")
      .description(
          "The run directory (default: runs/NAME; if it already contains a run, runs/NAME-2, and so on)");
  command.callback([options, &world] { in_world(world, [&] { fit(*options, world); }); });
}

}  // namespace dtrain
