// dtrain schema: what a configuration may hold, for editors and for people.
#include <memory>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/reference.h"
#include "commands.h"
#include "run/run_config_parser.h"

namespace dtrain {

void add_schema(CommandLine& line) {
  Command command =
      line.add_command("schema", "The JSON schema of configurations, for editors that complete and check");
  const auto output = std::make_shared<OutputOptions>();
  const auto markdown = std::make_shared<bool>(false);
  add_output_options(command, *output);
  command
      .add_flag("--markdown", *markdown,
                "The same as a page to read: every kind with its options, defaults and an example")
      .excludes(command.option("--json"));
  command.callback([output, markdown] {
    if (*markdown)
      print_text(reference_markdown(run_config_json_schema()));
    else if (output->json || !output->quiet)
      // Nearly half of the usual indentation's bytes would be blanks.
      print_text(run_config_json_schema().dump(1) + "\n");
  });
}

}  // namespace dtrain
