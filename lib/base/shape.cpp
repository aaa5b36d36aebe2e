#include "base/shape.h"

#include <fmt/format.h>

namespace dtrain {

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t extent : extents_) product *= extent;
  return product;
}

Shape Shape::prepended(int64_t extent) const {
  std::vector<int64_t> extents{extent};
  extents.insert(extents.end(), extents_.begin(), extents_.end());
  return Shape(std::move(extents));
}

std::string Shape::str() const {
  if (extents_.empty()) return "scalar";
  return fmt::format("{}", fmt::join(extents_, "x"));
}

}  // namespace dtrain
