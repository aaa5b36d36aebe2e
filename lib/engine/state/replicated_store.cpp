#include "engine/state/replicated_store.h"

#include <stdexcept>
#include <string>

namespace dtrain {

ReplicatedStore::ReplicatedStore(const ParameterLayout& layout, const std::vector<SlotLayout>& slots,
                                 std::span<Worker* const> workers, std::span<Worker* const> owners)
    : layout_(layout), slots_(slots), mirrors_(workers.size()) {
  for (Worker* owner : owners)
    copies_.push_back({std::make_unique<ParameterMemory>(owner->ops().compute_type(), layout_), owner});
  for (size_t rank = 0; rank < workers.size(); ++rank)
    if (workers[rank]->on_gpu() && !copy_of(*workers[rank]).owner->on_gpu())
      mirrors_[rank] = std::make_unique<ParameterMemory>(workers[rank]->ops().compute_type(), layout_);
}

const ParameterMemory& ReplicatedStore::memory_of(const Worker& worker) const {
  const auto& mirror = mirror_of(worker);
  return mirror ? *mirror : *copy_of(worker).memory;
}

const ParameterMemory& ReplicatedStore::updated_by(const Worker& worker) const {
  return *copy_of(worker).memory;
}

ParameterStore::Bytes ReplicatedStore::bytes(const Worker& worker) const {
  if (const auto& mirror = mirror_of(worker)) return {mirror->bytes(), 0};
  for (const Copy& copy : copies_)
    if (copy.owner->rank() == worker.rank()) return copy.bytes(slots_);
  return {};
}

/// If GPUs have mirrors of the parameters, the only copy of the state is in host memory, and this function
/// returns its bytes. Otherwise returns 0.
size_t ReplicatedStore::host_bytes() const {
  const Copy& copy = copies_[0];
  if (!mirror_of(*copy.owner)) return 0;
  const Bytes bytes = copy.bytes(slots_);
  return bytes.parameters + bytes.slots;
}

void ReplicatedStore::allocate_parameters(Worker& worker) {
  for (const Copy& copy : copies_)
    if (copy.owner->rank() == worker.rank()) copy.memory->allocate(copy.owner->ops());
  if (const auto& mirror = mirror_of(worker)) mirror->allocate(worker.ops());
}

void ReplicatedStore::allocate_slots(Worker& worker) {
  for (const Copy& copy : copies_)
    if (copy.owner->rank() == worker.rank()) copy.memory->allocate_slots(copy.owner->ops(), slots_);
}

void ReplicatedStore::load(Worker& worker) {
  const auto& mirror = mirror_of(worker);
  if (!mirror) return;
  worker.context().copy_to_device(mirror->values(), copy_of(worker).memory->values(),
                                  bytes_of_floats(layout_.size()));
  mirror->refresh_copy(worker.ops());
}

std::span<float> ReplicatedStore::array_of(const ParameterMemory& memory, std::string_view array) const {
  if (array == kParameters) return {memory.values(), static_cast<size_t>(layout_.size())};
  for (size_t i = 0; i < memory.slots(); ++i)
    if (slots_[i].name() == array) return {memory.slot_element(i, 0), static_cast<size_t>(slots_[i].size())};
  throw std::logic_error("the state has no array '" + std::string(array) + "'");
}

std::span<float> ReplicatedStore::host_view(std::string_view array) {
  return on_gpu() ? std::span<float>() : array_of(*copies_[0].memory, array);
}

void ReplicatedStore::read(std::string_view array, Range range, float* to) {
  copies_[0].owner->context().copy_to_host(to, array_of(*copies_[0].memory, array).data() + range.begin,
                                           bytes_of_floats(range.size()));
}

void ReplicatedStore::write(std::string_view array, Range range, const float* from) {
  for (const Copy& copy : copies_)
    copy.owner->context().copy_to_device(array_of(*copy.memory, array).data() + range.begin, from,
                                         bytes_of_floats(range.size()));
}

void ReplicatedStore::finish_writing(Worker& worker) {
  for (const Copy& copy : copies_) {
    if (copy.owner->rank() != worker.rank()) continue;
    copy.memory->refresh_copy(copy.owner->ops());
    copy.owner->context().synchronize();
  }
}

}  // namespace dtrain
