#include "config/patterns.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/name_list.h"
#include "base/pattern.h"

namespace dtrain {

bool Patterns::match(std::string_view name) const {
  return std::any_of(items.begin(), items.end(),
                     [&](const ConfigNode& item) { return matches(item.text(), name); });
}

void Patterns::check_each_matches(const std::vector<std::string>& names, const std::string& where,
                                  std::string_view what, Diagnostics& diagnostics) const {
  for (const ConfigNode& item : items) {
    const auto fits = [&](const std::string& name) { return matches(item.text(), name); };
    if (std::any_of(names.begin(), names.end(), fits)) continue;
    const auto is_within = [&](const std::string& name) { return name.starts_with(item.text() + "/"); };
    std::string advice = suggestion(item.text(), names);
    if (std::any_of(names.begin(), names.end(), is_within))
      advice = fmt::format("; did you mean '{}/*'?", item.text());
    else if (advice.empty() && !names.empty())
      advice = fmt::format("; the existing names are {}", list_some(names, 10));
    diagnostics.error(item,
                      fmt::format("{}: the pattern '{}' matches no {}{}", where, item.text(), what, advice));
  }
}

bool Codec<Patterns>::parse(const ConfigNode& node, const std::string& where, Patterns& out,
                            Diagnostics& diagnostics) {
  const auto is_pattern = [](const ConfigNode& item) { return item.is_scalar() && !item.text().empty(); };
  out.items.clear();
  if (is_pattern(node)) {
    out.items.push_back(node);
  } else if (node.is_sequence() && !node.items().empty()) {
    for (const ConfigNode& item : node.items()) {
      if (!is_pattern(item))
        return report_unexpected(item, where, "a name, or a pattern like 'head/*'", diagnostics);
      out.items.push_back(item);
    }
  } else {
    return report_unexpected(node, where, "a name, a pattern like 'head/*', or a list of these", diagnostics);
  }
  return true;
}

ConfigNode Codec<Patterns>::write(const Patterns& value) {
  if (value.items.size() == 1) return string_node(value.items[0].text());
  std::vector<std::string> texts;
  for (const ConfigNode& item : value.items) texts.push_back(item.text());
  return Codec<std::vector<std::string>>::write(texts);
}

Json Codec<Patterns>::schema() {
  return Json::object().set(
      "anyOf",
      Json::array().push(json_type("string")).push(json_type("array").set("items", json_type("string"))));
}

}  // namespace dtrain
