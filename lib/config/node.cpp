#include "config/node.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

struct ConfigNode::Data {
  // The alternatives are in the order of Type.
  using Value = std::variant<std::monostate, std::string, std::vector<ConfigNode>, std::vector<Entry>>;
  template <Type type>
  using Alternative = std::variant_alternative_t<static_cast<size_t>(type), Value>;
  static_assert(std::is_same_v<Alternative<Type::null>, std::monostate> &&
                std::is_same_v<Alternative<Type::scalar>, std::string> &&
                std::is_same_v<Alternative<Type::sequence>, std::vector<ConfigNode>> &&
                std::is_same_v<Alternative<Type::mapping>, std::vector<Entry>>);

  Value value = {};
  Mark mark = {};
  bool quoted = false;
  bool inherited = false;
  bool unreadable = false;

  /// Returns the value, or an empty object if the value has another type.
  template <class T>
  const T& as() const {
    static const T kEmpty;
    const T* const found = std::get_if<T>(&value);
    return found ? *found : kEmpty;
  }
  static ConfigNode make(Data data) { return ConfigNode(std::make_shared<const Data>(std::move(data))); }
};

namespace {
constexpr size_t kShown = 60;  // maximum length of a value in a message, in characters
}

ConfigNode::ConfigNode() {
  static const auto kNull = std::make_shared<const Data>();
  data_ = kNull;
}

ConfigNode ConfigNode::null(Mark mark) {
  return Data::make({.mark = std::move(mark)});
}

ConfigNode ConfigNode::unreadable(Mark mark) {
  return Data::make({.value = std::vector<Entry>(), .mark = std::move(mark), .unreadable = true});
}

ConfigNode ConfigNode::scalar(std::string text, bool quoted, Mark mark) {
  return Data::make({.value = std::move(text), .mark = std::move(mark), .quoted = quoted});
}

ConfigNode ConfigNode::sequence(std::vector<ConfigNode> items, Mark mark) {
  return Data::make({.value = std::move(items), .mark = std::move(mark)});
}

ConfigNode ConfigNode::mapping(std::vector<Entry> entries, Mark mark) {
  return Data::make({.value = std::move(entries), .mark = std::move(mark)});
}

ConfigNode::Entry ConfigNode::entry(std::string_view key, ConfigNode value) {
  return {scalar(std::string(key)), std::move(value)};
}

ConfigNode::Type ConfigNode::type() const {
  return static_cast<Type>(data_->value.index());
}

const Mark& ConfigNode::mark() const {
  return data_->mark;
}

const std::string& ConfigNode::text() const {
  assert(is_scalar());
  return data_->as<std::string>();
}

bool ConfigNode::quoted() const {
  return data_->quoted;
}

bool ConfigNode::is_unreadable() const {
  return data_->unreadable;
}

bool ConfigNode::inherited() const {
  return data_->inherited;
}

ConfigNode ConfigNode::as_inherited() const {
  Data data = *data_;
  data.inherited = true;
  return Data::make(std::move(data));
}

const std::vector<ConfigNode>& ConfigNode::items() const {
  assert(is_sequence());
  return data_->as<std::vector<ConfigNode>>();
}

const std::vector<ConfigNode::Entry>& ConfigNode::entries() const {
  assert(is_mapping());
  return data_->as<std::vector<Entry>>();
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : data_->as<std::vector<Entry>>())
    if (entry.first.text() == key) return &entry.second;
  return nullptr;
}

ConfigNode ConfigNode::without(std::span<const std::string_view> keys) const {
  if (!is_mapping()) return *this;
  std::vector<Entry> kept;
  for (const Entry& entry : entries())
    if (std::find(keys.begin(), keys.end(), entry.first.text()) == keys.end()) kept.push_back(entry);
  return mapping(std::move(kept), mark());
}

ConfigNode ConfigNode::with(std::string_view key, ConfigNode value) const {
  Entry added = entry(key, std::move(value));
  std::vector<Entry> all = data_->as<std::vector<Entry>>();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Entry& e) { return e.first.text() == key; });
  if (found == all.end())
    all.push_back(std::move(added));
  else
    found->second = std::move(added.second);
  return mapping(std::move(all), mark());
}

ConfigNode ConfigNode::with_scalars(const std::function<ConfigNode(const ConfigNode&)>& change) const {
  if (is_scalar()) return change(*this);
  bool changed = false;
  const auto visit = [&](const ConfigNode& child) {
    ConfigNode now = child.with_scalars(change);
    changed = changed || !now.same_as(child);
    return now;
  };
  std::vector<ConfigNode> new_items;
  std::vector<Entry> new_entries;
  for (const ConfigNode& item : data_->as<std::vector<ConfigNode>>()) new_items.push_back(visit(item));
  for (const auto& [key, value] : data_->as<std::vector<Entry>>())
    new_entries.emplace_back(key, visit(value));
  if (!changed) return *this;
  return is_sequence() ? sequence(std::move(new_items), mark()) : mapping(std::move(new_entries), mark());
}

Mark place_in(const ConfigNode& node, std::initializer_list<std::string_view> path) {
  const ConfigNode* at = &node;
  for (const std::string_view key : path) {
    const ConfigNode* next = at->find(key);
    if (!next) break;
    at = next;
  }
  return at->mark();
}

namespace {

/// Describes a list in a message. A short list of scalars is shown with its values: "the list [a, b]".
std::string describe_list(const std::vector<ConfigNode>& items) {
  if (items.empty()) return "an empty list";
  std::string text;
  for (const ConfigNode& item : items) {
    if (!item.is_scalar()) return "a list";
    text += (text.empty() ? "" : ", ") + item.text();
    if (text.size() > kShown) return "a list";
  }
  return fmt::format("the list [{}]", text);
}

}  // namespace

std::string ConfigNode::describe() const {
  switch (type()) {
    case Type::null:
      return "nothing";
    case Type::sequence:
      return describe_list(items());
    case Type::mapping:
      return entries().empty() ? "an empty mapping" : "a mapping";
    case Type::scalar:
      break;
  }
  return fmt::format("{}'{}'", quoted() ? "the string " : "", shortened(text(), kShown));
}

}  // namespace dtrain
