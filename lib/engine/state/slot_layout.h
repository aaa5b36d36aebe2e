// Layout of the elements of one optimizer slot in a flat buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collective/range.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"

namespace dtrain {

/// Offsets of the elements that each trained parameter has in an optimizer slot. The elements are in the
/// order of the parameters, and the elements of each parameter are aligned to 16 floats. If the slot has the
/// weights' shapes, the offsets are equal to the offsets of the parameters.
class SlotLayout {
 public:
  SlotLayout(const ParameterLayout& layout, Optimizer::Slot slot);

  const std::string& name() const { return slot_.name; }
  float initial() const { return slot_.initial; }
  const Optimizer::Slot& slot() const { return slot_; }
  /// Returns whether the elements have the same offsets as the parameters.
  bool is_like_weights() const { return slot_.shape == SlotShape::weight; }
  /// Number of floats.
  int64_t size() const { return size_; }

  /// Returns the offset of the first element that belongs to the parameter at offset `parameter` of the
  /// layout. If this parameter has no elements in the slot, returns the offset for the next parameter that
  /// has elements, or size() if there is no such parameter. If is_like_weights() is true, `parameter` may be
  /// the offset of any element of a parameter.
  int64_t at(int64_t parameter) const;
  /// Returns the range of the slot's elements that belong to the parameters in `parameters`.
  Range of(Range parameters) const { return {at(parameters.begin), at(parameters.end)}; }
  /// Returns the range of the slot's elements that belong to a trained parameter.
  Range of(const ParameterSlice& slice) const;

 private:
  struct Entry {
    int64_t parameter, at;
  };
  Optimizer::Slot slot_;
  // One entry for each parameter that has elements in the slot, sorted by offset; empty if is_like_weights()
  // is true.
  std::vector<Entry> entries_;
  int64_t size_ = 0;
};

/// Returns the layouts of all slots.
std::vector<SlotLayout> slot_layouts(const ParameterLayout& layout,
                                     const std::vector<Optimizer::Slot>& slots);

}  // namespace dtrain
