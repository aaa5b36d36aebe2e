// dtrain evaluate: loss and metrics of a trained model.
#include <memory>

#include <fmt/format.h>

#include "commands.h"
#include "console.h"
#include "options.h"
#include "signals.h"
#include "text.h"
#include "train/placement.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

struct EvaluateOptions {
  OutputOptions output;
  std::string path, split;
  std::vector<std::string> sets;
  bool best = false;
};

/// The split asked for, else test, else validation.
std::string choose_split(const DatasetSpec& dataset, const EvaluateOptions& options) {
  std::string name = options.split;
  if (name.empty()) name = dataset.test ? "test" : "validation";
  if (dataset.find(name)) return name;
  std::string there;
  for (const char* split : {"train", "validation", "test"})
    if (dataset.find(split)) there += fmt::format("{}{}", there.empty() ? "" : ", ", split);
  throw UserError(
      fmt::format("{}: its data set has no '{}' split; --split takes one of: {}", options.path, name, there));
}

void evaluate(const EvaluateOptions& options) {
  const std::atomic<int>& stop = catch_signals().stop;
  const SavedRun run =
      load_saved_run(options.path, options.sets, print_warning, options.best ? Which::best : Which::newest);
  const RunConfig& config = run.config;
  const std::string split = choose_split(config.dataset, options);
  place_replicas(config);  // what this machine cannot do is said before the data are opened
  Loader loader(
      open_split(config.dataset, *config.dataset.find(split), config.graph.input_specs(), config.targets()),
      {.batch_size = config.train.batch_size, .prefetch = config.dataset.prefetch});
  const auto replicas =
      replicas_for_inference(run, Plan::Purpose::evaluation, config.train.batch_size, loader);
  const auto means = evaluate_split(config, *replicas, loader, [&] { return stop != 0; });
  if (!means) throw Interrupted(stop, "stopped");

  if (options.output.json) {
    Json result = Json::object();
    for (const auto& [name, value] : *means) result.set(name, value);
    print_json(result.set("samples", loader.samples()));
  } else if (options.output.text()) {
    std::string text = fmt::format("{}, {}:", split, format_plural(loader.samples(), "sample"));
    for (const auto& [name, value] : *means) text += fmt::format("  {} {}", name, format_value(value));
    print_text(text + "\n");
  }
}

}  // namespace

void add_evaluate(CommandLine& line) {
  Command command = line.add_command("evaluate", "Loss and metrics of a trained model on a split");
  const auto options = std::make_shared<EvaluateOptions>();
  command.add_option("PATH", options->path, "A run directory (its newest checkpoint), or one checkpoint file")
      .required();
  command
      .add_option("--split", options->split,
                  "train, validation or test (test where not given, validation where there is no test split)")
      .one_of({"train", "validation", "test"});
  add_best_option(command, options->best);
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { evaluate(*options); });
}

}  // namespace dtrain
