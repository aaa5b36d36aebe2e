#include "config/load/environment.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "config/yaml/scalar.h"
#include "config/yaml/yaml.h"

namespace dtrain {

namespace {

bool is_variable_name(std::string_view name) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

/// Returns the value of a variable. `inside` is the text between ${ and }. In `${NAME:-default}`, the default
/// also applies if the variable is empty, as in a shell.
std::string value_of(std::string_view inside, const ConfigNode& node, Diagnostics& diagnostics) {
  const size_t separator = inside.find(":-");
  const std::string name(inside.substr(0, separator));
  if (!is_variable_name(name)) {
    diagnostics.error(node, fmt::format("expected ${{NAME}} or ${{NAME:-default}}, found '${{{}}}'", inside));
    return {};
  }
  const char* value = std::getenv(name.c_str());
  if (separator != std::string_view::npos)
    return value && *value ? value : std::string(inside.substr(separator + 2));
  if (!value)
    diagnostics.error(
        node,
        fmt::format("the environment variable {0} is not set; write ${{{0}:-default}} to give a default",
                    name));
  return value ? value : "";
}

/// A scalar's text with its variables replaced.
struct Expanded {
  std::string text;
  bool has_variables = false;
};

Expanded expand_text(const ConfigNode& node, Diagnostics& diagnostics) {
  const std::string& text = node.text();
  std::string out;
  bool has_variables = false;
  for (size_t at = 0; at < text.size();) {
    const bool dollar = text[at] == '$' && at + 1 < text.size();
    if (dollar && text[at + 1] == '$') {
      out += '$';
      at += 2;
    } else if (dollar && text[at + 1] == '{') {
      const size_t end = text.find('}', at);
      if (end == std::string::npos) {
        diagnostics.error(node, "expected a '}' after '${', found none");
        return {};
      }
      has_variables = true;
      out += value_of(std::string_view(text).substr(at + 2, end - at - 2), node, diagnostics);
      at = end + 1;
    } else {
      out += text[at++];
    }
  }
  return {std::move(out), has_variables};
}

/// Parses the text as YAML if it is a quoted string, or a list or mapping in brackets. Any other text becomes
/// a plain scalar without parsing, because the characters '#' and '*', which may occur in paths, could have a
/// special meaning in YAML.
ConfigNode read_value(std::string text, const Mark& mark) {
  const size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  text = first == std::string::npos ? "" : text.substr(first, last - first + 1);
  if (reads_as_null(text)) return ConfigNode::null(mark);
  if (std::string_view("[{\"'").find(text.front()) != std::string_view::npos) {
    Diagnostics mistakes;
    ConfigNode value = parse_yaml_at(text, mark, mistakes);
    if (!mistakes.has_errors()) return value;
  }
  return ConfigNode::scalar(std::move(text), false, mark);
}

}  // namespace

ConfigNode expand_environment(const ConfigNode& node, Diagnostics& diagnostics) {
  return node.with_scalars([&](const ConfigNode& scalar) {
    if (scalar.text().find('$') == std::string::npos) return scalar;
    Expanded now = expand_text(scalar, diagnostics);
    if (now.has_variables) return read_value(std::move(now.text), scalar.mark());
    return ConfigNode::scalar(std::move(now.text), scalar.quoted(), scalar.mark());
  });
}

ConfigNode escape_environment(const ConfigNode& node) {
  return node.with_scalars([](const ConfigNode& scalar) {
    const std::string& text = scalar.text();
    if (text.find("$$") == std::string::npos && text.find("${") == std::string::npos) return scalar;
    std::string escaped;
    for (size_t at = 0; at < text.size(); ++at) {
      const char next = at + 1 < text.size() ? text[at + 1] : ' ';
      escaped += text[at] == '$' && (next == '$' || next == '{') ? "$$" : std::string(1, text[at]);
    }
    return ConfigNode::scalar(std::move(escaped), scalar.quoted(), scalar.mark());
  });
}

}  // namespace dtrain
