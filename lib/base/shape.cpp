#include "base/shape.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

int64_t Shape::elements() const {
  int64_t product = 1;
  for (const int64_t extent : extents_)
    if (__builtin_mul_overflow(product, extent, &product))
      throw Error(fmt::format(
          "an array of shape {} is too large: its number of elements does not fit in 64 bits", str()));
  return product;
}

bool Shape::exceeds(int64_t most) const {
  int64_t product = 1;
  for (const int64_t extent : extents_) {
    if (extent == 0) return false;
    if (__builtin_mul_overflow(product, extent, &product)) product = INT64_MAX;
  }
  return product > most;
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
