// Pieces of Python that several layers need.
#pragma once

#include <string>

#include <fmt/format.h>

#include "config/codec.h"
#include "ops/specs.h"

namespace dtrain {

/// "(3, 3)"
inline std::string torch_size(const Size2& size) {
  return fmt::format("({}, {})", size.height, size.width);
}

/// Sides as F.pad takes them, the last axis first.
inline std::string torch_sides(const Padding2& sides) {
  return fmt::format("({}, {}, {}, {})", sides.left, sides.right, sides.top, sides.bottom);
}

/// An image, channels first, with `value` at its sides.
inline std::string torch_padded(const std::string& x, const Padding2& sides, const std::string& value) {
  if (sides == Padding2{}) return x;
  return fmt::format("F.pad({}, {}, value={})", x, torch_sides(sides), value);
}

}  // namespace dtrain
