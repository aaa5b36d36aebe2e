#include "cli/options.h"

namespace dtrain {

void add_output_options(Command& command, OutputOptions& options) {
  command.add_flag("--json", options.json, "Print the results as one JSON document");
  command.add_flag("--quiet,-q", options.quiet, "Print only warnings and errors (and the --json document)");
}

void add_best_option(Command& command, bool& best) {
  command.add_flag(
      "--best", best,
      "For a run directory: use the best checkpoint according to the metric that checkpoint.best names");
}

void add_set_option(Command& command, std::vector<std::string>& sets) {
  command
      .add_option("--set", sets,
                  "Replace values of the configuration, e.g. --set train.epochs=5 seed=2. Values are written "
                  "as in YAML. The option may be repeated")
      .type_name("KEY=VALUE...")
      .one_value_each();
}

}  // namespace dtrain
