// Reducers of gradients for sharded state.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "collective/sum_tree.h"
#include "engine/update/gradient_reducer.h"
#include "program/plan_options.h"

namespace dtrain {

namespace {

/// Base of the reducers for sharded state. With level `optimizer`, a step ends by reducing whole gradients
/// and gathering the updated parameters; with level `gradients` or `parameters`, the backward pass reduces
/// gradients through StateShards.
class ShardedReducer : public GradientReducer {
 public:
  ShardedReducer(const ParameterLayout& layout, const ShardedStore& store,
                 std::span<Collective* const> members, ShardLevel level)
      : layout_(layout), store_(store), level_(level), sums_(members.size()), first_time_(members.size(), 1) {
    for (size_t rank = 0; rank < members.size(); ++rank)
      views_.push_back(std::make_unique<View>(*this, store_.shards()[rank], *members[rank]));
  }

  GradientReduction reduction() const override {
    return has_sharded_gradients() ? GradientReduction::in_backward : GradientReduction::reduce_scatter;
  }
  Range share_of(int rank) const override { return store_.shards()[static_cast<size_t>(rank)].trained; }
  float* sum_of(Worker& worker) override {
    return has_sharded_gradients() ? sum(worker).f32() : worker.gradients() + share_of(worker.rank()).begin;
  }
  size_t gradient_bytes(const Worker& worker) const override {
    return has_sharded_gradients() ? bytes_of_floats(share_of(worker.rank()).size()) : 0;
  }
  void allocate_gradients(Worker& worker) override {
    sum(worker) = worker.context().allocate(gradient_bytes(worker));
  }
  /// Zeros the gradient. Until then the last step's gradient may be read.
  void begin(Worker& worker) override {
    if (Buffer& gradient = sum(worker); gradient.data())
      worker.context().enqueue_zero(gradient.data(), gradient.bytes());
  }
  StateShards* shards_of(const Worker& worker) override {
    return views_[static_cast<size_t>(worker.rank())].get();
  }

 protected:
  ShardLevel level() const { return level_; }
  std::span<const Shard> shards() const { return store_.shards(); }
  bool is_first_time(const Worker& worker) const {
    return first_time_[static_cast<size_t>(worker.rank())] != 0;
  }
  /// The sum of this step's gradients in the worker's share; used if gradients are sharded.
  Buffer& sum(const Worker& worker) { return sums_[static_cast<size_t>(worker.rank())]; }

  /// Gathers the parameters in `range` into `to`. If `to` is null, only takes part in the collective call.
  virtual void gather(const Shard& shard, Collective& replicas, Range range, float* to) = 0;
  virtual void join_gathered(const Shard&) {}
  /// See StateShards::reduce().
  virtual void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) = 0;

  const ParameterLayout& layout_;

 private:
  /// One replica's view of the state.
  class View final : public StateShards {
   public:
    View(ShardedReducer& reducer, const Shard& shard, Collective& replicas)
        : reducer_(reducer), shard_(shard), replicas_(replicas) {}
    void begin(bool first_time) override {
      reducer_.first_time_[static_cast<size_t>(shard_.worker->rank())] = first_time ? 1 : 0;
    }
    void gather(Range range, float* to) override { reducer_.gather(shard_, replicas_, range, to); }
    void join() override { reducer_.join_gathered(shard_); }
    void reduce(Range range, const float* gradient) override {
      reducer_.reduce(shard_, replicas_, range, gradient);
    }

   private:
    ShardedReducer& reducer_;
    const Shard& shard_;
    Collective& replicas_;
  };

  bool has_sharded_gradients() const { return level_ >= ShardLevel::gradients; }

  const ShardedStore& store_;
  const ShardLevel level_;
  std::vector<Buffer> sums_;      // by rank
  std::vector<char> first_time_;  // by rank: see StateShards::begin()
  std::vector<std::unique_ptr<View>> views_;
};

/// For CPU replicas: each thread reads the other replicas' parts directly from memory, where they are
/// unchanged while a step computes.
class HostShardedReducer final : public ShardedReducer {
 public:
  using ShardedReducer::ShardedReducer;
  std::string_view where() const override { return "in parts, in the host's memory"; }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    replicas.reduce_scatter(worker.gradients(), share_of(worker.rank()));
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    const Shard& mine = shards()[static_cast<size_t>(worker.rank())];
    replicas.barrier();
    for (const Shard& other : shards())
      if (&other != &mine && other.trained.size() > 0)
        worker.context().copy_to_device(mine.memory->values(other.trained.begin),
                                        other.memory->values(other.trained.begin),
                                        bytes_of_floats(other.trained.size()));
    replicas.barrier();  // no rank may update data that another still reads
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

  /// Adds the gradients of all ranks, in the order of the tree over ranks, to the sum.
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
    replicas.barrier();  // no rank may overwrite data that another still reads
  }
};

/// For one GPU per replica: the owner of a part broadcasts it, and parts of gradients are reduced to their
/// owner.
class NcclShardedReducer final : public ShardedReducer {
 public:
  NcclShardedReducer(const ParameterLayout& layout, const ShardedStore& store,
                     std::span<Worker* const> workers, std::span<Collective* const> members, ShardLevel level,
                     World& world)
      : ShardedReducer(layout, store, members, level), staging_(workers.size()) {
    join_nccl(workers, world);
  }
  std::string_view where() const override { return "in parts, by NCCL"; }
  size_t staging_bytes() const override { return bytes_of_floats(staging_floats(layout_, level())); }
  void allocate_staging(Worker& worker) override {
    staging_[static_cast<size_t>(worker.rank())] = worker.context().allocate(staging_bytes());
  }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    float* const gradients = worker.gradients();
    together(worker, replicas, [&] {
      for (const Shard& other : shards())
        nccl(worker).reduce(gradients + other.trained.begin, gradients + other.trained.begin,
                            other.trained.size(), other.worker->rank());
      nccl(worker).join();
    });
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    const ParameterMemory& memory = *shards()[static_cast<size_t>(worker.rank())].memory;
    together(worker, replicas, [&] {
      for (const Shard& other : shards()) {
        if (other.trained.size() == 0) continue;
        float* const values = memory.values(other.trained.begin);
        nccl(worker).broadcast(values, values, other.trained.size(), other.worker->rank());
      }
      nccl(worker).join();
    });
    memory.refresh_copy(worker.ops());
  }

 private:
  float* staging(const Worker& worker) const { return staging_[static_cast<size_t>(worker.rank())].f32(); }

  /// Runs `call`, which makes collective calls. The first time, all ranks synchronize before and after it,
  /// because no rank may allocate memory while another rank's GPU waits for it.
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
      for (const Shard& other : shards())
        other.each_part(range, [&](Range part, const float* place) {
          nccl(worker).broadcast(place, target + (part.begin - range.begin), part.size(),
                                 other.worker->rank());
        });
      if (!to) nccl(worker).join();
    });
  }
  void join_gathered(const Shard& shard) override { nccl(*shard.worker).join(); }

  /// Reduces into the staging buffer and adds the sums from there.
  void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    Worker& worker = *shard.worker;
    float* const spare = staging(worker);
    if (!gradient) worker.ops().fill(spare, 0.0f, range.size());
    const float* const source = gradient ? gradient : spare;
    together(worker, replicas, [&] {
      for (const Shard& other : shards()) {
        const Range part = overlap(range, other.trained);
        nccl(worker).reduce(source + (part.begin - range.begin), spare + (part.begin - range.begin),
                            part.size(), other.worker->rank());
      }
      nccl(worker).join();
    });
    if (const Range mine = overlap(range, shard.trained); mine.size() > 0)
      worker.ops().scale_add(sum(worker).f32() + (mine.begin - shard.trained.begin),
                             spare + (mine.begin - range.begin), 1.0f, 1.0f, mine.size());
  }

  std::vector<Buffer> staging_;  // by rank
};

}  // namespace

/// At most one layer is gathered at a time, and at most a bucket plus one layer, or all statistics, are
/// reduced.
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
                                                      std::span<Collective* const> members, ShardLevel level,
                                                      World& world) {
  const auto gpus =
      std::count_if(workers.begin(), workers.end(), [](const Worker* worker) { return worker->on_gpu(); });
  if (gpus == 0) return std::make_unique<HostShardedReducer>(layout, store, members, level);
  if (gpus != static_cast<std::ptrdiff_t>(workers.size()))
    throw UserError("sharded: the devices are CPUs and GPUs; use only CPUs, or only GPUs");
  if (!nccl_available())
    throw UserError("sharded: several GPUs need NCCL, which was not found (dtrain gpus)");
  return std::make_unique<NcclShardedReducer>(layout, store, workers, members, level, world);
}

}  // namespace dtrain
