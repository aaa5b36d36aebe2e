// The reducer of gradients for sharded state on CPUs of several processes.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "collective/sum_tree.h"
#include "engine/update/sharded_reducer.h"

namespace dtrain {

namespace {

/// Replica 0 of each process exchanges arrays with the other processes, in memory that the replicas of the
/// process share. Parameters are gathered, and gradients reduced, while all replicas wait. Gradients are
/// added in the order of the tree over all replicas (sum_tree.h).
class ProcessShardedReducer final : public ShardedReducer {
 public:
  ProcessShardedReducer(const ParameterLayout& layout, const ShardedStore& store,
                        std::span<Collective* const> members, ShardLevel level)
      : ShardedReducer(layout, store, members, level),
        world_(store.world()),
        nodes_(subtrees(store.ranks().of(world_.rank()), store.ranks().total())),
        sums_(nodes_.size()) {}

  std::string_view where() const override { return "in parts, over the processes"; }

  /// The memory that replicas share counts for the first one: a gathered layer, and sums of a bucket over the
  /// subtrees of this process and of the others.
  size_t gradient_bytes(const Worker& worker) const override {
    const size_t shared = (gathers() ? 1 : 0) + nodes_.size() + nodes_of_others();
    return ShardedReducer::gradient_bytes(worker) +
           (worker.rank() == 0 ? shared * staging_bytes_of_one() : 0);
  }
  void allocate_gradients(Worker& worker) override {
    ShardedReducer::allocate_gradients(worker);
    if (worker.rank() > 0) return;
    if (gathers()) gathered_ = worker.context().allocate(staging_bytes_of_one());
    for (Buffer& sum : sums_) sum = worker.context().allocate(staging_bytes_of_one());
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    store_.gather_updated(worker, replicas);
  }

 private:
  bool gathers() const { return level() == ShardLevel::parameters; }
  size_t staging_bytes_of_one() const { return bytes_of_floats(staging_floats(layout_, level())); }
  size_t nodes_of_others() const {
    const ReplicaRanks& ranks = store_.ranks();
    size_t nodes = 0;
    for (int process = 0; process < world_.size(); ++process)
      if (process != world_.rank()) nodes += subtrees(ranks.of(process), ranks.total()).size();
    return nodes;
  }
  /// Returns the common part of a range and a shard, as indices into the range.
  static Range part_of_range(Range range, Range shard) {
    const Range part = overlap(range, shard);
    if (part.size() == 0) return {};
    return {part.begin - range.begin, part.end - range.begin};
  }

  void gather(const Shard& shard, Collective& replicas, Range range, float* to) override {
    if (range.size() == 0) return;
    Context& context = shard.worker->context();
    float* const gathered = gathered_.f32();
    replicas.barrier();  // no replica reads the previous range
    if (shard.worker->rank() == 0) {
      for (const Shard& own : shards())
        own.each_part(range, [&](Range part, const float* place) {
          context.copy_to_device(gathered + (part.begin - range.begin), place, bytes_of_floats(part.size()));
        });
      PartsOfProcesses parts;
      for (int process = 0; process < world_.size(); ++process)
        parts.push_back({part_of_range(range, store_.trained_of(process)),
                         part_of_range(range, store_.frozen_of(process))});
      world_.all_gather_parts(parts, {gathered, static_cast<size_t>(range.size())});
    }
    replicas.barrier();
    if (to) context.copy_to_device(to, gathered, bytes_of_floats(range.size()));
  }

  /// Each replica adds a share of the range over each subtree of this process. Then replica 0 exchanges the
  /// sums with the other processes.
  void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    if (range.size() == 0) return;
    const std::span<float* const> all = replicas.share_pointers(const_cast<float*>(gradient));
    const int rank = shard.worker->rank();
    const Range share = part_of(range.size(), rank, static_cast<int>(all.size()), 16);
    for (size_t node = 0; node < nodes_.size(); ++node) {
      const auto first = static_cast<size_t>(nodes_[node].begin - store_.ranks().first());
      const auto count = static_cast<size_t>(nodes_[node].size());
      const std::vector<const float*> parts(all.begin() + static_cast<std::ptrdiff_t>(first),
                                            all.begin() + static_cast<std::ptrdiff_t>(first + count));
      SumTree(static_cast<int>(count)).add<float>(parts, sums_[node].f32(), share);
    }
    replicas.barrier();
    if (rank == 0) exchange_sums(range);
    replicas.barrier();
    if (const Range mine = overlap(range, shard.trained); mine.size() > 0)
      shard.worker->ops().scale_add(sum(*shard.worker).f32() + (mine.begin - shard.trained.begin),
                                    sums_[0].f32() + (mine.begin - range.begin), 1.0f, 1.0f, mine.size());
  }

  void exchange_sums(Range range) {
    std::vector<Range> parts;
    for (int process = 0; process < world_.size(); ++process)
      parts.push_back(part_of_range(range, store_.trained_of(process)));
    std::vector<float*> sums;
    for (const Buffer& sum : sums_) sums.push_back(sum.f32());
    world_.sum_parts(store_.ranks(), std::move(parts), sums);
  }

  World& world_;
  const std::vector<Range> nodes_;  // subtrees of the tree over all replicas that this process adds
  Buffer gathered_;                 // of level `parameters`: a layer
  std::vector<Buffer> sums_;        // of a bucket, by node; in the first: finally over all replicas
};

}  // namespace

std::unique_ptr<GradientReducer> make_process_sharded_reducer(const ParameterLayout& layout,
                                                              const ShardedStore& store,
                                                              std::span<Collective* const> members,
                                                              ShardLevel level) {
  return std::make_unique<ProcessShardedReducer>(layout, store, members, level);
}

}  // namespace dtrain
