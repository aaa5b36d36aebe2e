// Python expressions that several layers use.
#pragma once

#include <string>

#include <fmt/format.h>

#include "config/codec.h"
#include "ops/specs.h"

namespace dtrain {

/// Returns a size as a tuple: "(3, 3)".
inline std::string torch_size(const Size2& size) {
  return fmt::format("({}, {})", size.height, size.width);
}

/// Returns padding in the order that F.pad expects, the last axis first.
inline std::string torch_sides(const Padding2& sides) {
  return fmt::format("({}, {}, {}, {})", sides.left, sides.right, sides.top, sides.bottom);
}

/// Returns the expression of an image (channels first) padded with `value`.
inline std::string torch_padded(const std::string& x, const Padding2& sides, const std::string& value) {
  if (sides == Padding2{}) return x;
  return fmt::format("F.pad({}, {}, value={})", x, torch_sides(sides), value);
}

}  // namespace dtrain
