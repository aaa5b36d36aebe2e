// dtrain help: the commands, or the options of one.
#include <memory>

#include "base/error.h"
#include "commands.h"
#include "config/diagnostics.h"
#include "console.h"

namespace dtrain {

namespace {

/// CLI11's own way to ask for help is an option of the command, which this is not.
std::string help_of(const CLI::App& app, const std::string& name) {
  return app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
}

void help(const CLI::App& app, const std::string& name) {
  if (name.empty()) return print_text(help_of(app, app.get_name()));
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return print_text(help_of(*command, app.get_name() + " " + name));
    names.push_back(command->get_name());
  }
  throw UserError("unknown command '" + name + "'" + suggestion_or_list(name, names));
}

}  // namespace

void add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "The commands, or the options of one");
  const auto name = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "The command to tell of");
  command->callback([&app, name] { help(app, *name); });
}

}  // namespace dtrain
