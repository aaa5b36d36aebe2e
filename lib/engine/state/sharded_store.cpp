#include "engine/state/sharded_store.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace dtrain {

ShardedStore::ShardedStore(const ParameterLayout& layout, const std::vector<SlotLayout>& slots,
                           std::span<Worker* const> workers, std::span<const Range> shares, ShardLevel level)
    : slots_(slots), has_sharded_parameters_(level == ShardLevel::parameters) {
  const int count = static_cast<int>(workers.size());
  const int64_t frozen = layout.size() - layout.with_gradient();
  for (int rank = 0; rank < count; ++rank) {
    Shard shard;
    shard.worker = workers[static_cast<size_t>(rank)];
    shard.trained = shares[static_cast<size_t>(rank)];
    const Range part = part_of(frozen, rank, count, kShardGrain);
    shard.frozen = {layout.with_gradient() + part.begin, layout.with_gradient() + part.end};
    const HeldRanges held{has_sharded_parameters_ ? shard.trained : Range{0, layout.size()},
                          overlap(shard.trained, {0, layout.trained()})};
    shard.memory = std::make_unique<ParameterMemory>(shard.worker->ops().compute_type(), held);
    shards_.push_back(std::move(shard));
  }
}

size_t ShardedStore::frozen_bytes(const Shard& shard) const {
  return has_sharded_parameters_ ? bytes_of_floats(shard.frozen.size()) : 0;
}

ParameterStore::Bytes ShardedStore::bytes(const Worker& worker) const {
  const Shard& shard = shard_of(worker);
  return {.parameters = shard.memory->bytes() + frozen_bytes(shard),
          .slots = shard.memory->slot_bytes(slots_)};
}

void ShardedStore::allocate_parameters(Worker& worker) {
  Shard& shard = shards_[static_cast<size_t>(worker.rank())];
  shard.memory->allocate(worker.ops());
  shard.frozen_values = worker.context().allocate(frozen_bytes(shard));
}

void ShardedStore::allocate_slots(Worker& worker) {
  shard_of(worker).memory->allocate_slots(worker.ops(), slots_);
}

size_t ShardedStore::index_of(std::string_view array) const {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].name() == array) return i;
  throw std::logic_error("the state has no array '" + std::string(array) + "'");
}

template <class Work>
void ShardedStore::each_place(std::string_view array, Range range, bool all_copies, const Work& work) const {
  if (array == kParameters && !has_sharded_parameters_) {
    for (const Shard& shard : shards_) {
      work(*shard.worker, shard.memory->values(range.begin), range);
      if (!all_copies) return;
    }
    return;
  }
  for (const Shard& shard : shards_) {
    if (array == kParameters) {
      shard.each_part(range, [&](Range part, float* place) { work(*shard.worker, place, part); });
      continue;
    }
    const size_t index = index_of(array);
    const Range part = overlap(range, shard.memory->slot_range(index));
    if (part.size() > 0) work(*shard.worker, shard.memory->slot_element(index, part.begin), part);
  }
}

void ShardedStore::read(std::string_view array, Range range, float* to) {
  each_place(array, range, false, [&](Worker& worker, float* place, Range part) {
    worker.context().copy_to_host(to + (part.begin - range.begin), place, bytes_of_floats(part.size()));
  });
}

void ShardedStore::write(std::string_view array, Range range, const float* from) {
  each_place(array, range, true, [&](Worker& worker, float* place, Range part) {
    worker.context().copy_to_device(place, from + (part.begin - range.begin), bytes_of_floats(part.size()));
  });
}

void ShardedStore::finish_writing(Worker& worker) {
  shard_of(worker).memory->refresh_copy(worker.ops());
  worker.context().synchronize();
}

}  // namespace dtrain
