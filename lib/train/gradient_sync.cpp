#include "train/gradient_sync.h"

#include <algorithm>

#include "train/replica.h"

namespace dtrain {

namespace {

using Memories = std::vector<std::unique_ptr<ParameterMemory>>;
using ReplicaSpan = std::span<const std::unique_ptr<Replica>>;

/// Where the whole gradient is at hand.
void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole) {
  if (update.needs_norm()) {
    worker.ops().sum_of_squares(worker.gradients(), worker.squares(), update.trained(whole).size());
    worker.ops().update_gradient_scale(update.gradient_rule(), worker.squares(), worker.state());
  }
  update.apply(worker.ops(), worker.state(), memory, worker.gradients(), whole);
}

/// One replica: the update follows the computation.
class SingleReplica final : public GradientSync {
 public:
  SingleReplica(ReplicaSpan replicas, const ParameterLayout& layout, const Update& update)
      : replica_(*replicas[0]), update_(update), whole_{0, layout.with_gradient()} {
    memories_.push_back(std::make_unique<ParameterMemory>(replica_.ops().compute_type(), layout));
  }
  std::string_view where() const override { return "in one replica"; }
  ParameterMemory& memory_of(int) override { return *memories_[0]; }
  std::span<const std::unique_ptr<ParameterMemory>> memories() override { return memories_; }
  Worker& owner_of(size_t) override { return replica_; }
  bool runs_ahead() const override { return replica_.on_gpu(); }

  void complete(Replica& replica) override { update_alone(replica, update_, *memories_[0], whole_); }

 private:
  Worker& replica_;
  const Update& update_;
  Range whole_;
  Memories memories_;
};

/// The sum of squares over all members' parts, and what follows from it for each of them.
void all_reduce_norm(Worker& worker, Collective& member, const Update& update, const float* gradient,
                     Range mine) {
  if (!update.needs_norm()) return;
  const Range trained = update.trained(mine);
  double squares = 0;
  if (trained.size() > 0) {
    worker.ops().sum_of_squares(gradient + trained.begin, worker.squares(), trained.size());
    worker.context().copy_to_host(&squares, worker.squares(), sizeof(squares));
  }
  member.all_reduce({&squares, 1});
  worker.context().copy_to_device(worker.squares(), &squares, sizeof(squares));
  worker.ops().update_gradient_scale(update.gradient_rule(), worker.squares(), worker.state());
}

/// Several replicas in one memory, the host's or one GPU's: each sums and updates a part for all.
class SharedMemory final : public GradientSync {
 public:
  SharedMemory(ReplicaSpan replicas, const ParameterLayout& layout, const Update& update)
      : owner_(*replicas[0]), update_(update), gradients_(layout.with_gradient()) {
    memories_.push_back(std::make_unique<ParameterMemory>(owner_.ops().compute_type(), layout));
  }
  std::string_view where() const override { return "in one memory"; }
  ParameterMemory& memory_of(int) override { return *memories_[0]; }
  std::span<const std::unique_ptr<ParameterMemory>> memories() override { return memories_; }
  Worker& owner_of(size_t) override { return owner_; }

  void end(Replica& replica, Collective& member) override {
    const auto [gradient, mine] =
        replica.on_gpu() ? sum_on_device(replica, member) : sum_on_host(replica, member);
    all_reduce_norm(replica, member, update_, gradient, mine);
    update_.apply(replica.ops(), replica.state(), *memories_[0], gradient, mine);
    replica.context().synchronize();  // the others read this part in the next step
  }

 private:
  struct Sum {
    const float* gradient;
    Range mine;
  };

  Sum sum_on_host(Replica& replica, Collective& member) const {
    return {replica.gradients(), member.reduce_scatter(replica.gradients(), gradients_)};
  }

  /// Into the first member's buffer, in the order of ranks.
  Sum sum_on_device(Replica& replica, Collective& member) const {
    replica.context().synchronize();
    const std::span<float* const> all = member.share_pointers(replica.gradients());
    const Range mine = part_of(gradients_, member.rank(), member.size(), 16);
    for (size_t i = 1; i < all.size() && mine.size() > 0; ++i)
      replica.ops().scale_add(all[0] + mine.begin, all[i] + mine.begin, 1.0f, 1.0f, mine.size());
    return {all[0], mine};
  }

  Worker& owner_;
  const Update& update_;
  int64_t gradients_;
  Memories memories_;
};

/// A GPU each: every replica has the parameters and makes the whole update; NCCL sums the gradients bucket by
/// bucket while backward goes on.
class NcclAllReduce final : public GradientSync {
 public:
  NcclAllReduce(ReplicaSpan replicas, const ParameterLayout& layout, const Update& update,
                int64_t bucket_bytes)
      : replicas_(replicas), update_(update), whole_{0, layout.with_gradient()}, next_(replicas.size(), 0) {
    std::vector<Context*> contexts;
    for (const auto& replica : replicas) {
      memories_.push_back(std::make_unique<ParameterMemory>(replica->ops().compute_type(), layout));
      contexts.push_back(&replica->context());
    }
    const int64_t bucket = std::max<int64_t>(bucket_bytes / static_cast<int64_t>(sizeof(float)), 1);
    for (int64_t begin = 0; begin < whole_.end; begin += bucket)
      buckets_.push_back({begin, std::min(begin + bucket, whole_.end)});
    members_ = make_nccl_group(contexts);
  }
  ~NcclAllReduce() override {
    for (const auto& replica : replicas_)
      replica->forget_captured_graphs();  // before the group that they call
  }
  std::string_view where() const override { return "by NCCL"; }
  ParameterMemory& memory_of(int rank) override { return *memories_[static_cast<size_t>(rank)]; }
  std::span<const std::unique_ptr<ParameterMemory>> memories() override { return memories_; }
  Worker& owner_of(size_t memory) override { return *replicas_[memory]; }
  bool runs_ahead() const override { return true; }
  void check() override {
    for (const auto& member : members_) member->check();
  }
  void abort() noexcept override {
    for (const auto& member : members_) member->abort();
  }

  void ready(Replica& replica, int64_t end) override {
    const auto rank = static_cast<size_t>(replica.rank());
    for (size_t& next = next_[rank]; next < buckets_.size() && buckets_[next].end <= end; ++next)
      members_[rank]->all_reduce(replica.gradients() + buckets_[next].begin, buckets_[next].size());
  }

  void complete(Replica& replica) override {
    const auto rank = static_cast<size_t>(replica.rank());
    ready(replica, whole_.end);
    next_[rank] = 0;
    members_[rank]->join();
    update_alone(replica, update_, *memories_[rank], whole_);
  }

 private:
  ReplicaSpan replicas_;
  const Update& update_;
  Range whole_;
  std::vector<Range> buckets_;
  std::vector<size_t> next_;  // the bucket that is summed next, by rank
  Memories memories_;
  std::vector<std::unique_ptr<DeviceCollective>> members_;
};

/// Any mixture: the parameters and slots are the host's, GPUs have a copy of the parameters for each step,
/// and gradients meet in the host's memory. Made to be right on every machine, not to be fast.
class HostStaged final : public GradientSync {
 public:
  HostStaged(ReplicaSpan replicas, const ParameterLayout& layout, const Update& update)
      : layout_(layout), update_(update), hosts_(replicas.size()) {
    const int core = available_cores().front();
    for (size_t rank = 0; rank < replicas.size(); ++rank) {
      if (!replicas[rank]->on_gpu()) continue;
      Host& host = hosts_[rank];
      host.worker = std::make_unique<Worker>(static_cast<int>(rank), make_cpu_context({}, {core}, false),
                                             GpuMath{}, layout);
      host.device = std::make_unique<ParameterMemory>(replicas[rank]->ops().compute_type(), layout);
    }
    owner_ = hosts_[0].worker ? hosts_[0].worker.get() : static_cast<Worker*>(replicas[0].get());
    memories_.push_back(std::make_unique<ParameterMemory>(owner_->ops().compute_type(), layout));
  }
  std::string_view where() const override { return "in the host's memory"; }
  std::string advice() const override {
    return nccl_available()
               ? "gradients meet in the host's memory, which is slow: NCCL is for GPUs alone, one replica "
                 "each"
               : "gradients meet in the host's memory, which is slow: there is no NCCL (dtrain gpus)";
  }
  ParameterMemory& memory_of(int rank) override {
    const auto& device = hosts_[static_cast<size_t>(rank)].device;
    return device ? *device : *memories_[0];
  }
  std::span<const std::unique_ptr<ParameterMemory>> memories() override { return memories_; }
  Worker& owner_of(size_t) override { return *owner_; }
  /// A gradient for each GPU's replica.
  size_t host_bytes() const override {
    const auto gpus =
        std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.worker != nullptr; });
    return static_cast<size_t>(gpus * layout_.with_gradient()) * sizeof(float);
  }

  void begin(Replica& replica) override {
    const Host& host = hosts_[static_cast<size_t>(replica.rank())];
    if (!host.device) return;
    replica.context().copy_to_device(host.device->values(), memories_[0]->values(),
                                     static_cast<size_t>(layout_.size()) * sizeof(float));
    host.device->refresh_copy(replica.ops());
  }

  void end(Replica& replica, Collective& member) override {
    Host& host = hosts_[static_cast<size_t>(replica.rank())];
    Worker& on_host = host.worker ? *host.worker : static_cast<Worker&>(replica);
    if (host.worker) {
      replica.context().copy_to_host(on_host.gradients(), replica.gradients(),
                                     static_cast<size_t>(layout_.with_gradient()) * sizeof(float));
      replica.context().copy_to_host(on_host.state(), replica.state(), sizeof(StepState));
    }
    const Range mine = member.reduce_scatter(on_host.gradients(), layout_.with_gradient());
    all_reduce_norm(on_host, member, update_, on_host.gradients(), mine);
    update_.apply(on_host.ops(), on_host.state(), *memories_[0], on_host.gradients(), mine);
    if (host.worker) replica.context().copy_to_device(replica.state(), on_host.state(), sizeof(StepState));
  }

 private:
  /// What a GPU's replica needs of the host.
  struct Host {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<ParameterMemory> device;
  };

  const ParameterLayout& layout_;
  const Update& update_;
  std::vector<Host> hosts_;
  Worker* owner_ = nullptr;
  Memories memories_;
};

bool same_memory(ReplicaSpan replicas) {
  const DeviceId first = replicas[0]->context().device();
  return std::all_of(replicas.begin(), replicas.end(), [&](const auto& replica) {
    const DeviceId device = replica->context().device();
    return device == first || (device.kind == first.kind && first.kind == DeviceId::Kind::cpu);
  });
}

bool a_gpu_each(ReplicaSpan replicas) {
  std::vector<int> seen;
  for (const auto& replica : replicas) {
    if (!replica->on_gpu()) return false;
    seen.push_back(replica->context().device().index);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

}  // namespace

std::unique_ptr<GradientSync> make_gradient_sync(ReplicaSpan replicas, const ParameterLayout& layout,
                                                 const Update& update, int64_t bucket_bytes) {
  if (replicas.size() == 1) return std::make_unique<SingleReplica>(replicas, layout, update);
  if (same_memory(replicas)) return std::make_unique<SharedMemory>(replicas, layout, update);
  if (a_gpu_each(replicas) && nccl_available())
    return std::make_unique<NcclAllReduce>(replicas, layout, update, bucket_bytes);
  return std::make_unique<HostStaged>(replicas, layout, update);
}

}  // namespace dtrain
