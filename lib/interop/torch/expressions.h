// Pieces of Python that several layers need.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/specs.h"

namespace dtrain {

/// "(3, 3)", with a number for each axis.
inline std::string torch_size(const std::vector<int64_t>& extents) {
  return fmt::format("({})", fmt::join(extents, ", "));
}

/// Sides as F.pad takes them, the last axis first, and without those of the depth where they are 0.
inline std::string torch_sides(const Padding3& sides) {
  const std::string plane = fmt::format("{}, {}, {}, {}", sides.left, sides.right, sides.top, sides.bottom);
  if (sides.front == 0 && sides.back == 0) return fmt::format("({})", plane);
  return fmt::format("({}, {}, {})", plane, sides.front, sides.back);
}

/// An image, or a volume, channels first, with `value` at its sides.
inline std::string torch_padded(const std::string& x, const Padding3& sides, const std::string& value) {
  if (sides == Padding3{}) return x;
  return fmt::format("F.pad({}, {}, value={})", x, torch_sides(sides), value);
}

}  // namespace dtrain
