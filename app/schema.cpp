// dtrain schema: prints the configuration schema for editors, or as a reference page.
#include <memory>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/reference.h"
#include "commands.h"
#include "run/run_config_parser.h"

namespace dtrain {

void add_schema(CommandLine& line) {
  Command command = line.add_command(
      "schema", "Print the JSON schema of configurations, which editors use to complete and check them");
  const auto output = std::make_shared<OutputOptions>();
  const auto markdown = std::make_shared<bool>(false);
  add_output_options(command, *output);
  command
      .add_flag("--markdown", *markdown,
                "Print a reference page instead: all types with their options, defaults and examples")
      .excludes(command.option("--json"));
  command.callback([output, markdown] {
    if (*markdown)
      print_text(reference_markdown(run_config_json_schema()));
    else if (output->json || !output->quiet)
      // Indents by one space. With the usual indentation, nearly half of the bytes would be spaces.
      print_text(run_config_json_schema().dump(1) + "\n");
  });
}

}  // namespace dtrain
