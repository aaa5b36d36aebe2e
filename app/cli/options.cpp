#include "cli/options.h"

namespace dtrain {

void add_output_options(Command& command, OutputOptions& options) {
  command.add_flag("--json", options.json, "Give the results as one JSON document");
  command.add_flag("--quiet,-q", options.quiet,
                   "Print warnings and errors only (and the document that --json asks for)");
}

void add_best_option(Command& command, bool& best) {
  command.add_flag(
      "--best", best,
      "Of a run directory the best checkpoint, by the metric that the run's checkpoint.best names");
}

void add_set_option(Command& command, std::vector<std::string>& sets) {
  command
      .add_option("--set", sets,
                  "Replace keys of the configuration, as in train.epochs=5 seed=2; the values are YAML; "
                  "repeatable")
      .type_name("KEY=VALUE...")
      .one_value_each();
}

}  // namespace dtrain
