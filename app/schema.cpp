// dtrain schema: the configuration's JSON schema, for editors.
#include <memory>

#include "commands.h"
#include "console.h"
#include "options.h"
#include "train/run_config_parser.h"

namespace dtrain {

void add_schema(CommandLine& line) {
  Command command =
      line.add_command("schema", "The JSON schema of configurations, for editors that complete and check");
  const auto output = std::make_shared<OutputOptions>();
  add_output_options(command, *output);
  command.callback([output] {
    if (output->json || !output->quiet) print_json(run_config_json_schema());
  });
}

}  // namespace dtrain
