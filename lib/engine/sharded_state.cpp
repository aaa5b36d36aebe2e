#include "engine/sharded_state.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/last_gradient.h"
#include "engine/sync_update.h"

namespace dtrain {

namespace {

constexpr int64_t kPartGrain = 16;  // floats

/// What one replica keeps: parts of the layout, and their memory.
struct Shard {
  Worker* worker = nullptr;
  Range trained;  // the part of parameters with a gradient, including statistics
  Range frozen;
  std::unique_ptr<ParameterMemory> memory;  // of `trained`; of the whole layout unless that is sharded
  Buffer frozen_values;                     // allocated if parameters are sharded
  Buffer gradient;                          // this step's sum over `trained`, if gradients are sharded
  bool first_time = true;                   // see StateShards::begin()

  /// Calls work(part, values) for each part of the parameters in `range` that this replica keeps. `values`:
  /// the part's first value. For sharded parameters only.
  template <class Work>
  void each_part(Range range, const Work& work) const {
    if (const Range part = overlap(range, trained); part.size() > 0) work(part, memory->values(part.begin));
    if (const Range part = overlap(range, frozen); part.size() > 0)
      work(part, frozen_values.f32() + (part.begin - frozen.begin));
  }
};

/// Base of the implementations of sharded state. Subclasses implement how parts are gathered and reduced.
class ShardedState : public GradientSync {
 public:
  explicit ShardedState(const GradientSyncRequest& request)
      : layout_(request.layout()),
        update_(request.update),
        norm_(request.model, request.slot, request.workers),
        level_(request.sharded),
        gradient_(request.workers.size()) {
    const int count = static_cast<int>(request.workers.size());
    const int64_t frozen = layout_.size() - layout_.with_gradient();
    for (int rank = 0; rank < count; ++rank) {
      Shard shard;
      shard.worker = request.workers[static_cast<size_t>(rank)];
      shard.trained = part_of(layout_.with_gradient(), rank, count, kPartGrain);
      const Range part = part_of(frozen, rank, count, kPartGrain);
      shard.frozen = {layout_.with_gradient() + part.begin, layout_.with_gradient() + part.end};
      const HeldRanges held{cuts_parameters() ? shard.trained : Range{0, layout_.size()},
                            update_.trained(shard.trained)};
      shard.memory = std::make_unique<ParameterMemory>(shard.worker->ops().compute_type(), held);
      shards_.push_back(std::move(shard));
    }
    for (size_t rank = 0; rank < shards_.size(); ++rank)
      views_.push_back(std::make_unique<View>(*this, shards_[rank], *request.members[rank]));
  }

  const ParameterMemory& memory_of(const Worker& worker) const override { return *shard_of(worker).memory; }
  StateShards* shards_of(const Worker& worker) override {
    return views_[static_cast<size_t>(worker.rank())].get();
  }

  StateBytes state_bytes(const Worker& worker) const override {
    const Shard& shard = shard_of(worker);
    return {.parameters = shard.memory->bytes() + frozen_bytes(shard) + passing_bytes(),
            .slots = update_.slots().size() * shard.memory->slot_bytes(),
            .gradients = gradient_bytes(shard)};
  }
  void allocate_parameters(Worker& worker) override {
    Shard& shard = shard_of(worker);
    shard.memory->allocate(worker.ops());
    shard.frozen_values = worker.context().allocate(frozen_bytes(shard));
  }
  void allocate_slots(Worker& worker) override {
    Shard& shard = shard_of(worker);
    shard.memory->allocate_slots(worker.ops(), update_.slots());
    shard.gradient = worker.context().allocate(gradient_bytes(shard));
  }
  bool on_gpu() const override { return shards_[0].worker->on_gpu(); }
  std::span<float> host_view(std::string_view) override { return {}; }

  void read_state(std::string_view array, Range range, float* to) override {
    each_place(array, range, false, [&](Worker& worker, float* place, Range part) {
      worker.context().copy_to_host(to + (part.begin - range.begin), place, bytes_of_floats(part.size()));
    });
  }
  void write_state(std::string_view array, Range range, const float* from) override {
    each_place(array, range, true, [&](Worker& worker, float* place, Range part) {
      worker.context().copy_to_device(place, from + (part.begin - range.begin), bytes_of_floats(part.size()));
    });
  }
  bool read_gradient(Range range, float* to) override { return gradient_.read(update_, range, to); }
  void finish_writing(Worker& worker) override {
    shard_of(worker).memory->refresh_copy(worker.ops());
    worker.context().synchronize();
  }

  /// Zeros the gradient at the start of a training step. Otherwise keeps the last step's gradient, which may
  /// be read until the next step.
  void begin(Worker& worker, bool trains) override {
    Shard& shard = shard_of(worker);
    if (trains && shard.gradient.data())
      worker.context().enqueue_zero(shard.gradient.data(), shard.gradient.bytes());
  }

  void end(Worker& worker, Collective& replicas, Collective& everyone) override {
    Shard& shard = shard_of(worker);
    if (level_ == ShardLevel::optimizer) reduce_whole(shard, replicas);
    float* const gradient =
        shard.gradient.data() ? shard.gradient.f32() : worker.gradients() + shard.trained.begin;
    all_reduce_sums(worker, worker, everyone, update_, norm_, gradient, shard.trained);
    update_part(worker, replicas, update_, *shard.memory, gradient, shard.trained);
    gradient_.set(replicas.rank(), worker, gradient, shard.trained);
    if (!cuts_parameters()) gather_updated(shard, replicas);
  }

 protected:
  static size_t bytes_of_floats(int64_t n) { return static_cast<size_t>(n) * sizeof(float); }
  ShardLevel level() const { return level_; }
  /// Bytes of staging memory on each replica's device.
  virtual size_t passing_bytes() const { return 0; }
  /// Gathers the parameters in `range` into `to`. If `to` is null, only takes part in the collective call.
  virtual void gather(Shard& shard, Collective& replicas, Range range, float* to) = 0;
  virtual void join(Shard&) {}
  /// See StateShards::reduce().
  virtual void reduce(Shard& shard, Collective& replicas, Range range, const float* gradient) = 0;
  /// Reduces the workers' whole gradients, so that each worker's own part contains the sum.
  virtual void reduce_whole(Shard& shard, Collective& replicas) = 0;
  /// Distributes each replica's updated part of the parameters to all replicas.
  virtual void gather_updated(Shard& shard, Collective& replicas) = 0;

  const ParameterLayout& layout_;
  const Update& update_;
  const GradientNorm norm_;
  std::vector<Shard> shards_;  // by rank

 private:
  /// One replica's view of the state.
  class View final : public StateShards {
   public:
    View(ShardedState& state, Shard& shard, Collective& replicas)
        : state_(state), shard_(shard), replicas_(replicas) {}
    void begin(bool first_time) override { shard_.first_time = first_time; }
    void gather(Range range, float* to) override { state_.gather(shard_, replicas_, range, to); }
    void join() override { state_.join(shard_); }
    void reduce(Range range, const float* gradient) override {
      state_.reduce(shard_, replicas_, range, gradient);
    }

   private:
    ShardedState& state_;
    Shard& shard_;
    Collective& replicas_;
  };

  bool cuts_parameters() const { return level_ == ShardLevel::parameters; }
  size_t frozen_bytes(const Shard& shard) const {
    return cuts_parameters() ? bytes_of_floats(shard.frozen.size()) : 0;
  }
  size_t gradient_bytes(const Shard& shard) const {
    return level_ >= ShardLevel::gradients ? bytes_of_floats(shard.trained.size()) : 0;
  }
  Shard& shard_of(const Worker& worker) { return shards_[static_cast<size_t>(worker.rank())]; }
  const Shard& shard_of(const Worker& worker) const { return shards_[static_cast<size_t>(worker.rank())]; }

  /// Calls work(worker, place, part) for the storage of `range` of an array; for all copies if it is
  /// replicated and `all_copies` is set, else for one.
  template <class Work>
  void each_place(std::string_view array, Range range, bool all_copies, const Work& work) {
    if (array == kParameters && !cuts_parameters()) {
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
      const Range part = overlap(range, shard.memory->held().slots);
      if (part.size() > 0) work(*shard.worker, shard.memory->slot(index_of(array), part.begin), part);
    }
  }

  size_t index_of(std::string_view array) const {
    const auto& slots = update_.slots();
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].name == array) return i;
    throw std::logic_error("the state has no array '" + std::string(array) + "'");
  }

  const ShardLevel level_;
  std::vector<std::unique_ptr<View>> views_;
  LastGradient gradient_;
};

/// For CPU replicas: each thread reads the other replicas' parts directly from memory, where they are
/// unchanged while a step computes.
class ShardsOnHost final : public ShardedState {
 public:
  using ShardedState::ShardedState;
  std::string_view where() const override { return "in parts, in the host's memory"; }

 private:
  void gather(Shard& shard, Collective&, Range range, float* to) override {
    if (!to) return;
    Context& context = shard.worker->context();
    for (const Shard& other : shards_)
      other.each_part(range, [&](Range part, const float* place) {
        context.copy_to_device(to + (part.begin - range.begin), place, bytes_of_floats(part.size()));
      });
  }

  /// Sums in rank order.
  void reduce(Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    const std::span<float* const> all = replicas.share_pointers(const_cast<float*>(gradient));
    const Range mine = overlap(range, shard.trained);
    float* const sum = shard.gradient.f32() + (mine.begin - shard.trained.begin);
    for (const float* part : all)
      if (part && mine.size() > 0)
        shard.worker->ops().scale_add(sum, part + (mine.begin - range.begin), 1.0f, 1.0f, mine.size());
    replicas.barrier();  // no rank may overwrite data that another still reads
  }

  void reduce_whole(Shard& shard, Collective& replicas) override {
    replicas.reduce_scatter(shard.worker->gradients(), layout_.with_gradient());
  }

  void gather_updated(Shard& shard, Collective& replicas) override {
    replicas.barrier();
    for (const Shard& other : shards_)
      if (&other != &shard && other.trained.size() > 0)
        shard.worker->context().copy_to_device(shard.memory->values(other.trained.begin),
                                               other.memory->values(other.trained.begin),
                                               bytes_of_floats(other.trained.size()));
    replicas.barrier();  // no rank may update data that another still reads
  }
};

/// For one GPU per replica: the owner of a part broadcasts it, and parts of gradients are reduced to their
/// owner.
class ShardsByNccl final : public ShardedState {
 public:
  explicit ShardsByNccl(const GradientSyncRequest& request) : ShardedState(request) {
    std::vector<Context*> contexts;
    for (Worker* worker : request.workers) contexts.push_back(&worker->context());
    members_ = make_nccl_group(contexts, request.world);
    spare_.resize(contexts.size());
  }
  void allocate_parameters(Worker& worker) override {
    ShardedState::allocate_parameters(worker);
    spare_[static_cast<size_t>(worker.rank())] = worker.context().allocate(passing_bytes());
  }
  std::string_view where() const override { return "in parts, by NCCL"; }
  void check() override {
    for (const auto& member : members_) member->check();
  }
  void abort() noexcept override {
    for (const auto& member : members_) member->abort();
  }
  std::string failure() override { return members_[0]->failure(); }

 private:
  size_t rank_of(const Shard& shard) const { return static_cast<size_t>(shard.worker->rank()); }
  size_t passing_bytes() const override { return bytes_of_floats(passing_floats(layout_, level())); }

  /// Runs `call`, which runs collectives. The first time, all ranks synchronize before and after it, because
  /// no rank may allocate while another's GPU waits for it.
  template <class Call>
  void together(Shard& shard, Collective& replicas, const Call& call) {
    if (!shard.first_time) return call();
    shard.worker->context().synchronize();
    replicas.barrier();
    call();
    join(shard);
    shard.worker->context().synchronize();
    replicas.barrier();
  }

  void gather(Shard& shard, Collective& replicas, Range range, float* to) override {
    const size_t rank = rank_of(shard);
    float* const target = to ? to : spare_[rank].f32();
    together(shard, replicas, [&] {
      for (const Shard& other : shards_)
        other.each_part(range, [&](Range part, const float* place) {
          members_[rank]->broadcast(place, target + (part.begin - range.begin), part.size(),
                                    other.worker->rank());
        });
      if (!to) join(shard);
    });
  }
  void join(Shard& shard) override { members_[rank_of(shard)]->join(); }

  /// Reduces into the staging buffer and adds the sums from there.
  void reduce(Shard& shard, Collective& replicas, Range range, const float* gradient) override {
    const size_t rank = rank_of(shard);
    float* const spare = spare_[rank].f32();
    Ops& ops = shard.worker->ops();
    if (!gradient) ops.fill(spare, 0.0f, range.size());
    const float* const source = gradient ? gradient : spare;
    together(shard, replicas, [&] {
      for (const Shard& other : shards_) {
        const Range part = overlap(range, other.trained);
        members_[rank]->reduce(source + (part.begin - range.begin), spare + (part.begin - range.begin),
                               part.size(), other.worker->rank());
      }
      join(shard);
    });
    if (const Range mine = overlap(range, shard.trained); mine.size() > 0)
      ops.scale_add(shard.gradient.f32() + (mine.begin - shard.trained.begin),
                    spare + (mine.begin - range.begin), 1.0f, 1.0f, mine.size());
  }

  void reduce_whole(Shard& shard, Collective& replicas) override {
    float* const gradients = shard.worker->gradients();
    together(shard, replicas, [&] {
      for (const Shard& other : shards_)
        members_[rank_of(shard)]->reduce(gradients + other.trained.begin, gradients + other.trained.begin,
                                         other.trained.size(), other.worker->rank());
      join(shard);
    });
  }

  void gather_updated(Shard& shard, Collective& replicas) override {
    together(shard, replicas, [&] {
      for (const Shard& other : shards_) {
        if (other.trained.size() == 0) continue;
        float* const values = shard.memory->values(other.trained.begin);
        members_[rank_of(shard)]->broadcast(values, values, other.trained.size(), other.worker->rank());
      }
      join(shard);
    });
    shard.memory->refresh_copy(shard.worker->ops());
  }

  std::vector<std::unique_ptr<DeviceCollective>> members_;
  std::vector<Buffer> spare_;  // staging buffer, by rank
};

}  // namespace

/// Gathers at most one layer at a time, and reduces at most a bucket plus one layer, or all statistics.
int64_t passing_floats(const ParameterLayout& layout, ShardLevel level) {
  if (level < ShardLevel::gradients) return 0;
  std::map<int, int64_t> by_node;
  for (const ParameterSlice& slice : layout.slices()) by_node[slice.node] += slice.elements() + kPartGrain;
  int64_t most = 0;
  for (const auto& [node, floats] : by_node) most = std::max(most, floats);
  return std::max(most + layout.trained() / kGradientBuckets + kPartGrain,
                  layout.with_gradient() - layout.trained());
}

std::unique_ptr<GradientSync> make_sharded_state(const GradientSyncRequest& request) {
  const auto on_gpu = std::count_if(request.workers.begin(), request.workers.end(),
                                    [](const Worker* worker) { return worker->on_gpu(); });
  if (on_gpu == 0) return std::make_unique<ShardsOnHost>(request);
  if (!nccl_available())
    throw UserError("sharded: several GPUs need NCCL, which was not found (dtrain gpus)");
  return std::make_unique<ShardsByNccl>(request);
}

}  // namespace dtrain
