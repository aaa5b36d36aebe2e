// Commands and their options. CLI11 parses the command line; its header takes longer to compile than any
// command, so only command_line.cpp includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtrain {

/// An option or argument of a command. Setters return *this for chaining.
class Option {
 public:
  Option& required();
  /// Sets the placeholder of the option's value in the help text.
  Option& type_name(const std::string& name);
  Option& description(const std::string& text);
  /// Requires a whole number of at least `least`.
  Option& at_least(int64_t least);
  Option& one_of(const std::vector<std::string>& values);
  /// Requires a value for which `fits` returns true. `expected` describes the accepted values in the error
  /// message.
  Option& matches(const std::string& expected, std::function<bool(const std::string&)> fits);
  /// Rejects a command line with both this option and the other one.
  Option& excludes(const Option& other);
  /// Rejects a command line with this option but without the other one.
  Option& needs(const Option& other);
  /// Accepts one value per occurrence of the option. (--set accepts several values, see CommandLine::run().)
  Option& one_value_each();

 private:
  friend class Command;
  explicit Option(CLI::Option& option) : option_(&option) {}

  CLI::Option* option_;
};

/// One command. The values of its options are written to variables that must live until the command has run.
/// Names have CLI11's format: "--output,-o" for an option, or "PATH" for an argument.
class Command {
 public:
  Option add_flag(const std::string& names, bool& given, const std::string& help);
  /// Calls `set` with true if the flag is given, or false if it is given by a negating name ("--a,!--no-a").
  Option add_flag(const std::string& names, std::function<void(bool)> set, const std::string& help);
  /// Adds an option or argument whose value must not be empty.
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  Option add_option(const std::string& names, std::optional<int64_t>& value, const std::string& help);
  Option add_option(const std::string& names, double& value, const std::string& help);
  /// Adds an option that may be repeated.
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& help);
  /// Returns an option added earlier.
  Option option(const std::string& name);
  /// Sets the function that runs the command after the whole command line is parsed.
  void callback(std::function<void()> run);

 private:
  friend class CommandLine;
  explicit Command(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

/// The description of an option, from which shell completion scripts are generated.
struct OptionInfo {
  std::vector<std::string> names;  // "--output", "-o"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  // the accepted values; empty if any value is accepted
};
struct CommandInfo {
  std::string name, description;
  std::vector<OptionInfo> options;  // without positional arguments
  // Accepted values of the command's argument; empty if any value is accepted.
  std::vector<std::string> values;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void set_version(std::function<std::string()> text, const std::string& help);
  Command add_command(const std::string& name, const std::string& description);
  /// Returns the --help text of the program or of one command. Throws UserError if the command does not
  /// exist.
  std::string help(const std::string& command = "") const;

  /// Returns all commands with their options, in the order in which they were added.
  std::vector<CommandInfo> commands() const;

  /// Parses the command line and runs its command. --help and --version only print their text. Further
  /// assignments after `--set KEY=VALUE` are also values of --set. Throws UserError for an invalid command
  /// line; the message suggests a command or an option and mentions --help. Does not catch the exceptions of
  /// the command.
  void run(int argc, const char* const* argv);

 private:
  std::vector<std::string> command_names() const;
  void check_command(const std::string& name) const;
  std::string advice_for(const std::string& unknown_command) const;

  std::unique_ptr<CLI::App> app_;
};

}  // namespace dtrain
