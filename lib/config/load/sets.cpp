// Defines apply_sets(), which applies --set assignments.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "config/load/environment.h"
#include "config/load/files.h"
#include "config/load/load.h"
#include "config/yaml/scalar.h"
#include "config/yaml/yaml.h"

namespace dtrain {

namespace {

/// Splits "a.b.0" or "a.b[0]" into keys. If the syntax is wrong, at least one of the returned keys is empty.
std::vector<std::string> keys_of(std::string_view text) {
  std::vector<std::string> keys(1);
  bool in_brackets = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool ends_here =
        c == ']' && in_brackets && (at + 1 == text.size() || text[at + 1] == '.' || text[at + 1] == '[');
    if (ends_here) {
      in_brackets = false;
      if (at + 1 < text.size() && text[at + 1] == '.') ++at, keys.emplace_back();
    } else if ((c == '.' || c == '[') && !in_brackets) {
      in_brackets = c == '[';
      keys.emplace_back();
    } else {
      keys.back() += c;
    }
  }
  if (in_brackets) keys.emplace_back();
  return keys;
}

/// Applies one assignment. Because nodes are immutable, it copies each collection on the path to the assigned
/// value, and puts the new value into the copies.
class Assignment {
 public:
  Assignment(const Mark& mark, std::vector<std::string> keys, ConfigNode value, Diagnostics& diagnostics)
      : mark_(mark), keys_(std::move(keys)), value_(std::move(value)), diagnostics_(diagnostics) {}

  ConfigNode apply(const ConfigNode& node) { return descend(node, 0); }

 private:
  ConfigNode descend(const ConfigNode& node, size_t level) {
    if (level == keys_.size()) return value_;
    if (node.is_unreadable()) return node;
    if (node.is_sequence()) return into_sequence(node, level);
    if (node.is_mapping()) return into_mapping(node, level);
    if (node.is_null()) return into_mapping(ConfigNode::mapping({}, mark_), level);
    // If a type is written as its name only, such as `adam`, and one of its options is set, the name becomes
    // a mapping: `adam: {}`.
    if (node.text() == keys_[level] && level + 1 < keys_.size())
      return into_mapping(ConfigNode::mapping({{node, ConfigNode()}}, node.mark()), level);
    fail(fmt::format("'{}' is {}, not a mapping or a list", path(level), node.describe()));
    return node;
  }

  ConfigNode into_sequence(const ConfigNode& node, size_t level) {
    std::vector<ConfigNode> items = node.items();
    size_t index = 0;
    if (parse_number(keys_[level], index) != std::errc() || index >= items.size()) {
      const std::string what =
          items.empty()
              ? fmt::format("an empty list, so it has no item '{}'; set the whole list", keys_[level])
              : fmt::format("a list of length {}; expected an index from 0 to {}, found '{}'", items.size(),
                            items.size() - 1, keys_[level]);
      fail(fmt::format("'{}' is {}", path(level), what));
      return node;
    }
    items[index] = descend(items[index], level + 1);
    return ConfigNode::sequence(std::move(items), node.mark());
  }

  ConfigNode into_mapping(const ConfigNode& node, size_t level) {
    std::vector<ConfigNode::Entry> entries = node.entries();
    for (auto& [key, value] : entries)
      if (key.text() == keys_[level]) {
        value = descend(value, level + 1);
        return ConfigNode::mapping(std::move(entries), node.mark());
      }
    // Accepts new keys, because the schema checks them later: `checkpoint.keep=2` works even if the file
    // contains nothing under `checkpoint`.
    // Marks the existing keys as inherited, so that a new type, such as `sgd`, replaces an existing `adam`.
    for (auto& [key, value] : entries) key = key.as_inherited();
    entries.emplace_back(ConfigNode::scalar(keys_[level], false, mark_),
                         descend(ConfigNode::null(mark_), level + 1));
    return ConfigNode::mapping(std::move(entries), node.mark());
  }

  std::string path(size_t levels) const {
    std::string text;
    for (size_t i = 0; i < levels; ++i) text += (i ? "." : "") + keys_[i];
    return text;
  }

  void fail(std::string message) { diagnostics_.error(mark_, std::move(message)); }

  Mark mark_;
  std::vector<std::string> keys_;
  ConfigNode value_;
  Diagnostics& diagnostics_;
};

/// Parses the value after the equals sign. An empty value is null.
std::optional<ConfigNode> parse_value(std::string_view text, bool may_be_path, const Mark& mark,
                                      Diagnostics& diagnostics) {
  if (text.find_first_not_of(' ') == std::string_view::npos) return ConfigNode::null(mark);
  const size_t before = diagnostics.count();
  ConfigNode value = expand_environment(parse_yaml_at(text, mark, diagnostics), diagnostics);
  if (may_be_path) value = include_file(value, diagnostics);
  if (diagnostics.count() != before) return std::nullopt;
  return value;
}

}  // namespace

ConfigNode apply_sets(ConfigNode config, const std::vector<std::string>& sets, Diagnostics& diagnostics) {
  constexpr size_t kMaxKeys = 100;
  for (const std::string& set : sets) {
    const Mark mark{std::make_shared<const std::string>("--set " + set), 0, 0};
    const size_t equals = set.find('=');
    std::vector<std::string> keys = keys_of(std::string_view(set).substr(0, equals));
    const bool empty_key = std::find(keys.begin(), keys.end(), "") != keys.end();
    if (equals == std::string::npos || empty_key || keys.size() > kMaxKeys) {
      diagnostics.error(mark, "expected KEY=VALUE, such as train.epochs=5");
      continue;
    }
    const bool may_be_path = keys.size() == 1 && may_be_file(keys.front());
    if (auto value = parse_value(std::string_view(set).substr(equals + 1), may_be_path, mark, diagnostics))
      config = Assignment(mark, std::move(keys), *std::move(value), diagnostics).apply(config);
  }
  return config;
}

}  // namespace dtrain
