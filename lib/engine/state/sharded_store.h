// Parameters and optimizer state divided among the replicas (the three levels of ZeRO; Rajbhandari et al.,
// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collective/world.h"
#include "distribute/strategy.h"
#include "engine/state/parameter_store.h"
#include "nn/parameters.h"

namespace dtrain {

/// The part of the state that one replica stores: ranges of the slot's layout, and their memory.
struct Shard {
  Worker* worker = nullptr;
  Range trained;  // part of the parameters with a gradient; may include statistics
  Range frozen;
  // Memory for the range `trained` if the parameters are sharded, otherwise for the whole layout.
  std::unique_ptr<ParameterMemory> memory;
  Buffer frozen_values;  // values of the range `frozen`; allocated if the parameters are sharded

  /// Calls work(part, values) for each part of the parameters in `range` that this replica stores. `values`:
  /// pointer to the part's first value. To be called only if the parameters are sharded.
  template <class Work>
  void each_part(Range range, const Work& work) const {
    if (const Range part = overlap(range, trained); part.size() > 0) work(part, memory->values(part.begin));
    if (const Range part = overlap(range, frozen); part.size() > 0)
      work(part, frozen_values.f32() + (part.begin - frozen.begin));
  }
};

/// Each replica, in any process, stores only one part of the optimizer state. With level `parameters`, the
/// replica also stores only this part of the parameters. A part is a contiguous range of the parameters with
/// gradients and, with level `parameters`, also a contiguous range of the frozen parameters.
class ShardedStore final : public ParameterStore {
 public:
  static constexpr int64_t kShardGrain = 16;  // floats

  /// `workers`: indexed by replica of this process. `shares`: the parts of the parameters with gradients,
  /// indexed by replica of all processes (ParameterLayout::shares()). `ranks`: the workers' ranks among all
  /// replicas. Keeps references to the layout, the slots and the World.
  ShardedStore(const ParameterLayout& layout, const std::vector<SlotLayout>& slots,
               std::span<Worker* const> workers, std::vector<Range> shares, const ReplicaRanks& ranks,
               ShardLevel level, World& world);

  std::span<const Shard> shards() const { return shards_; }  // indexed by replica of this process
  const ReplicaRanks& ranks() const { return ranks_; }
  World& world() const { return world_; }
  /// Returns a replica's part of the parameters with a gradient, and its part of the frozen parameters.
  /// `rank`: the replica's rank among the replicas of all processes.
  Range trained_of_replica(int rank) const;
  Range frozen_of_replica(int rank) const;
  /// Returns the parts of all replicas of a process.
  Range trained_of(int process) const;
  Range frozen_of(int process) const;
  /// Completes each replica's copy of the parameters after every replica has updated its part (levels
  /// `optimizer` and `gradients`). Can be used on CPUs only. Each worker's thread must call this function.
  /// `replicas`: the worker's communicator.
  void gather_updated(const Worker& worker, Collective& replicas) const;
  const Shard& shard_of(const Worker& worker) const { return shards_[static_cast<size_t>(worker.rank())]; }

  const ParameterMemory& memory_of(const Worker& worker) const override { return *shard_of(worker).memory; }
  const ParameterMemory& updated_by(const Worker& worker) const override { return memory_of(worker); }
  Bytes bytes(const Worker& worker) const override;
  size_t host_bytes() const override { return 0; }
  void allocate_parameters(Worker& worker) override;
  void allocate_slots(Worker& worker) override;
  /// Does nothing, because a step gathers the parameters that this replica does not store.
  void load(Worker&) override {}
  PartsOfProcesses parts_of(std::string_view array) const override;
  bool on_gpu() const override { return shards_[0].worker->on_gpu(); }
  std::span<float> host_view(std::string_view) override { return {}; }
  void read(std::string_view array, Range range, float* to) override;
  void write(std::string_view array, Range range, const float* from) override;
  void finish_writing(Worker& worker) override;

 private:
  size_t frozen_bytes(const Shard& shard) const;
  size_t index_of(std::string_view array) const;
  /// Calls work(worker, place, part) for each part of `range` that this process stores. `worker`: the worker
  /// that stores the part. `place`: pointer to the part's first element. If the array is replicated, calls
  /// `work` for all copies if `all_copies` is set, otherwise for one copy.
  template <class Work>
  void each_place(std::string_view array, Range range, bool all_copies, const Work& work) const;

  const ParameterLayout& layout_;
  const std::vector<SlotLayout>& slots_;
  const std::vector<Range> shares_;  // indexed by replica of all processes
  const ReplicaRanks ranks_;
  World& world_;
  const bool has_sharded_parameters_;
  std::vector<Shard> shards_;  // indexed by rank
};

}  // namespace dtrain
