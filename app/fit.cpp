// dtrain fit: train as a configuration says.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "commands.h"
#include "console.h"
#include "train/run_config_parser.h"
#include "training.h"

namespace dtrain {

namespace {

struct FitOptions : TrainingOptions {
  std::string config;
  bool resume = false, overwrite = false;
};

void fit(const FitOptions& options) {
  RunConfig config = load_run_config(options.config, options.all_sets(), true);
  print_warnings(config.warnings);
  const RunDirectory directory(options.directory.empty() ? "runs/" + config.name : options.directory);

  std::error_code missing;
  if (std::filesystem::equivalent(options.config, directory.path() + "/config.yaml", missing))
    throw UserError(fmt::format("{}: the run would write its own over it; give another directory: --output",
                                options.config));

  in_run_directory(directory, [&] {
    std::optional<Checkpoint> checkpoint;
    if (options.resume) {
      checkpoint = load_newest(directory, print_warning);
    } else if (!options.overwrite && !directory.checkpoints().empty()) {
      throw UserError(fmt::format(
          "{}: holds checkpoints already, the newest {}; --resume goes on from it, --overwrite begins "
          "anew in its place (or give another directory: --output)",
          directory.path(), std::filesystem::path(directory.checkpoints().back()).filename().string()));
    }
    train(std::move(config), directory, checkpoint ? &*checkpoint : nullptr,
          options.overwrite ? Existing::clear : Existing::keep, options);
  });
}

}  // namespace

void add_fit(CommandLine& line) {
  Command command = line.add_command("fit", "Train as a configuration says");
  const auto options = std::make_shared<FitOptions>();
  command.add_option("CONFIG", options->config, "The configuration, a YAML file").required();
  const Option resume = command.add_flag(
      "--resume", options->resume, "Go on from the newest checkpoint in the run directory, if there is one");
  command
      .add_flag("--overwrite", options->overwrite,
                "Begin anew where the run directory holds checkpoints; those are removed")
      .excludes(resume);
  add_training_options(command, *options);
  command.option("--output").description("The run directory (runs/ and the run's name where not given)");
  command.callback([options] { fit(*options); });
}

}  // namespace dtrain
