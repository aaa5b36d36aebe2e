// Shared code of the configuration tests.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "config/diagnostics.h"
#include "config/load/load.h"
#include "support/errors.h"
#include "support/text.h"

namespace dtrain::test {

/// Parses a valid text as the file "f".
inline ConfigNode yaml(std::string_view text) {
  Diagnostics diagnostics;
  ConfigNode node = parse_yaml(text, "f", diagnostics);
  REQUIRE(messages(diagnostics) == "");
  return node;
}

/// Returns the messages of parse_yaml for a text.
inline std::string yaml_messages(std::string_view text) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(text, "f", diagnostics);
  if (diagnostics.has_errors()) CHECK(node.is_null());
  return messages(diagnostics);
}

/// Compares the types and the texts of values. Ignores their locations, and whether scalars are quoted.
inline bool equal(const ConfigNode& a, const ConfigNode& b) {
  if (a.type() != b.type()) return false;
  if (a.is_scalar()) return a.text() == b.text();
  if (a.is_sequence()) {
    if (a.items().size() != b.items().size()) return false;
    for (size_t i = 0; i < a.items().size(); ++i)
      if (!equal(a.items()[i], b.items()[i])) return false;
  } else if (a.is_mapping()) {
    if (a.entries().size() != b.entries().size()) return false;
    for (size_t i = 0; i < a.entries().size(); ++i)
      if (!equal(a.entries()[i].first, b.entries()[i].first) ||
          !equal(a.entries()[i].second, b.entries()[i].second))
        return false;
  }
  return true;
}

}  // namespace dtrain::test
