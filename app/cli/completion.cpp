// dtrain completion: prints shell completion scripts, which are generated from the definitions of the
// commands.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.h"
#include "commands.h"

namespace dtrain {

namespace {

/// Returns the text in single quotes, readable by every shell.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_names(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string all_options(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_script(const std::vector<CommandInfo>& commands) {
  std::string options, values;
  for (const CommandInfo& command : commands) {
    options += fmt::format("    {}) words='{}'; values='{}' ;;\n", command.name, all_options(command),
                           fmt::join(command.values, " "));
    for (const OptionInfo& option : command.options)
      if (!option.values.empty())
        values += fmt::format(
            "    {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
            command.name + "," + fmt::format("{}", fmt::join(option.names, "|" + command.name + ",")),
            fmt::join(option.values, " "));
  }
  return fmt::format(R"(# dtrain's commands and options for bash: source <(dtrain completion bash)
_dtrain() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local words='' values=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{0} --help --version' -- "$current"))
    return
  fi
  case $command,$previous in
{2}    *) ;;
  esac
  case $command in
{1}    help) values='{0}' ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $values && $COMP_CWORD == 2 ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  fi
}}
# Completes file names if nothing else matches.
complete -o bashdefault -o default -F _dtrain dtrain
)",
                     command_names(commands), options, values);
}

/// Escapes text for a specification of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += (c == '[' || c == ']' || c == ':' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return result;
}

std::string zsh_option(const OptionInfo& option) {
  std::string lines;
  for (const std::string& name : option.names) {
    std::string value;
    if (option.takes_value)
      value =
          option.values.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(option.values, " "));
    lines += fmt::format(" \\\n        {}",
                         shell_quoted(fmt::format("*{}[{}]{}", name, zsh_text(option.description), value)));
  }
  return lines;
}

std::string zsh_script(const std::vector<CommandInfo>& commands) {
  std::string list, cases;
  for (const CommandInfo& command : commands) {
    list += fmt::format("    {}\n", shell_quoted(command.name + ":" + command.description));
    std::string options;
    for (const OptionInfo& option : command.options) options += zsh_option(option);
    const std::string rest = command.name == "help" ? fmt::format(":command:({})", command_names(commands))
                             : command.values.empty()
                                 ? std::string(":file:_files")
                                 : fmt::format(":value:({})", fmt::join(command.values, " "));
    cases += fmt::format("    {})\n      _arguments{} \\\n        {} ;;\n", command.name, options,
                         shell_quoted("*" + rest));
  }
  return fmt::format(R"(#compdef dtrain
# dtrain's commands and options for zsh: dtrain completion zsh > a folder of $fpath/_dtrain
_dtrain() {{
  local -a commands
  commands=(
{0}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{1}  esac
}}
compdef _dtrain dtrain
)",
                     list, cases);
}

std::string fish_script(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# dtrain's commands and options for fish: dtrain completion fish > "
      "~/.config/fish/completions/dtrain.fish\n";
  for (const CommandInfo& command : commands)
    text += fmt::format("complete -c dtrain -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        shell_quoted(command.description));
  for (const CommandInfo& command : commands) {
    const std::string here =
        fmt::format("complete -c dtrain -n '__fish_seen_subcommand_from {}'", command.name);
    if (!command.values.empty()) text += fmt::format("{} -f -a '{}'\n", here, fmt::join(command.values, " "));
    if (command.name == "help") text += fmt::format("{} -f -a '{}'\n", here, command_names(commands));
    for (const OptionInfo& option : command.options) {
      std::string line = here;
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.takes_value) line += " -r";
      if (!option.values.empty()) line += fmt::format(" -f -a '{}'", fmt::join(option.values, " "));
      text += fmt::format("{} -d {}\n", line, shell_quoted(option.description));
    }
  }
  return text;
}

}  // namespace

void add_completion(CommandLine& line) {
  Command command = line.add_command(
      "completion",
      "Print a completion script for a shell, which then completes dtrain's commands and options");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "The shell for which the script is written")
      .required()
      .one_of({"bash", "zsh", "fish"});
  command.callback([&line, shell] {
    const std::vector<CommandInfo> commands = line.commands();
    print_text(*shell == "bash"  ? bash_script(commands)
               : *shell == "zsh" ? zsh_script(commands)
                                 : fish_script(commands));
  });
}

}  // namespace dtrain
