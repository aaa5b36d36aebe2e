// The gradient syncs that there are: for one replica, for one memory, by NCCL, by way of the host.
#include <algorithm>

#include "train/gradient_sync.h"
#include "train/whole_state.h"

namespace dtrain {

namespace {

/// What the gradient is worth, by the sums that are known of it.
void update_gradient_scale(Worker& worker, const Update& update, const double* weights) {
  if (update.needs_norm() || update.is_weighted())
    worker.ops().update_gradient_scale(
        update.gradient_rule(), update.needs_norm() ? worker.squares() : nullptr, weights, worker.state());
}

/// Where the whole gradient is at hand, and the sum of the weights where rows have some.
void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole,
                  const double* weights) {
  if (update.needs_norm())
    worker.ops().sum_of_squares(worker.gradients(), worker.squares(), update.trained(whole).size());
  update_gradient_scale(worker, update, weights);
  double* const squares = worker.parameter_squares();
  if (update.needs_directions())
    update.find_directions(worker.ops(), worker.state(), memory, worker.gradients(), whole, squares);
  update.apply(worker.ops(), worker.state(), memory, worker.gradients(), whole, squares);
}

/// One replica: the update follows the computation.
class SingleReplica final : public WholeState {
 public:
  SingleReplica(Worker& worker, const ParameterLayout& layout, const Update& update)
      : WholeState(layout, update, 1), whole_{0, layout.with_gradient()} {
    add_copy(worker);
  }
  std::string_view where() const override { return "in one replica"; }
  bool runs_ahead() const override { return on_gpu(); }

  void complete(Worker& worker) override {
    update_alone(worker, update_, copy(), whole_, worker.own_weights());
    set_gradient(0, worker, worker.gradients(), whole_);
  }

 private:
  Range whole_;
};

/// The sums of squares over all members' parts, and of weights over their shares, and what follows from them
/// for each. `computed` has the weights, `worker` the gradient.
void all_reduce_sums(Worker& worker, Worker& computed, Collective& member, const Update& update,
                     const float* gradient, Range mine) {
  if (!update.needs_norm() && !update.is_weighted()) return;
  const Range trained = update.trained(mine);
  double sums[2] = {0, 0};
  if (update.needs_norm() && trained.size() > 0) {
    worker.ops().sum_of_squares(gradient + trained.begin, worker.squares(), trained.size());
    worker.context().copy_to_host(&sums[0], worker.squares(), sizeof(double));
  }
  if (update.is_weighted()) computed.context().copy_to_host(&sums[1], computed.own_weights(), sizeof(double));
  member.all_reduce(sums);
  worker.context().copy_to_device(worker.squares(), sums, sizeof(sums));
  update_gradient_scale(worker, update, worker.weights());
}

/// The update of a member's part. The norms of whole parameters are sums over all members' parts.
void update_part(Worker& worker, Collective& member, const Update& update, const ParameterMemory& memory,
                 float* gradient, Range mine) {
  double* const squares = worker.parameter_squares();
  if (update.needs_directions()) {
    update.find_directions(worker.ops(), worker.state(), memory, gradient, mine, squares);
    std::vector<double> sums(update.squares());
    worker.context().copy_to_host(sums.data(), squares, sums.size() * sizeof(double));
    member.all_reduce(sums);
    worker.context().copy_to_device(squares, sums.data(), sums.size() * sizeof(double));
  }
  update.apply(worker.ops(), worker.state(), memory, gradient, mine, squares);
}

/// Several replicas in one memory, the host's or one GPU's: each sums and updates a part for all.
class SharedMemory final : public WholeState {
 public:
  SharedMemory(std::span<Worker* const> workers, const ParameterLayout& layout, const Update& update)
      : WholeState(layout, update, workers.size()), with_gradient_(layout.with_gradient()) {
    add_copy(*workers[0]);
  }
  std::string_view where() const override { return "in one memory"; }

  void end(Worker& worker, Collective& member) override {
    const auto [gradient, mine] =
        worker.on_gpu() ? sum_on_device(worker, member) : sum_on_host(worker, member);
    all_reduce_sums(worker, worker, member, update_, gradient, mine);
    update_part(worker, member, update_, copy(), gradient, mine);
    set_gradient(member.rank(), worker, gradient, mine);
    worker.context().synchronize();  // the others read this part in the next step
  }

 private:
  struct Sum {
    float* gradient;
    Range mine;
  };

  Sum sum_on_host(Worker& worker, Collective& member) const {
    return {worker.gradients(), member.reduce_scatter(worker.gradients(), with_gradient_)};
  }

  /// Into the first member's buffer, in the order of ranks.
  Sum sum_on_device(Worker& worker, Collective& member) const {
    worker.context().synchronize();
    const std::span<float* const> all = member.share_pointers(worker.gradients());
    const Range mine = part_of(with_gradient_, member.rank(), member.size(), 16);
    for (size_t i = 1; i < all.size() && mine.size() > 0; ++i)
      worker.ops().scale_add(all[0] + mine.begin, all[i] + mine.begin, 1.0f, 1.0f, mine.size());
    return {all[0], mine};
  }

  int64_t with_gradient_;
};

/// A GPU each: every worker has the parameters and makes the whole update; NCCL sums the gradients bucket by
/// bucket while backward goes on.
class NcclAllReduce final : public WholeState {
 public:
  NcclAllReduce(std::span<Worker* const> workers, const ParameterLayout& layout, const Update& update,
                int64_t bucket_bytes, World& world)
      : WholeState(layout, update, 1), whole_{0, layout.with_gradient()}, next_(workers.size(), 0) {
    std::vector<Context*> contexts;
    for (Worker* worker : workers) {
      add_copy(*worker);
      contexts.push_back(&worker->context());
    }
    const int64_t bucket = std::max<int64_t>(bucket_bytes / static_cast<int64_t>(sizeof(float)), 1);
    for (int64_t begin = 0; begin < whole_.end; begin += bucket)
      buckets_.push_back({begin, std::min(begin + bucket, whole_.end)});
    members_ = make_nccl_group(contexts, world);
  }
  std::string_view where() const override { return "by NCCL"; }
  bool runs_ahead() const override { return true; }
  void check() override {
    for (const auto& member : members_) member->check();
  }
  void abort() noexcept override {
    for (const auto& member : members_) member->abort();
  }

  void ready(Worker& worker, int64_t end) override {
    const auto rank = static_cast<size_t>(worker.rank());
    for (size_t& next = next_[rank]; next < buckets_.size() && buckets_[next].end <= end; ++next)
      members_[rank]->all_reduce(worker.gradients() + buckets_[next].begin, buckets_[next].size());
  }

  void complete(Worker& worker) override {
    const auto rank = static_cast<size_t>(worker.rank());
    ready(worker, whole_.end);
    next_[rank] = 0;
    if (update_.is_weighted()) {
      worker.context().enqueue_copy(worker.weights(), worker.own_weights(), sizeof(double));
      members_[rank]->all_reduce(worker.weights(), 1);
    }
    members_[rank]->join();
    update_alone(worker, update_, copy(rank), whole_, worker.weights());
    if (rank == 0) set_gradient(0, worker, worker.gradients(), whole_);
  }

 private:
  Range whole_;
  std::vector<Range> buckets_;
  std::vector<size_t> next_;  // the bucket that is summed next, by rank
  std::vector<std::unique_ptr<DeviceCollective>> members_;
};

/// Any mixture: the parameters and slots are the host's, GPUs have a copy of the parameters for each step,
/// and gradients meet in the host's memory. Made to be right on every machine, not to be fast.
class HostStaged final : public WholeState {
 public:
  HostStaged(std::span<Worker* const> workers, const ParameterLayout& layout, const Update& update)
      : WholeState(layout, update, workers.size()), hosts_(workers.size()) {
    const int core = available_cores().front();
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      if (!workers[rank]->on_gpu()) continue;
      Host& host = hosts_[rank];
      host.worker = std::make_unique<Worker>(static_cast<int>(rank), make_cpu_context({}, {core}, false),
                                             GpuMath{}, layout);
      host.device = std::make_unique<ParameterMemory>(workers[rank]->ops().compute_type(), layout);
    }
    add_copy(hosts_[0].worker ? *hosts_[0].worker : *workers[0]);
  }
  std::string_view where() const override { return "in the host's memory"; }
  std::string advice() const override {
    return nccl_available()
               ? "gradients meet in the host's memory, which is slow: NCCL is for GPUs alone, one replica "
                 "each"
               : "gradients meet in the host's memory, which is slow: there is no NCCL (dtrain gpus)";
  }
  const ParameterMemory& memory_of(const Worker& worker) const override {
    const auto& device = host_of(worker).device;
    return device ? *device : copy();
  }
  StateBytes state_bytes(const Worker& worker) const override {
    const auto& device = host_of(worker).device;
    return device ? StateBytes{device->bytes(), 0} : WholeState::state_bytes(worker);
  }
  void allocate_parameters(Worker& worker) override {
    WholeState::allocate_parameters(worker);
    if (const auto& device = host_of(worker).device) device->allocate(worker.ops());
  }
  /// A gradient for each GPU's replica, and the state where no worker on the CPU has it.
  size_t host_bytes() const override {
    const auto gpus =
        std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.worker != nullptr; });
    const StateBytes state = hosts_[0].worker ? WholeState::state_bytes(*hosts_[0].worker) : StateBytes{};
    return static_cast<size_t>(gpus * layout_.with_gradient()) * sizeof(float) + state.parameters +
           state.slots;
  }

  void begin(Worker& worker) override {
    const Host& host = host_of(worker);
    if (!host.device) return;
    worker.context().copy_to_device(host.device->values(), copy().values(),
                                    static_cast<size_t>(layout_.size()) * sizeof(float));
    host.device->refresh_copy(worker.ops());
  }

  void end(Worker& worker, Collective& member) override {
    const Host& host = host_of(worker);
    Worker& on_host = host.worker ? *host.worker : worker;
    if (host.worker) {
      worker.context().copy_to_host(on_host.gradients(), worker.gradients(),
                                    static_cast<size_t>(layout_.with_gradient()) * sizeof(float));
      worker.context().copy_to_host(on_host.state(), worker.state(), sizeof(StepState));
    }
    const Range mine = member.reduce_scatter(on_host.gradients(), layout_.with_gradient());
    all_reduce_sums(on_host, worker, member, update_, on_host.gradients(), mine);
    update_part(on_host, member, update_, copy(), on_host.gradients(), mine);
    set_gradient(member.rank(), on_host, on_host.gradients(), mine);
    if (host.worker) worker.context().copy_to_device(worker.state(), on_host.state(), sizeof(StepState));
  }

 private:
  /// What a GPU's replica needs of the host.
  struct Host {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<ParameterMemory> device;
  };
  const Host& host_of(const Worker& worker) const { return hosts_[static_cast<size_t>(worker.rank())]; }

  std::vector<Host> hosts_;
};

bool same_memory(std::span<Worker* const> workers) {
  const DeviceId first = workers[0]->context().device();
  return std::all_of(workers.begin(), workers.end(), [&](Worker* worker) {
    const DeviceId device = worker->context().device();
    return device == first || (device.kind == first.kind && first.kind == DeviceId::Kind::cpu);
  });
}

bool a_gpu_each(std::span<Worker* const> workers) {
  std::vector<int> seen;
  for (Worker* worker : workers) {
    if (!worker->on_gpu()) return false;
    seen.push_back(worker->context().device().index);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

}  // namespace

std::unique_ptr<GradientSync> make_gradient_sync(std::span<Worker* const> workers,
                                                 const ParameterLayout& layout, const Update& update,
                                                 int64_t bucket_bytes, World& world) {
  if (workers.size() == 1) return std::make_unique<SingleReplica>(*workers[0], layout, update);
  if (same_memory(workers)) return std::make_unique<SharedMemory>(workers, layout, update);
  if (a_gpu_each(workers) && nccl_available())
    return std::make_unique<NcclAllReduce>(workers, layout, update, bucket_bytes, world);
  return std::make_unique<HostStaged>(workers, layout, update);
}

}  // namespace dtrain
