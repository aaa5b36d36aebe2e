#include "optim/optimizer.h"

namespace dtrain {

std::optional<Shape> Optimizer::Slot::shape_for(const Shape& weight) const {
  const bool is_vector = weight.rank() < 2;
  if (shape == SlotShape::weight || (shape == SlotShape::vector && is_vector)) return weight;
  if (shape == SlotShape::vector || is_vector) return std::nullopt;
  std::vector<int64_t> extents = weight.extents();
  extents.erase(extents.end() - (shape == SlotShape::row_means ? 1 : 2));
  return Shape(std::move(extents));
}

}  // namespace dtrain
