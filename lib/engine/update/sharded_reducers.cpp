// Gradient reducers for sharded state.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "collective/sum_tree.h"
#include "engine/update/sharded_reducer.h"
#include "program/plan_options.h"

namespace dtrain {

namespace {

/// The reducer for replicas on the CPUs of one process. Each thread reads the parts of other replicas
/// directly from their memory. These parts do not change while a step computes.
class HostShardedReducer final : public ShardedReducer {
 public:
  using ShardedReducer::ShardedReducer;
  std::string_view where() const override { return "in parts, in the host's memory"; }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    replicas.reduce_scatter(worker.gradients(), share_of(worker.rank()));
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    store_.gather_updated(worker, replicas);
  }

 private:
  void gather(const Shard& shard, Collective&, Range range, float* to) override {
    if (!to) return;
    Context& context = shard.worker->context();
    for (const Shard& other : shards())
      other.each_part(range, [&](Range part, const float* place) {
        context.copy_to_device(to + (part.begin - range.begin), place, bytes_of_floats(part.size()));
      });
  }

  /// Sums the gradients of all ranks in the order of the tree over ranks (sum_tree.h), and adds the result to
  /// this replica's gradient.
  void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    const std::span<float* const> all = replicas.share_pointers(const_cast<float*>(gradient));
    const Range mine = overlap(range, shard.trained);
    float* const to = sum(*shard.worker).f32() + (mine.begin - shard.trained.begin);
    const SumTree tree(static_cast<int>(all.size()));
    std::vector<const float*> parts;
    for (const float* part : all) parts.push_back(part ? part + (mine.begin - range.begin) : nullptr);
    std::vector<float> sums(static_cast<size_t>(mine.size()));
    tree.add<float>(parts, sums.data(), {0, mine.size()});
    if (mine.size() > 0) shard.worker->ops().scale_add(to, sums.data(), 1.0f, 1.0f, mine.size());
    replicas.barrier();  // no rank may overwrite data that another rank still reads
  }
};

/// The reducer for one GPU per replica. To gather parameters, the owner of each part broadcasts the part. To
/// reduce gradients, the owner of each part receives the sum of the gradients of the part.
class NcclShardedReducer final : public ShardedReducer {
 public:
  NcclShardedReducer(const ParameterLayout& layout, const ShardedStore& store,
                     std::span<Worker* const> workers, std::span<Collective* const> members, ShardLevel level)
      : ShardedReducer(layout, store, members, level), staging_(workers.size()) {
    join_nccl(workers, store.world());
  }
  std::string_view where() const override { return "in parts, by NCCL"; }
  size_t staging_bytes(const Worker& /*worker*/) const override {
    return bytes_of_floats(staging_floats(layout_, level()));
  }
  void allocate_staging(Worker& worker) override {
    staging_[static_cast<size_t>(worker.rank())] = worker.context().allocate(staging_bytes(worker));
  }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    float* const gradients = worker.gradients();
    together(worker, replicas, [&] {
      each_owner({0, layout_.with_gradient()}, [&](int root, Range part) {
        nccl(worker).reduce(gradients + part.begin, gradients + part.begin, part.size(), root);
      });
      nccl(worker).join();
    });
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    const ParameterMemory& memory = *store_.shard_of(worker).memory;
    together(worker, replicas, [&] {
      each_owner({0, layout_.with_gradient()}, [&](int root, Range part) {
        float* const values = memory.values(part.begin);
        nccl(worker).broadcast(values, values, part.size(), root);
      });
      nccl(worker).join();
    });
    memory.refresh_copy(worker.ops());
  }

 private:
  float* staging(const Worker& worker) const { return staging_[static_cast<size_t>(worker.rank())].f32(); }

  /// Calls work(root, part) for each part of `range`. `root`: rank of the replica that stores the part, among
  /// the replicas of all processes.
  template <class Work>
  void each_owner(Range range, const Work& work) const {
    for (int root = 0; root < store_.ranks().total(); ++root)
      for (const Range its : {store_.trained_of_replica(root), store_.frozen_of_replica(root)})
        if (const Range part = overlap(range, its); part.size() > 0) work(root, part);
  }

  /// Runs `call`, which makes collective calls. When a pass runs for the first time, all ranks synchronize
  /// before and after `call`, because no rank may allocate memory while the GPU of another rank waits for
  /// this rank.
  template <class Call>
  void together(Worker& worker, Collective& replicas, const Call& call) {
    if (!is_first_time(worker)) return call();
    worker.context().synchronize();
    replicas.barrier();
    call();
    nccl(worker).join();
    worker.context().synchronize();
    replicas.barrier();
  }

  void gather(const Shard& shard, Collective& replicas, Range range, float* to) override {
    Worker& worker = *shard.worker;
    float* const target = to ? to : staging(worker);
    together(worker, replicas, [&] {
      each_owner(range, [&](int root, Range part) {
        float* const gathered = target + (part.begin - range.begin);
        const float* place = gathered;  // NCCL reads `place` on the rank of the owner only
        if (root == store_.ranks().first() + worker.rank())
          shard.each_part(part, [&](Range, const float* values) { place = values; });
        nccl(worker).broadcast(place, gathered, part.size(), root);
      });
      if (!to) nccl(worker).join();
    });
  }
  void join_gathered(const Shard& shard) override { nccl(*shard.worker).join(); }

  /// Writes the sums to the staging buffer, and then adds this replica's part of the sums to its gradient.
  void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    Worker& worker = *shard.worker;
    float* const spare = staging(worker);
    if (!gradient) worker.ops().fill(spare, 0.0f, range.size());
    const float* const source = gradient ? gradient : spare;
    together(worker, replicas, [&] {
      each_owner(range, [&](int root, Range part) {
        nccl(worker).reduce(source + (part.begin - range.begin), spare + (part.begin - range.begin),
                            part.size(), root);
      });
      nccl(worker).join();
    });
    if (const Range mine = overlap(range, shard.trained); mine.size() > 0)
      worker.ops().scale_add(sum(worker).f32() + (mine.begin - shard.trained.begin),
                             spare + (mine.begin - range.begin), 1.0f, 1.0f, mine.size());
  }

  std::vector<Buffer> staging_;  // indexed by rank
};

}  // namespace

/// Returns the size of the staging buffer in floats. The buffer holds one gathered layer, or the gradients of
/// a bucket and one more layer, or all statistics.
int64_t staging_floats(const ParameterLayout& layout, ShardLevel level) {
  if (level < ShardLevel::gradients) return 0;
  std::map<int, int64_t> by_node;
  for (const ParameterSlice& slice : layout.slices())
    by_node[slice.node] += slice.elements() + ShardedStore::kShardGrain;
  int64_t most = 0;
  for (const auto& [node, floats] : by_node) most = std::max(most, floats);
  return std::max(most + layout.trained() / kGradientBuckets + ShardedStore::kShardGrain,
                  layout.with_gradient() - layout.trained());
}

std::unique_ptr<GradientReducer> make_sharded_reducer(const ParameterLayout& layout,
                                                      const ShardedStore& store,
                                                      std::span<Worker* const> workers,
                                                      std::span<Collective* const> members,
                                                      ShardLevel level) {
  const auto gpus =
      std::count_if(workers.begin(), workers.end(), [](const Worker* worker) { return worker->on_gpu(); });
  if (gpus == 0) return std::make_unique<HostShardedReducer>(layout, store, members, level);
  if (gpus != static_cast<std::ptrdiff_t>(workers.size()))
    throw UserError("sharded: the devices include both CPUs and GPUs; use only CPUs, or only GPUs");
  if (!nccl_available())
    throw UserError(
        "sharded: several GPUs need NCCL, which was not found; run `dtrain gpus` to see "
        "the libraries that were found");
  return std::make_unique<NcclShardedReducer>(layout, store, workers, members, level);
}

}  // namespace dtrain
