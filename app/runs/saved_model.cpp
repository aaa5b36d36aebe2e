#include "runs/saved_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/name_list.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/wrong_path.h"
#include "data/readers/csv/text.h"
#include "run/row_weights.h"
#include "run/target_scale.h"
#include "train/shared_run.h"

namespace dtrain {

void add_model_options(Command& command, ModelOptions& options, const std::string& name) {
  options.command = name;
  command
      .add_option("PATH", options.path,
                  "A run directory (its best checkpoint if the configuration has checkpoint.best, otherwise "
                  "its newest), or a checkpoint file")
      .required();
  add_best_option(command, options.best);
  command.add_flag("--newest", options.newest, "For a run directory: use the newest checkpoint")
      .excludes(command.option("--best"));
  add_set_option(command, options.sets);
}

TextOptions InputOptions::text() const {
  TextOptions text{header, std::nullopt};
  if (delimiter == "\\t") text.delimiter = '\t';  // users write a tab like this in a shell
  if (delimiter.size() == 1) text.delimiter = delimiter[0];
  if (delimiter == "whitespace") text.delimiter = kBlanksDelimit;
  return text;
}

void add_text_options(Command& command, InputOptions& options) {
  command.add_flag(
      "--header,!--no-header", [&options](bool given) { options.header = given; },
      "Whether the first line of a text file contains the names of the columns (default: the setting of the "
      "run's csv reader)");
  command
      .add_option("--delimiter", options.delimiter,
                  "The character that separates the values in a text file, or the word whitespace (default: "
                  "the setting of the run's csv reader)")
      .matches(
          "one character or 'whitespace'",
          [](const std::string& text) { return text.size() == 1 || text == "\\t" || text == "whitespace"; })
      .type_name("CHARACTER");
}

SavedRun load_saved_model(const ModelOptions& options) {
  reject_wrong_run(options.path, options.command);
  const Which which = options.best ? Which::best : options.newest ? Which::newest : Which::preferred;
  return load_saved_run(options.path, options.sets, print_warning, which);
}

SavedRun share_saved_model(const ModelOptions& options, World& world) {
  if (world.size() == 1) return load_saved_model(options);
  if (!world.writes_files()) {
    Checkpoint checkpoint = *share_checkpoint(world, nullptr);
    RunConfig config = saved_config(checkpoint, options.sets);
    return {std::move(checkpoint), std::move(config), std::nullopt};
  }
  SavedRun run = load_saved_model(options);
  share_checkpoint(world, &run.checkpoint);
  return run;
}

std::string checkpoint_as_text(const SavedRun& run) {
  const TrainingState state = saved_state(run.checkpoint);
  std::string text = fmt::format("checkpoint: {}, step {}", run.checkpoint.path(), format_count(state.step));
  if (run.which == Which::newest) text += ", the newest";
  if (run.which == Which::best && run.config.checkpoint.best && state.best)
    text += fmt::format(", the best by {} ({})", run.config.checkpoint.best->monitor,
                        format_value(state.best->value));
  return text + "\n";
}

std::string in_units_of_targets(const RunConfig& config) {
  std::vector<std::string> names;
  bool has_names = true;
  for (size_t head = 0; head < config.heads.size(); ++head)
    if (TargetScale(config, head).is_scaled()) {
      const std::vector<std::string> columns = target_columns(config, head);
      has_names = has_names && !columns.empty();
      names.insert(names.end(), columns.begin(), columns.end());
    }
  has_names = has_names && !names.empty();
  return "in the units of " + (has_names ? list_some(names, 10) : "the data");
}

Json checkpoint_as_json(const SavedRun& run) {
  const TrainingState state = saved_state(run.checkpoint);
  return Json::object()
      .set("path", run.checkpoint.path())
      .set("step", state.step)
      .set("epoch", state.epoch)
      .set("chosen", !run.which                 ? "given"
                     : run.which == Which::best ? "best"
                                                : "newest");
}

}  // namespace dtrain
