// The parameters as one memory has them.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The host's memory, or a GPU's: parameters, their copy in the compute type where that is not float32, and,
/// where it trains, the optimizer's slots. All replicas that have this memory share it; what their threads do
/// at once must not overlap.
class ParameterMemory {
 public:
  ParameterMemory(DType type, const ParameterLayout& layout);
  /// What allocate takes.
  size_t bytes() const;
  /// Made by `ops`, which is of one of those replicas. Zeros. The slots as they begin.
  void allocate(Ops& ops);
  void allocate_slots(Ops& ops, std::span<const Optimizer::Slot> slots);

  float* values() const { return values_.f32(); }
  /// What products read: the copy, or the values themselves.
  const std::byte* weights() const;
  /// What an update writes besides the values; null where there is no copy.
  std::byte* copy() const { return static_cast<std::byte*>(copy_.data()); }
  /// To be called when the values were written otherwise than by updates.
  void refresh_copy(Ops& ops) const;

  size_t slots() const { return slots_.size(); }
  float* slot(size_t index) const { return slots_[index].f32(); }

 private:
  DType type_;
  int64_t size_, trained_;
  Buffer values_, copy_;
  std::vector<Buffer> slots_;
};

}  // namespace dtrain
