// The layout of one optimizer slot in a flat buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collective/range.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The offsets at which an optimizer slot has the elements of each trained parameter. The elements are in the
/// order of the parameters, and the elements of each parameter are aligned to 16 floats. If the slot has the
/// weights' shapes, the offsets are those of the parameters.
class SlotLayout {
 public:
  SlotLayout(const ParameterLayout& layout, Optimizer::Slot slot);

  const std::string& name() const { return slot_.name; }
  float initial() const { return slot_.initial; }
  const Optimizer::Slot& slot() const { return slot_; }
  /// Returns whether the slot has the offsets of the parameters.
  bool is_like_weights() const { return slot_.shape == SlotShape::weight; }
  /// Number of floats.
  int64_t size() const { return size_; }

  /// Returns the offset of the first element that belongs to the parameter at offset `parameter`, or to the
  /// next one that has elements here; size() if there is none. If is_like_weights(), `parameter` may be
  /// within a parameter.
  int64_t at(int64_t parameter) const;
  /// Returns the elements that belong to the parameters in `parameters`.
  Range of(Range parameters) const { return {at(parameters.begin), at(parameters.end)}; }
  /// Returns the elements that belong to a trained parameter.
  Range of(const ParameterSlice& slice) const;

 private:
  struct Entry {
    int64_t parameter, at;
  };
  Optimizer::Slot slot_;
  // One entry for each parameter that has elements, sorted; empty if is_like_weights().
  std::vector<Entry> entries_;
  int64_t size_ = 0;
};

/// Returns the layouts of all slots.
std::vector<SlotLayout> slot_layouts(const ParameterLayout& layout,
                                     const std::vector<Optimizer::Slot>& slots);

}  // namespace dtrain
