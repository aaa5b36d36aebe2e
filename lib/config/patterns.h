// An option that is a name pattern or a list of name patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/codec.h"

namespace dtrain {

/// Patterns as written in the configuration. Each item is a scalar. See base/pattern.h for the syntax.
struct Patterns {
  std::vector<ConfigNode> items;

  bool match(std::string_view name) const;
  /// Reports each pattern that matches no name: "where: the pattern 'x' matches no <what>".
  void check_each_matches(const std::vector<std::string>& names, const std::string& where,
                          std::string_view what, Diagnostics& diagnostics) const;
};

template <>
struct Codec<Patterns> {
  static bool parse(const ConfigNode& node, const std::string& where, Patterns& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Patterns& value);
  static Json schema();
};

}  // namespace dtrain
