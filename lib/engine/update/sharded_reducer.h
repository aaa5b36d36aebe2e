// The common part of the reducers for sharded state.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/state/sharded_store.h"
#include "engine/update/gradient_reducer.h"

namespace dtrain {

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
    sum(worker) = worker.context().allocate(ShardedReducer::gradient_bytes(worker));
  }
  /// Sets the gradient to zero. Before this call, the last step's gradient can still be read.
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

  /// Gathers the parameters in `range` into `to`. If `to` is null, this replica only takes part in the
  /// collective call.
  virtual void gather(const Shard& shard, Collective& replicas, Range range, float* to) = 0;
  virtual void join_gathered(const Shard&) {}
  /// See StateShards::reduce().
  virtual void reduce(const Shard& shard, Collective& replicas, Range range, const float* gradient) = 0;

  const ParameterLayout& layout_;
  const ShardedStore& store_;

 private:
  /// The sharded state from the point of view of one replica.
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

  const ShardLevel level_;
  std::vector<Buffer> sums_;      // indexed by rank
  std::vector<char> first_time_;  // indexed by rank: see StateShards::begin()
  std::vector<std::unique_ptr<View>> views_;
};

}  // namespace dtrain
