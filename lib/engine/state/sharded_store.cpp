#include "engine/state/sharded_store.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace dtrain {

ShardedStore::ShardedStore(const ParameterLayout& layout, const std::vector<SlotLayout>& slots,
                           std::span<Worker* const> workers, std::vector<Range> shares,
                           const ReplicaRanks& ranks, ShardLevel level, World& world)
    : layout_(layout),
      slots_(slots),
      shares_(std::move(shares)),
      ranks_(ranks),
      world_(world),
      has_sharded_parameters_(level == ShardLevel::parameters) {
  for (Worker* worker : workers) {
    const int rank = ranks.first() + worker->rank();
    Shard shard;
    shard.worker = worker;
    shard.trained = trained_of_replica(rank);
    shard.frozen = frozen_of_replica(rank);
    const HeldRanges held{has_sharded_parameters_ ? shard.trained : Range{0, layout.size()},
                          overlap(shard.trained, {0, layout.trained()})};
    shard.memory = std::make_unique<ParameterMemory>(shard.worker->ops().compute_type(), held);
    shards_.push_back(std::move(shard));
  }
}

Range ShardedStore::trained_of_replica(int rank) const {
  return shares_[static_cast<size_t>(rank)];
}

Range ShardedStore::frozen_of_replica(int rank) const {
  const int64_t begin = layout_.with_gradient();
  const Range part = part_of(layout_.size() - begin, rank, ranks_.total(), kShardGrain);
  return {begin + part.begin, begin + part.end};
}

Range ShardedStore::trained_of(int process) const {
  const Range its = ranks_.of(process);
  return {trained_of_replica(static_cast<int>(its.begin)).begin,
          trained_of_replica(static_cast<int>(its.end) - 1).end};
}

Range ShardedStore::frozen_of(int process) const {
  const Range its = ranks_.of(process);
  return {frozen_of_replica(static_cast<int>(its.begin)).begin,
          frozen_of_replica(static_cast<int>(its.end) - 1).end};
}

PartsOfProcesses ShardedStore::parts_of(std::string_view array) const {
  PartsOfProcesses parts;
  if (world_.size() == 1 || (array == kParameters && !has_sharded_parameters_)) return parts;
  for (int process = 0; process < world_.size(); ++process)
    if (array == kParameters)
      parts.push_back({trained_of(process), frozen_of(process)});
    else if (array == kGradient)
      parts.push_back({trained_of(process)});
    else
      parts.push_back({slots_[index_of(array)].of(overlap(trained_of(process), {0, layout_.trained()}))});
  return parts;
}

/// Copies the updated parts of all other replicas to this replica. Replica 0 of a process receives the parts
/// of other processes, and the other replicas copy these parts from replica 0.
void ShardedStore::gather_updated(const Worker& worker, Collective& replicas) const {
  const Shard& mine = shard_of(worker);
  const auto copy = [&](const Shard& from, Range part) {
    if (part.size() > 0)
      mine.worker->context().copy_to_device(mine.memory->values(part.begin), from.memory->values(part.begin),
                                            bytes_of_floats(part.size()));
  };
  replicas.barrier();
  for (const Shard& other : shards_)
    if (&other != &mine) copy(other, other.trained);
  if (world_.size() > 1) {
    PartsOfProcesses parts;
    for (int process = 0; process < world_.size(); ++process) parts.push_back({trained_of(process)});
    if (worker.rank() == 0)
      world_.all_gather_parts_in_place(
          parts, {mine.memory->values(0), static_cast<size_t>(layout_.with_gradient())});
    replicas.barrier();
    for (int process = 0; process < world_.size() && worker.rank() > 0; ++process)
      if (process != ranks_.process) copy(shards_[0], trained_of(process));
  }
  replicas.barrier();  // no rank may update data that another rank still reads
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
  // Parts that only other processes store are skipped.
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
