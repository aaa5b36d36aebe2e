// The parameters and the optimizer state in one memory.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "engine/state/slot_layout.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

inline size_t bytes_of_floats(int64_t count) {
  return static_cast<size_t>(count) * sizeof(float);
}

/// The ranges of a layout that one ParameterMemory stores.
struct HeldRanges {
  Range values;  // parameters
  Range slots;   // range of the trained parameters whose optimizer state is in this memory
};

/// The parameters of a layout, or of a part of it, in host or GPU memory. For training, the memory also
/// contains the optimizer state. If the compute type is not float32, the memory also contains a copy of the
/// parameters in the compute type. Shared by all replicas that use this memory; their threads must not access
/// overlapping ranges concurrently.
class ParameterMemory {
 public:
  /// Holds the whole layout.
  ParameterMemory(DType type, const ParameterLayout& layout)
      : ParameterMemory(type, {{0, layout.size()}, {0, layout.trained()}}) {}
  ParameterMemory(DType type, const HeldRanges& held) : type_(type), held_(held) {}
  const HeldRanges& held() const { return held_; }
  /// Return the bytes that allocate() and allocate_slots() allocate.
  size_t bytes() const;
  size_t slot_bytes(std::span<const SlotLayout> slots) const;
  /// Allocate the memory through `ops`, which belongs to one of the replicas that share this object.
  /// Parameters are set to zero, slots to their initial value. allocate_slots() keeps references to `slots`.
  void allocate(Ops& ops);
  void allocate_slots(Ops& ops, std::span<const SlotLayout> slots);

  /// Pointers to the first parameter stored here. weights() points to the copy in the compute type, which
  /// kernels read, or to the parameters if there is no copy.
  float* values() const { return values_.f32(); }
  const std::byte* weights() const;
  /// Updates the copy in the compute type. Must be called after the parameters were written by anything other
  /// than Update, which writes the copy itself.
  void refresh_copy(Ops& ops) const;

  // Pointers to the element at offset `at` of the layout, which must be stored here. copy() is null if there
  // is no copy in the compute type.
  float* values(int64_t at) const { return values_.f32() + (at - held_.values.begin); }
  std::byte* copy(int64_t at) const;

  size_t slots() const { return slots_.size(); }
  const SlotLayout& slot_layout(size_t index) const { return *slots_[index].layout; }
  /// The range of a slot's layout that is stored here.
  Range slot_range(size_t index) const { return slot_layout(index).of(held_.slots); }
  /// Pointer to the element at offset `at` of the slot's layout, which must be stored here.
  float* slot_element(size_t index, int64_t at) const {
    return slots_[index].values.f32() + (at - slot_range(index).begin);
  }
  /// Pointer to the first element of the slot that belongs to the parameter at offset `at` of the layout
  /// (SlotLayout::at()).
  float* slot(size_t index, int64_t at) const { return slot_element(index, slot_layout(index).at(at)); }

 private:
  struct Slot {
    const SlotLayout* layout;
    Buffer values;
  };

  DType type_;
  HeldRanges held_;
  Buffer values_, copy_;
  std::vector<Slot> slots_;
};

}  // namespace dtrain
