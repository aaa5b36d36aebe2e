// The parameters in one memory.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace dtrain {

inline size_t bytes_of_floats(int64_t count) {
  return static_cast<size_t>(count) * sizeof(float);
}

/// Parts of a layout that a memory holds.
struct HeldRanges {
  Range values;  // parameters
  Range slots;   // optimizer state, within the trained parameters
};

/// The parameters in host or GPU memory, with a copy in the compute type unless that is float32 and, for
/// training, the optimizer state; the whole layout or a part. Shared by all replicas that use this memory;
/// their threads must not access overlapping ranges concurrently.
class ParameterMemory {
 public:
  /// Holds the whole layout.
  ParameterMemory(DType type, const ParameterLayout& layout)
      : ParameterMemory(type, {{0, layout.size()}, {0, layout.trained()}}) {}
  ParameterMemory(DType type, const HeldRanges& held) : type_(type), held_(held) {}
  const HeldRanges& held() const { return held_; }
  /// Bytes that allocate() needs, and bytes that allocate_slots() needs per slot.
  size_t bytes() const;
  size_t slot_bytes() const { return bytes_of_floats(held_.slots.size()); }
  /// Allocate with the `ops` of one of the sharing replicas. Parameters are zero, slots have their initial
  /// value.
  void allocate(Ops& ops);
  void allocate_slots(Ops& ops, std::span<const Optimizer::Slot> slots);

  /// First element of the held parameters, and of the weights that kernels read: the copy in the compute
  /// type, or the parameters themselves.
  float* values() const { return values_.f32(); }
  const std::byte* weights() const;
  /// Updates the copy. To be called after values were written other than by updates.
  void refresh_copy(Ops& ops) const;

  size_t slots() const { return slots_.size(); }
  // Pointers to the held element at offset `at` of the layout. copy() is null if there is no copy in the
  // compute type.
  float* values(int64_t at) const { return values_.f32() + (at - held_.values.begin); }
  std::byte* copy(int64_t at) const;
  float* slot(size_t index, int64_t at) const { return slots_[index].f32() + (at - held_.slots.begin); }

 private:
  DType type_;
  HeldRanges held_;
  Buffer values_, copy_;
  std::vector<Buffer> slots_;
};

}  // namespace dtrain
