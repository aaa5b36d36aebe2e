// Commands and their options. CLI11 reads the command line; its header, which takes longer to compile than
// any command, is included in command_line.cpp alone.
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

/// An option or argument of a command, to say more of it: calls chain.
class Option {
 public:
  Option& required();
  /// The word that help has for the option's value.
  Option& type_name(const std::string& name);
  Option& description(const std::string& text);
  /// The value is a whole number of at least `least`.
  Option& at_least(int64_t least);
  Option& one_of(const std::vector<std::string>& values);
  /// Both in one command line are refused.
  Option& excludes(const Option& other);
  /// Without the other one it is refused.
  Option& needs(const Option& other);
  /// One value each time that the option is given; --set takes further ones (see CommandLine::run).
  Option& one_value_each();

 private:
  friend class Command;
  explicit Option(CLI::Option& option) : option_(&option) {}

  CLI::Option* option_;
};

/// One command. Its options are written to variables that have to live until it runs. Names are as CLI11
/// takes them: "--output,-o", or "PATH" for an argument.
class Command {
 public:
  Option add_flag(const std::string& names, bool& given, const std::string& help);
  /// Calls `set` with whether the flag stands there as such or, by a name with '!' before it ("--a,!--no-a"),
  /// negated.
  Option add_flag(const std::string& names, std::function<void(bool)> set, const std::string& help);
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  Option add_option(const std::string& names, std::optional<int64_t>& value, const std::string& help);
  Option add_option(const std::string& names, double& value, const std::string& help);
  /// An option that may be given several times.
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& help);
  /// An option that was added before.
  Option option(const std::string& name);
  /// Runs once the whole command line is read.
  void callback(std::function<void()> run);

 private:
  friend class CommandLine;
  explicit Command(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

/// An option as a shell's completion needs to know it.
struct OptionInfo {
  std::vector<std::string> names;  // "--output", "-o"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  // where only these are taken
};
struct CommandInfo {
  std::string name, description;
  std::vector<OptionInfo> options;  // but for arguments
  std::vector<std::string> values;  // of its argument, where only these are taken
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void set_version(std::function<std::string()> text, const std::string& help);
  Command add_command(const std::string& name, const std::string& description);
  /// The text of --help, of the program or of one command. Throws UserError for a command that does not
  /// exist.
  std::string help(const std::string& command = "") const;

  /// All commands with their options, as they were added.
  std::vector<CommandInfo> commands() const;

  /// Reads the command line and runs its command, whose exceptions pass through; --help and --version print
  /// their text. Arguments behind `--set KEY=VALUE` that are assignments, too, belong to it. Throws UserError
  /// for a line that is wrong: it says which command or option was perhaps meant, and where help is.
  void run(int argc, const char* const* argv);

 private:
  std::vector<std::string> command_names() const;
  void check_command(const std::string& name) const;
  std::string advice_for(const std::string& unknown_command) const;

  std::unique_ptr<CLI::App> app_;
};

}  // namespace dtrain
