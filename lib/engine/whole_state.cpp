#include "engine/whole_state.h"

#include <algorithm>
#include <stdexcept>

namespace dtrain {

void WholeState::add_copy(Worker& owner) {
  copies_.push_back({std::make_unique<ParameterMemory>(owner.ops().compute_type(), layout_), &owner});
}

const ParameterMemory& WholeState::memory_of(const Worker& worker) const {
  return copy(copies_.size() == 1 ? 0 : static_cast<size_t>(worker.rank()));
}

GradientSync::StateBytes WholeState::state_bytes(const Worker& worker) const {
  StateBytes bytes;
  for (const Copy& copy : copies_) {
    if (copy.owner->rank() != worker.rank()) continue;
    bytes.parameters += copy.memory->bytes();
    bytes.slots += update_.slots().size() * copy.memory->slot_bytes();
  }
  return bytes;
}

void WholeState::allocate_parameters(Worker& worker) {
  for (const Copy& copy : copies_)
    if (copy.owner->rank() == worker.rank()) copy.memory->allocate(copy.owner->ops());
}

void WholeState::allocate_slots(Worker& worker) {
  for (const Copy& copy : copies_)
    if (copy.owner->rank() == worker.rank()) copy.memory->allocate_slots(copy.owner->ops(), update_.slots());
}

int64_t WholeState::size_of(std::string_view array) const {
  return array == kParameters ? layout_.size() : layout_.trained();
}

float* WholeState::array_of(const ParameterMemory& memory, std::string_view array) const {
  if (array == kParameters) return memory.values();
  const auto& slots = update_.slots();
  for (size_t i = 0; i < memory.slots(); ++i)
    if (slots[i].name == array) return memory.slot(i, 0);
  throw std::logic_error("the state has no array '" + std::string(array) + "'");
}

std::span<float> WholeState::host_view(std::string_view array) {
  if (on_gpu()) return {};
  return {array_of(copy(), array), static_cast<size_t>(size_of(array))};
}

void WholeState::read_state(std::string_view array, Range range, float* to) {
  copies_[0].owner->context().copy_to_host(to, array_of(copy(), array) + range.begin,
                                           static_cast<size_t>(range.size()) * sizeof(float));
}

void WholeState::write_state(std::string_view array, Range range, const float* from) {
  for (const Copy& copy : copies_)
    copy.owner->context().copy_to_device(array_of(*copy.memory, array) + range.begin, from,
                                         static_cast<size_t>(range.size()) * sizeof(float));
}

void WholeState::finish_writing(Worker& worker) {
  for (const Copy& copy : copies_) {
    if (copy.owner->rank() != worker.rank()) continue;
    copy.memory->refresh_copy(copy.owner->ops());
    copy.owner->context().synchronize();
  }
}

}  // namespace dtrain
