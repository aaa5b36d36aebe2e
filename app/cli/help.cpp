// dtrain help: shows the commands, or the options of one command.
#include <memory>

#include "cli/console.h"
#include "commands.h"

namespace dtrain {

void add_help(CommandLine& line) {
  Command command = line.add_command("help", "Show the commands, or the options of one command");
  const auto name = std::make_shared<std::string>();
  command.add_option("COMMAND", *name, "The command to describe");
  command.callback([&line, name] { print_text(line.help(*name)); });
}

}  // namespace dtrain
