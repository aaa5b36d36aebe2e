// Parsing of losses, optimizers and other registered kinds.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "config/registry.h"

namespace dtrain::test {

/// Parses a valid kind: parse_kind<Loss>("mean_squared_error: {weight: 0.25}").
template <class Base>
Configured<Base> parse_kind(const std::string& yaml) {
  Diagnostics diagnostics;
  Configured<Base> kind = registry<Base>().parse(parse_yaml(yaml, "kind.yaml", diagnostics), diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(kind);
  return kind;
}

}  // namespace dtrain::test
