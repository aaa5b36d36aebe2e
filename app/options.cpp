#include "options.h"

#include <charconv>

#include <fmt/format.h>

namespace dtrain {

CLI::Validator whole_number(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        int64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stopped == end && value >= least) return "";
        return fmt::format("expected a whole number from {} up, found '{}'", least, text);
      },
      "");
}

void add_output_options(CLI::App& command, OutputOptions& options) {
  command.add_flag("--json", options.json, "Give the results as one JSON document");
  command.add_flag("--quiet,-q", options.quiet,
                   "Print warnings and errors only (and the document that --json asks for)");
}

void add_best_option(CLI::App& command, bool& best) {
  command.add_flag(
      "--best", best,
      "Of a run directory the best checkpoint, as the run's checkpoint.best says, not the newest");
}

void add_set_option(CLI::App& command, std::vector<std::string>& sets) {
  command
      .add_option("--set", sets,
                  "Replace a key of the configuration, as in train.epochs=5; the value is YAML; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace dtrain
