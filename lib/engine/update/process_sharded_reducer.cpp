// The gradient reducer for sharded state on the CPUs of several processes.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "collective/sum_tree.h"
#include "engine/update/sharded_reducer.h"

namespace dtrain {

namespace {

/// The reducer for level `gradients` or `parameters` on CPUs of several processes. Replica 0 of each process
/// exchanges arrays with the other processes, in memory that all replicas of the process share. All replicas
/// wait while parameters are gathered. Gradients are added in the order of the tree over all replicas
/// (sum_tree.h): the replicas of a process add a bucket, and then the processes exchange these sums while the
/// backward pass continues. The buckets are double-buffered. For this reason, each replica adds the sum of a
/// bucket to its gradient when it fills the bucket after the next one, or in join().
class ProcessShardedReducer final : public ShardedReducer {
 public:
  ProcessShardedReducer(const ParameterLayout& layout, const ShardedStore& store,
                        std::span<Collective* const> members, ShardLevel level)
      : ShardedReducer(layout, store, members, level),
        world_(store.world()),
        nodes_(subtrees(store.ranks().of(world_.rank()), store.ranks().total())),
        turns_(members.size()) {}

  std::string_view where() const override { return "in parts, over the processes"; }

  /// For the first worker, returns the bytes of a gathered layer. Returns 0 for the other workers, because
  /// all replicas of a process share this memory.
  size_t staging_bytes(const Worker& worker) const override {
    return gathers() && worker.rank() == 0 ? staging_bytes_of_one() : 0;
  }
  void allocate_staging(Worker& worker) override {
    if (gathers() && worker.rank() == 0) gathered_ = worker.context().allocate(staging_bytes_of_one());
  }

  /// Returns the bytes of the base class. For the first worker, adds the bytes of the sums that all workers
  /// share. Each bucket has one sum for each subtree (sum_tree.h) of this process and of the other processes.
  size_t gradient_bytes(const Worker& worker) const override {
    const size_t shared = buckets_.size() * (nodes_.size() + nodes_of_others());
    return ShardedReducer::gradient_bytes(worker) +
           (worker.rank() == 0 ? shared * staging_bytes_of_one() : 0);
  }
  void allocate_gradients(Worker& worker) override {
    ShardedReducer::allocate_gradients(worker);
    if (worker.rank() > 0) return;
    for (Bucket& bucket : buckets_)
      for (size_t node = 0; node < nodes_.size(); ++node)
        bucket.nodes.push_back(worker.context().allocate(staging_bytes_of_one()));
  }

  void join(Worker& worker, Collective& replicas) override {
    replicas.barrier();  // waits until all replicas have started their sums
    Turn& turn = turns_[static_cast<size_t>(worker.rank())];
    while (turn.added < turn.filled) add_sum(turn, store_.shard_of(worker));
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    store_.gather_updated(worker, replicas);
  }

 private:
  /// Sums of the gradients of a range. `nodes` contains one sum for each subtree of this process. After the
  /// exchange between the processes, nodes[0] contains the sum over all replicas.
  struct Bucket {
    Range range;
    std::vector<Buffer> nodes;
    std::unique_ptr<BackgroundSum<float>> sum;
  };
  /// The number of buckets that a replica has filled, and the number of buckets whose sums it has added,
  /// since the first step.
  struct Turn {
    size_t filled = 0, added = 0;
  };

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
    replicas.barrier();  // after this, no replica reads the previous range
    if (shard.worker->rank() == 0) {
      for (const Shard& own : shards())
        own.each_part(range, [&](Range part, const float* place) {
          context.copy_to_device(gathered + (part.begin - range.begin), place, bytes_of_floats(part.size()));
        });
      PartsOfProcesses parts;
      for (int process = 0; process < world_.size(); ++process)
        parts.push_back({part_of_range(range, store_.trained_of(process)),
                         part_of_range(range, store_.frozen_of(process))});
      world_.all_gather_parts_in_place(parts, {gathered, static_cast<size_t>(range.size())});
    }
    replicas.barrier();
    if (to) context.copy_to_device(to, gathered, bytes_of_floats(range.size()));
  }

  /// Sums the gradients of a range. For each subtree of this process, each replica sums its share of the
  /// range over the subtree's replicas. Then replica 0 starts the sum over the processes.
  void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    if (range.size() == 0) return;
    const int rank = shard.worker->rank();
    Turn& turn = turns_[static_cast<size_t>(rank)];
    if (turn.filled - turn.added == buckets_.size()) add_sum(turn, shard);
    Bucket& bucket = buckets_[turn.filled++ % buckets_.size()];
    // share_pointers() waits for all replicas. When it returns, every replica has added the sum that the
    // bucket contained before, so the bucket can be overwritten.
    const std::span<float* const> all = replicas.share_pointers(const_cast<float*>(gradient));
    const Range share = part_of(range.size(), rank, static_cast<int>(all.size()), 16);
    for (size_t node = 0; node < nodes_.size(); ++node) {
      const auto first = static_cast<size_t>(nodes_[node].begin - store_.ranks().first());
      const auto count = static_cast<size_t>(nodes_[node].size());
      const std::vector<const float*> parts(all.begin() + static_cast<std::ptrdiff_t>(first),
                                            all.begin() + static_cast<std::ptrdiff_t>(first + count));
      SumTree(static_cast<int>(count)).add<float>(parts, bucket.nodes[node].f32(), share);
    }
    replicas.barrier();  // no replica may overwrite gradients that another replica still reads
    if (rank == 0) start(bucket, range);
  }

  void start(Bucket& bucket, Range range) {
    std::vector<Range> parts;
    for (int process = 0; process < world_.size(); ++process)
      parts.push_back(part_of_range(range, store_.trained_of(process)));
    std::vector<float*> sums;
    for (const Buffer& sum : bucket.nodes) sums.push_back(sum.f32());
    bucket.range = range;
    bucket.sum = world_.background_sum_of_parts(store_.ranks(), std::move(parts));
    bucket.sum->start(sums);
  }

  /// Waits for the oldest sum that this replica has not added yet, and adds the replica's shard of this sum
  /// to the gradient. The sum has been started, because replica 0 starts a sum before a barrier that all
  /// replicas pass.
  void add_sum(Turn& turn, const Shard& shard) {
    const Bucket& bucket = buckets_[turn.added++ % buckets_.size()];
    bucket.sum->wait();
    if (const Range mine = overlap(bucket.range, shard.trained); mine.size() > 0)
      shard.worker->ops().scale_add(sum(*shard.worker).f32() + (mine.begin - shard.trained.begin),
                                    bucket.nodes[0].f32() + (mine.begin - bucket.range.begin), 1.0f, 1.0f,
                                    mine.size());
  }

  World& world_;
  const std::vector<Range> nodes_;  // subtrees (sum_tree.h) whose gradients this process adds
  Buffer gathered_;                 // memory for a gathered layer (level `parameters`)
  std::array<Bucket, 2> buckets_;
  std::vector<Turn> turns_;  // indexed by replica; each is used by its own thread
};

}  // namespace

std::unique_ptr<GradientReducer> make_process_sharded_reducer(const ParameterLayout& layout,
                                                              const ShardedStore& store,
                                                              std::span<Collective* const> members,
                                                              ShardLevel level) {
  return std::make_unique<ProcessShardedReducer>(layout, store, members, level);
}

}  // namespace dtrain
