// A configuration as a tree of values that know where they were written.
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

/// A place in a file, for messages. Lines and columns (in bytes) count from 1; 0 where a value was not
/// written by anybody.
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  /// "configs/a.yaml:14:7"; "--set" and the like have a file name and no numbers.
  std::string str() const;
};

/// An immutable YAML value: null, scalar, sequence or mapping. Cheap to copy (shares its data); never cyclic,
/// no aliases.
class ConfigNode {
 public:
  enum class Type { null, scalar, sequence, mapping };
  using Entry = std::pair<ConfigNode, ConfigNode>;  // key (always a scalar), value

  ConfigNode();                       // null, without a mark
  static ConfigNode null(Mark mark);  ///< written as nothing, ~ or null
  static ConfigNode scalar(std::string text, bool quoted = false, Mark mark = {});
  static ConfigNode sequence(std::vector<ConfigNode> items, Mark mark = {});
  static ConfigNode mapping(std::vector<Entry> entries, Mark mark = {});
  /// A mapping entry whose key is plain text without a mark.
  static Entry entry(std::string_view key, ConfigNode value);

  Type type() const;
  bool is_null() const { return type() == Type::null; }
  bool is_scalar() const { return type() == Type::scalar; }
  bool is_sequence() const { return type() == Type::sequence; }
  bool is_mapping() const { return type() == Type::mapping; }
  const Mark& mark() const;

  const std::string& text() const;  ///< of a scalar
  bool quoted() const;              ///< of a scalar: written in quotes, so a string whatever it looks like
  /// Of a key: only the base of a configuration has it (merge.h), or it was there before a --set.
  bool inherited() const;
  ConfigNode as_inherited() const;  ///< the scalar as such a key
  const std::vector<ConfigNode>& items() const;
  const std::vector<Entry>& entries() const;

  /// The value under `key`, or null (the pointer) where this is no mapping or has no such key.
  const ConfigNode* find(std::string_view key) const;
  /// This mapping less some keys; a null stays a null.
  ConfigNode without(std::span<const std::string_view> keys) const;
  /// This mapping with `key` set (replaced, or put last).
  ConfigNode with(std::string_view key, ConfigNode value) const;

  /// The tree with what `change` makes of every scalar in it, keys aside.
  ConfigNode with_scalars(const std::function<ConfigNode(const ConfigNode&)>& change) const;

  /// Whether both share one tree (not whether two trees are equal).
  bool same_as(const ConfigNode& other) const { return data_ == other.data_; }

  /// "a mapping", "a list", "nothing", "'abc'" - for messages of the shape "expected X, found Y".
  std::string describe() const;
  /// This value as YAML text, which `parse_yaml` reads back to an equal tree, and YAML 1.1 (PyYAML) to what
  /// it means here; short leaves in flow style, the rest in block style.
  std::string to_yaml() const;

 private:
  struct Data;
  explicit ConfigNode(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Where the value under this path of keys stands, or the last on the way there that exists.
Mark place_in(const ConfigNode& node, std::initializer_list<std::string_view> path);

}  // namespace dtrain
