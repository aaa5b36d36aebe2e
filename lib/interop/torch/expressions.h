// Python expressions for several kinds of layers.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/specs.h"

namespace dtrain {

/// Returns a Python tuple with one number for each axis: "(3, 3)".
inline std::string torch_size(const std::vector<int64_t>& extents) {
  return fmt::format("({})", fmt::join(extents, ", "));
}

/// Returns the padding as the tuple that F.pad expects, beginning with the last axis. If the padding of the
/// depth is 0, the tuple does not contain it.
inline std::string torch_sides(const Padding3& sides) {
  const std::string plane = fmt::format("{}, {}, {}, {}", sides.left, sides.right, sides.top, sides.bottom);
  if (sides.front == 0 && sides.back == 0) return fmt::format("({})", plane);
  return fmt::format("({}, {}, {})", plane, sides.front, sides.back);
}

/// Returns an expression that pads an image or volume (channels first) with `value`.
inline std::string torch_padded(const std::string& x, const Padding3& sides, const std::string& value) {
  if (sides == Padding3{}) return x;
  return fmt::format("F.pad({}, {}, value={})", x, torch_sides(sides), value);
}

}  // namespace dtrain
