// A configuration as a tree of values with source locations.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

/// A source location, for messages. Lines and columns (in bytes) are counted from 1. They are 0 if the value
/// does not come from a file.
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  /// Formats the location as "configs/a.yaml:14:7". Returns only the name for sources without line numbers,
  /// such as "--set".
  std::string str() const;
};

/// An immutable YAML value: null, scalar, sequence or mapping. Cheap to copy (copies share data). Never
/// cyclic; aliases are already resolved.
class ConfigNode {
 public:
  enum class Type { null, scalar, sequence, mapping };
  using Entry = std::pair<ConfigNode, ConfigNode>;  // key (always a scalar), value

  ConfigNode();                       // null, without a mark
  static ConfigNode null(Mark mark);  ///< written as an empty value, ~ or null
  static ConfigNode scalar(std::string text, bool quoted = false, Mark mark = {});
  static ConfigNode sequence(std::vector<ConfigNode> items, Mark mark = {});
  static ConfigNode mapping(std::vector<Entry> entries, Mark mark = {});
  /// Returns an empty mapping that represents a file that could not be read. Its content is unknown, so it
  /// must not be checked.
  static ConfigNode unreadable(Mark mark);
  /// Returns a mapping entry whose key is plain text without a mark.
  static Entry entry(std::string_view key, ConfigNode value);

  Type type() const;
  bool is_null() const { return type() == Type::null; }
  bool is_scalar() const { return type() == Type::scalar; }
  bool is_sequence() const { return type() == Type::sequence; }
  bool is_mapping() const { return type() == Type::mapping; }
  bool is_unreadable() const;
  const Mark& mark() const;

  const std::string& text() const;  ///< text of a scalar; other nodes have no text
  bool quoted() const;  ///< whether a scalar was written in quotes; a quoted scalar is always a string
  /// For a key: returns whether the key is inherited. Keys are inherited if they come only from the
  /// configuration's base (merge.h), or if they existed before a --set added another key to the same mapping.
  bool inherited() const;
  ConfigNode as_inherited() const;  ///< returns a copy of this scalar key, marked as inherited
  const std::vector<ConfigNode>& items() const;
  const std::vector<Entry>& entries() const;

  /// Returns the value under `key`, or nullptr if this is not a mapping or lacks the key.
  const ConfigNode* find(std::string_view key) const;
  /// Returns this mapping without the given keys. Returns null if this is null.
  ConfigNode without(std::span<const std::string_view> keys) const;
  /// Returns this mapping with `key` set to `value`. A new key is added at the end.
  ConfigNode with(std::string_view key, ConfigNode value) const;

  /// Returns this tree with every scalar `s` replaced by `change(s)`. Keys are not changed.
  ConfigNode with_scalars(const std::function<ConfigNode(const ConfigNode&)>& change) const;

  /// Returns true if both objects share the same tree in memory. Does not compare the contents.
  bool same_as(const ConfigNode& other) const { return data_ == other.data_; }

  /// Returns "a mapping", "a list", "nothing" or "'abc'", for messages like "expected X, found Y".
  std::string describe() const;
  /// Returns this value as YAML. `parse_yaml` parses the text to an equal tree, and YAML 1.1 parsers (PyYAML)
  /// give it the same meaning. Short collections at the leaves of the tree are written in flow style, all
  /// other collections in block style.
  std::string to_yaml() const;

 private:
  struct Data;
  explicit ConfigNode(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Returns the location of the value at this path of keys. If the path does not exist, returns the location
/// of its deepest ancestor that exists.
Mark place_in(const ConfigNode& node, std::initializer_list<std::string_view> path);

}  // namespace dtrain
