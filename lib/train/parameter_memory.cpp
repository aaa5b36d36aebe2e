#include "train/parameter_memory.h"

namespace dtrain {

ParameterMemory::ParameterMemory(DType type, const ParameterLayout& layout)
    : type_(type), size_(layout.size()), trained_(layout.trained()) {}

size_t ParameterMemory::bytes() const {
  const size_t copy = type_ == DType::float32 ? 0 : bytes_of(type_);
  return static_cast<size_t>(size_) * (sizeof(float) + copy);
}

void ParameterMemory::allocate(Ops& ops) {
  if (values_.data()) return;
  values_ = ops.context().allocate(static_cast<size_t>(size_) * sizeof(float));
  if (type_ != DType::float32) copy_ = ops.context().allocate(static_cast<size_t>(size_) * bytes_of(type_));
}

void ParameterMemory::allocate_slots(Ops& ops, std::span<const Optimizer::Slot> slots) {
  for (const Optimizer::Slot& slot : slots) {
    slots_.push_back(ops.context().allocate(static_cast<size_t>(trained_) * sizeof(float)));
    if (slot.initial != 0) ops.fill(slots_.back().f32(), slot.initial, trained_);
  }
}

const std::byte* ParameterMemory::weights() const {
  return static_cast<const std::byte*>(copy_.data() ? copy_.data() : values_.data());
}

void ParameterMemory::refresh_copy(Ops& ops) const {
  if (copy_.data()) ops.cast(copy(), type_, values(), DType::float32, size_);
}

}  // namespace dtrain
