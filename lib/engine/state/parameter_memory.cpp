#include "engine/state/parameter_memory.h"

namespace dtrain {

size_t ParameterMemory::bytes() const {
  const size_t copy = type_ == DType::float32 ? 0 : bytes_of(type_);
  return static_cast<size_t>(held_.values.size()) * (sizeof(float) + copy);
}

void ParameterMemory::allocate(Ops& ops) {
  if (values_.data()) return;
  values_ = ops.context().allocate(static_cast<size_t>(held_.values.size()) * sizeof(float));
  if (type_ != DType::float32)
    copy_ = ops.context().allocate(static_cast<size_t>(held_.values.size()) * bytes_of(type_));
}

size_t ParameterMemory::slot_bytes(std::span<const SlotLayout> slots) const {
  size_t bytes = 0;
  for (const SlotLayout& slot : slots) bytes += bytes_of_floats(slot.of(held_.slots).size());
  return bytes;
}

void ParameterMemory::allocate_slots(Ops& ops, std::span<const SlotLayout> slots) {
  for (const SlotLayout& slot : slots) {
    const int64_t floats = slot.of(held_.slots).size();
    slots_.push_back({&slot, ops.context().allocate(bytes_of_floats(floats))});
    if (slot.initial() != 0) ops.fill(slots_.back().values.f32(), slot.initial(), floats);
  }
}

const std::byte* ParameterMemory::weights() const {
  return static_cast<const std::byte*>(copy_.data() ? copy_.data() : values_.data());
}

std::byte* ParameterMemory::copy(int64_t at) const {
  if (!copy_.data()) return nullptr;
  return static_cast<std::byte*>(copy_.data()) +
         static_cast<size_t>(at - held_.values.begin) * bytes_of(type_);
}

void ParameterMemory::refresh_copy(Ops& ops) const {
  if (copy_.data()) ops.cast(copy_.data(), type_, values(), DType::float32, held_.values.size());
}

}  // namespace dtrain
