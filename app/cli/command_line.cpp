#include "cli/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/diagnostics.h"

namespace dtrain {

namespace {

constexpr const char* kSet = "--set";

/// Converts CLI11's error message about the values of an option to the wording of dtrain. CLI11's message
/// begins with the name of the option.
std::string explain_values(const std::string& message) {
  constexpr std::string_view kTwice = ": At Most 1 required but received ",
                             kConversion = "Could not convert: ";
  const std::string option = message.substr(0, message.find(": "));
  if (message.ends_with(" missing")) return fmt::format("{}: expected a value, but none was given", option);
  if (const size_t at = message.find(kTwice); at != std::string::npos)
    return fmt::format("{}: this option may be given only once, but was given {} times", option,
                       message.substr(at + kTwice.size()));
  if (message.starts_with(kConversion))
    return fmt::format("{}: this option is a flag; give it without a value, or with the value true or false",
                       message.substr(kConversion.size()));
  return message;
}

/// Returns the error message for `argument`, which is neither an option nor an expected argument of the
/// command.
std::string explain_unknown(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with('-')) {
    const CLI::Option* const set = command.get_option_no_throw(kSet);
    const bool may_be_set = set && set->count() > 0;
    return fmt::format("unexpected argument '{}'{}", argument,
                       may_be_set ? "; after --set, expected KEY=VALUE, such as train.epochs=5" : "");
  }
  // CLI11 splits `-q=maybe` into the flag `-q` and the unknown argument `-=maybe`.
  if (argument.starts_with("-="))
    return fmt::format("a flag of one letter has no value; remove '{}'", argument.substr(1));
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  const std::string name = argument.substr(0, argument.find('='));
  if (command.get_option_no_throw(name))
    return fmt::format("the option '{}' must follow the command: dtrain {} {}", name, command.get_name(),
                       argument);
  return fmt::format("unknown option '{}'{}", name, suggestion(name, options));
}

/// Returns the parser's error message with a suggested option and a pointer to --help.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  std::string message = explain_values(error.what());
  const std::vector<std::string> unknown = app.remaining(true);
  // CLI11 reports a missing argument even if there are also unknown arguments.
  const bool lacks_argument = error.get_name() == "RequiredError";
  const bool lacks_command = lacks_argument && chosen.empty();
  if (lacks_command) message = "expected a command";
  if (!unknown.empty() && (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                           lacks_command || (lacks_argument && unknown.front().starts_with('-'))))
    message = explain_unknown(command, unknown.front());
  const std::string full = chosen.empty() ? app.get_name() : app.get_name() + " " + command.get_name();
  return fmt::format("{} (see {} --help)", message, full);
}

/// Returns true for KEY=VALUE with a key such as model.layers[0].dense.units.
bool is_assignment(std::string_view text) {
  const size_t end = text.find('=');
  if (end == std::string_view::npos || end == 0 || text.front() == '-') return false;
  const std::string_view key = text.substr(0, end);
  return std::all_of(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_.-[]").find(c) != std::string_view::npos;
  });
}

/// Returns the arguments with a --set inserted before each assignment that follows the value of a --set:
/// `--set a=1 b=2` becomes `--set a=1 --set b=2`.
std::vector<const char*> with_every_set(int argc, const char* const* argv) {
  std::vector<const char*> all;
  bool behind_set = false;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (behind_set && is_assignment(argument)) all.push_back(kSet);
    all.push_back(argv[i]);
    if (argument == kSet && i + 1 < argc) all.push_back(argv[++i]);
    behind_set =
        argument == kSet || argument.starts_with("--set=") || (behind_set && is_assignment(argument));
  }
  return all;
}

/// Returns the values of an option that was restricted by one_of(). CLI11 stores these values in the name of
/// the option's type, such as "TEXT:{bash,zsh}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos) return values;
  for (size_t at = open + 1; at < close;) {
    const size_t comma = std::min(type.find(',', at), close);
    values.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::description(const std::string& text) {
  option_->description(text);
  return *this;
}

Option& Option::at_least(int64_t least) {
  // Writes the number back without leading zeros, because CLI11 parses a number with a leading zero as octal.
  option_->transform(CLI::Validator(
      [least](std::string& text) -> std::string {
        int64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::result_out_of_range && stopped == end)
          return fmt::format("expected a whole number from {} to {}, found '{}'", least, INT64_MAX, text);
        if (error != std::errc() || stopped != end || value < least)
          return fmt::format("expected a whole number of at least {}, found '{}'", least, text);
        text = fmt::format("{}", value);
        return "";
      },
      ""));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
  const CLI::Validator member = CLI::IsMember(values);
  // This is a transform, because CLI11 runs transforms before it checks for an empty value.
  option_->transform(CLI::Validator(
      [member, values](std::string& text) -> std::string {
        if (member(text).empty()) return "";
        return fmt::format("expected one of {}, found '{}'", fmt::join(values, ", "), text);
      },
      member.get_description()));
  return *this;
}

Option& Option::matches(const std::string& expected, std::function<bool(const std::string&)> fits) {
  // This is a transform, because CLI11 runs transforms before it checks for an empty value.
  option_->transform(CLI::Validator(
      [expected, fits = std::move(fits)](std::string& text) -> std::string {
        if (fits(text)) return "";
        return fmt::format("expected {}, found '{}'", expected, text);
      },
      ""));
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option Command::add_flag(const std::string& names, bool& given, const std::string& help) {
  return Option(*app_->add_flag(names, given, help));
}

Option Command::add_flag(const std::string& names, std::function<void(bool)> set, const std::string& help) {
  return Option(*app_->add_flag_function(
      names, [set = std::move(set)](int64_t count) { set(count > 0); }, help));
}

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  CLI::Option* option = app_->add_option(names, value, help);
  option->check(CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "expected a value, found an empty text" : "";
      },
      ""));
  return Option(*option);
}

Option Command::add_option(const std::string& names, std::optional<int64_t>& value, const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, double& value, const std::string& help) {
  CLI::Option* option = app_->add_option(names, value, help);
  option->check(CLI::Validator(
      [](std::string& text) -> std::string {
        double number = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc() && stopped == end) return "";
        return fmt::format("expected a number, found '{}'", text);
      },
      ""));
  return Option(*option);
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help) {
  return Option(*app_->add_option(names, values, help));
}

Option Command::option(const std::string& name) {
  return Option(*app_->get_option(name));
}

void Command::callback(std::function<void()> run) {
  app_->callback(std::move(run));
}

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

void CommandLine::set_version(std::function<std::string()> text, const std::string& help) {
  app_->set_version_flag("--version", std::move(text), help);
}

Command CommandLine::add_command(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

std::vector<std::string> CommandLine::command_names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<CommandInfo> CommandLine::commands() const {
  std::vector<CommandInfo> commands;
  for (const CLI::App* command : app_->get_subcommands({})) {
    CommandInfo info{command->get_name(), command->get_description(), {}, {}};
    for (const CLI::Option* option : command->get_options()) {
      OptionInfo of{{}, option->get_description(), option->get_items_expected_max() > 0, values_of(*option)};
      if (option->get_positional() && !option->nonpositional()) {
        if (!of.values.empty()) info.values = of.values;
        continue;
      }
      for (const std::string& name : option->get_lnames()) of.names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) of.names.push_back("-" + name);
      info.options.push_back(std::move(of));
    }
    commands.push_back(std::move(info));
  }
  return commands;
}

/// Throws UserError if the command is unknown. run() calls this function before the parser, because the
/// parser would report the arguments of an unknown command one by one.
void CommandLine::check_command(const std::string& name) const {
  const std::vector<std::string> names = command_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("unknown command '{}'{}", name, advice_for(name)));
}

std::string CommandLine::advice_for(const std::string& unknown_command) const {
  if (unknown_command.ends_with(".yaml") || unknown_command.ends_with(".yml"))
    return fmt::format("; did you mean '{} fit {}'?", app_->get_name(), unknown_command);
  if (unknown_command == "compare")
    return fmt::format("; '{0} report RUN...' compares runs, '{0} runs' lists them", app_->get_name());
  return suggestion_or_list(unknown_command, command_names());
}

std::string CommandLine::help(const std::string& command) const {
  if (!command.empty()) check_command(command);
  // CLI11's own function for help texts always describes the command that is running. The running command may
  // be `dtrain help`, so the help text of the requested command is made here.
  const CLI::App* app = command.empty() ? app_.get() : app_->get_subcommand(command);
  const std::string name = command.empty() ? app_->get_name() : app_->get_name() + " " + command;
  return app->get_formatter()->make_help(app, name, CLI::AppFormatMode::Normal);
}

void CommandLine::run(int argc, const char* const* argv) {
  if (argc < 2) {  // exit with an error, so that scripts notice the missing command
    std::fputs(app_->help().c_str(), stderr);
    throw UserError(fmt::format("expected a command (see {} help)", app_->get_name()));
  }
  if (argv[1][0] != '-') check_command(argv[1]);
  const std::vector<const char*> arguments = with_every_set(argc, argv);
  try {
    app_->parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UserError(explain(*app_, error));
    app_->exit(error);  // prints the text of --help or --version
  }
}

}  // namespace dtrain
