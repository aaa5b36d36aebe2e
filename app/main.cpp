// The command line: which subcommand runs, and what its exceptions mean to whoever started it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "commands.h"
#include "config/diagnostics.h"
#include "console.h"
#include "invocation.h"
#include "last_resort.h"
#include "signals.h"
#include "train/trainer.h"
#include "version.h"

namespace dtrain {

namespace {

// Exit codes; 128 + the signal's number where one ended the run.
constexpr int kDone = 0, kFailed = 1, kWrong = 2;

/// A subcommand that does not exist, said before the parser gets to complain of its arguments one by one.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) == names.end())
    throw UserError(fmt::format("unknown command '{}'{}", argv[1], suggestion_or_list(argv[1], names)));
}

/// The parser's complaint, with the option that was perhaps meant, and where help is.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  std::string message = error.what();
  const std::vector<std::string> unknown = app.remaining(true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !unknown.empty()) {
    std::vector<std::string> options;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::string& first = unknown.front();
    const std::string name = first.substr(0, first.find('='));
    message = first.starts_with('-') ? fmt::format("unknown option '{}'{}", name, suggestion(name, options))
                                     : fmt::format("unexpected argument '{}'", first);
  }
  const std::string full = chosen.empty() ? "dtrain" : "dtrain " + command.get_name();
  return fmt::format("{} (see {} --help)", message, full);
}

int run(int argc, char** argv) {
  CLI::App app("Trains neural networks as YAML files describe them.", "dtrain");
  app.set_version_flag("--version", version_text, "What this program is, and what it was built with");
  app.require_subcommand(1);
  for (const auto add : {add_fit, add_resume, add_evaluate, add_predict, add_check, add_summary, add_inspect,
                         add_gpus, add_schema, add_help})
    add(app);
  check_command(app, argc, argv);
  if (argc < 2) {  // nothing was done, as whoever forgot the command in a script should know
    std::fputs(app.help().c_str(), stderr);
    throw UserError("expected a command (see dtrain help)");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    print_error(explain(app, error));
    return kWrong;
  }
  return kDone;
}

}  // namespace

}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  install_last_resort();
  ignore_write_signals();
  remember_command(argc, argv);
  try {
    return run(argc, argv);
  } catch (const Interrupted& interruption) {
    print_note(interruption.what());
    return 128 + interruption.signal();
  } catch (const UserError& error) {
    print_error(error.what());
    return kWrong;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kFailed;
  } catch (const std::length_error&) {
    print_error("out of memory: more was asked for than any machine has");
    return kFailed;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return kFailed;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kFailed;
  }
}
