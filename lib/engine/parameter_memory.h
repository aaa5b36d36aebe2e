// The parameters as one memory has them.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The parts of a layout that a memory has.
struct HeldRanges {
  Range values;  // parameters
  Range slots;   // within those that are trained
};

/// The host's memory, or a GPU's: parameters, their copy in the compute type where that is not float32, and,
/// where it trains, the optimizer's slots; all of them, or a part. All replicas that have this memory share
/// it; what their threads do at once must not overlap.
class ParameterMemory {
 public:
  /// All of the layout.
  ParameterMemory(DType type, const ParameterLayout& layout)
      : ParameterMemory(type, {{0, layout.size()}, {0, layout.trained()}}) {}
  ParameterMemory(DType type, const HeldRanges& held) : type_(type), held_(held) {}
  const HeldRanges& held() const { return held_; }
  /// What allocate takes, and what allocate_slots takes for each slot.
  size_t bytes() const;
  size_t slot_bytes() const { return static_cast<size_t>(held_.slots.size()) * sizeof(float); }
  /// Made by `ops`, which is of one of those replicas. Zeros. The slots as they begin.
  void allocate(Ops& ops);
  void allocate_slots(Ops& ops, std::span<const Optimizer::Slot> slots);

  /// The first of the values that are held, and of what products read: the copy, or the values themselves.
  float* values() const { return values_.f32(); }
  const std::byte* weights() const;
  /// To be called when the values were written otherwise than by updates.
  void refresh_copy(Ops& ops) const;

  size_t slots() const { return slots_.size(); }
  // What is held at a place of the layout. The copy that an update writes besides is null where there is
  // none.
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
