#include "engine/state/slot_layout.h"

#include <algorithm>
#include <utility>

namespace dtrain {

SlotLayout::SlotLayout(const ParameterLayout& layout, Optimizer::Slot slot) : slot_(std::move(slot)) {
  if (is_like_weights()) {
    size_ = layout.trained();
    return;
  }
  constexpr int64_t kAlignment = ParameterLayout::kAlignment;
  for (const ParameterSlice* slice : layout.by_offset({0, layout.trained()})) {
    const std::optional<Shape> shape = slot_.shape_for(slice->shape);
    if (!shape || shape->elements() == 0) continue;
    entries_.push_back({slice->offset, size_});
    size_ += (shape->elements() + kAlignment - 1) / kAlignment * kAlignment;
  }
}

int64_t SlotLayout::at(int64_t parameter) const {
  if (is_like_weights()) return parameter;
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), parameter,
                                      [](const Entry& one, int64_t at) { return one.parameter < at; });
  return entry == entries_.end() ? size_ : entry->at;
}

Range SlotLayout::of(const ParameterSlice& slice) const {
  const std::optional<Shape> shape = slot_.shape_for(slice.shape);
  const int64_t begin = at(slice.offset);
  return {begin, begin + (shape ? shape->elements() : 0)};
}

std::vector<SlotLayout> slot_layouts(const ParameterLayout& layout,
                                     const std::vector<Optimizer::Slot>& slots) {
  std::vector<SlotLayout> layouts;
  for (const Optimizer::Slot& slot : slots) layouts.emplace_back(layout, slot);
  return layouts;
}

}  // namespace dtrain
